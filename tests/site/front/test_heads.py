"""The heads of the pages: each says what it is about; addresses only where one is set."""

import contextlib
import html
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.site.conftest import ROOT, Page
from threeloops.site import build, parts
from threeloops.site.front import heads
from threeloops.site.front.edition import read

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
CITED = 'title: "A book"\nauthors:\n  - name: Somebody\nversion: 1.0\ndate-released: 2026-01-02\nlicense: MIT\n'


def told(page: Page, name: str) -> str:
    found = re.findall(rf'<meta (?:name|property)="{name}" content="([^"]*)"', page.source)
    assert len(found) == 1, (page.path, name, found)
    return html.unescape(found[0])


def test_every_page_says_what_it_is_about(pages: dict[str, Page]) -> None:
    said = {name: told(page, "description") for name, page in pages.items()}
    assert not {name: words for name, words in said.items() if not 20 <= len(words) <= heads.LONGEST}
    assert not {name: words for name, words in said.items() if re.search(r"<|\\|\$", words)}
    assert max(Counter(words for name, words in said.items() if re.match(r"\d_", name)).values()) == 1
    assert (
        said["1_inner_loop/2_roofline.html"] == "How fast can this kernel run at best, and what would make it faster?"
    )
    for page in pages.values():
        assert page.source.count('name="viewport"') == 1
        assert told(page, "og:description") == told(page, "description")


def test_a_title_names_the_chapter(pages: dict[str, Page]) -> None:
    titles = {name: html.unescape(re.search("<title>(.*?)</title>", page.source)[1]) for name, page in pages.items()}
    for part in parts.parts(ROOT):
        if part.place:
            assert titles[f"{part.page}.html"] == f"{part.word} {part.place.title} — Three Loops"
    assert titles["index.html"].startswith("Three Loops: ")
    assert titles["index.html"].count("Three Loops") == 1
    following = pages["1_inner_loop/2_roofline.html"].source
    assert 'prev-next-title">1.3 The GPU<' in following


def test_an_address_is_named_where_one_is_set(pages: dict[str, Page]) -> None:
    made = heads.tags("drills/kv_cache", "KV cache", "Said.", "https://example.org/book/")
    assert 'property="og:url" content="https://example.org/book/drills/kv_cache.html"' in made
    assert 'property="og:image" content="https://example.org/book/_static/card.png"' in made
    assert '<base href="/book/" />' in heads.tags(heads.LOST, "No", "No.", "https://example.org/book/")
    assert "og:url" not in heads.tags("index", "Three Loops", "Said.", "")
    assert all((' rel="canonical"' in page.source) == ('"og:url"' in page.source) for page in pages.values())


def test_a_citation_that_cannot_be_read_is_refused() -> None:
    assert read(CITED).repository == ""
    with pytest.raises(ValueError, match="CITATION.cff has no version; the first page"):
        read(CITED.replace("version", "edition"))
    with pytest.raises(ValueError, match=r"has url: example\.org; expected an address"):
        read(CITED + "url: example.org\n")


def test_with_an_address_every_page_and_a_sitemap_name_it(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "static").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# A book\n\nIt says what it is about in a line.\n")
    with contextlib.suppress(build.SiteError):  # a second Sphinx in one process warns of what the first one has made
        build._run_sphinx(tmp_path, read(CITED + "url: https://example.org/book\n"))
    made = (tmp_path / "made" / "index.html").read_text()
    assert '<link rel="canonical" href="https://example.org/book/index.html"' in made
    assert '<meta property="og:image" content="https://example.org/book/_static/card.png" />' in made
    assert "<loc>https://example.org/book/index.html</loc>" in (tmp_path / "made" / "sitemap.xml").read_text()
