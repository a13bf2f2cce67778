"""The pages as files: every link arrives, nothing comes from elsewhere, every picture has words, no answer is given
away, and none is too heavy.
"""

import html
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.site.conftest import ROOT, Page
from threeloops.contents import STARTER, places
from threeloops.drills.engine.bank import DRILLS
from threeloops.room.question import draw_of
from threeloops.sheets.sheet import SHEETS
from threeloops.site import build, cells, drill_sets, links, mathematics, npm, parts, words
from threeloops.site.answering import SEED

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
MOST_PAGE, MOST_FOLDER = 1e6, 35e6  # bytes
WHOLE_BOOKS = (".epub", ".pdf")  # taken home by who wants them, part of no page
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//")


def test_every_part_every_set_and_every_sheet_has_a_page(pages: dict[str, Page]) -> None:
    parts_shown = {name for name in pages if re.match(r"\d_", name) and not name.endswith("index.html")}
    assert len(parts_shown) == len(places(ROOT))
    sets = {f"drills/{path.stem}.html" for path in ROOT.glob("drills/*/*.ipynb")}
    sheets = {f"sheets/{name}.html" for name in SHEETS}
    named = "index terms errata teaching changelog accessibility practise serve search 404"
    beside = {f"{name}.html" for name in named.split()}
    assert sets | sheets | beside <= set(pages)


def test_every_link_arrives(pages: dict[str, Page], folder: Path) -> None:
    lost = []
    for name, page in pages.items():
        for link in page.links + page.loads:
            if ELSEWHERE.match(link) or link.startswith(("mailto:", "data:")):
                continue
            path, _, anchor = unquote(link.partition("?")[0] if "#" not in link else link).partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            there = (folder / target).is_file()
            if not there or (anchor and target in pages and anchor not in pages[target].ids):
                lost.append(f"{name}: {link}")
    assert not lost
    assert not {name: page.twice for name, page in pages.items() if page.twice}


def test_nothing_is_fetched_from_elsewhere(pages: dict[str, Page], folder: Path) -> None:
    assert not {name: page.loads for name, page in pages.items() if any(ELSEWHERE.match(load) for load in page.loads)}
    for style in folder.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import [\"']?(?:https?:)?//", style.read_text()), style


def test_every_picture_has_words(pages: dict[str, Page]) -> None:
    pictures = [(name, told) for name, page in pages.items() for told in page.pictures]
    assert len(pictures) > 100
    assert not [name for name, told in pictures if len(told.get("alt", "")) < 20]


def test_every_formula_is_set_for_eyes_and_ears(pages: dict[str, Page]) -> None:
    assert sum(page.source.count("<math") for page in pages.values()) > 500
    for name, page in pages.items():
        plain = re.sub(r"<(pre|code|script|style|annotation)\b.*?</\1>|<[^>]+>", " ", page.source, flags=re.DOTALL)
        assert not re.search(r"\$[^$\n]{0,80}\\[a-z]+|katex-error", plain), name


def test_a_drill_set_gives_no_answer_away(pages: dict[str, Page]) -> None:
    asked = 0
    for path in drill_sets.paths(ROOT):
        source = html.unescape(pages[f"drills/{path.stem}.html"].source)
        for key in re.findall(r'data-drill="([^"]+)"', source):
            drill = DRILLS[key]
            derivation = drill.derive(draw_of(drill, SEED))
            assert derivation.in_numbers not in source
            assert derivation.formula not in source
            asked += 1
    assert asked > 150


def test_the_set_to_begin_with_stands_first_and_speaks_of_no_functions(pages: dict[str, Page]) -> None:
    assert drill_sets.paths(ROOT)[0].stem == STARTER
    listed = [link for link in pages["drills/index.html"].links if re.fullmatch(r"[a-z_]+\.html", link)]
    assert f"{STARTER}.html" in listed
    first, other = (pages[f"drills/{name}.html"].source for name in (STARTER, "kv_cache"))
    assert "write the functions" in other
    assert not re.search(r"write the functions|book\.py grade", first), "what only a notebook can do is left out"


def test_a_quick_check_has_its_working_folded(pages: dict[str, Page]) -> None:
    drill = DRILLS["amdahl-one-part"]
    source = html.unescape(pages["1_inner_loop/1_three_loops.html"].source)
    assert drill.derive(draw_of(drill, SEED)).in_numbers in source
    assert "<details><summary>The working</summary>" in source


def test_no_page_is_heavy(pages: dict[str, Page], folder: Path) -> None:
    for name, page in pages.items():
        pictures = {
            folder / posixpath.normpath(posixpath.join(posixpath.dirname(name), told["src"])) for told in page.pictures
        }
        assert len(page.source.encode()) + sum(path.stat().st_size for path in pictures) < MOST_PAGE, name
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in WHOLE_BOOKS]
    assert sum(path.stat().st_size for path in files) < MOST_FOLDER


def test_terms_come_with_the_sentence_that_introduces_them() -> None:
    found = {term.term: term for term in words.terms(parts.parts(ROOT))}
    assert "ridge point" in found
    assert "**ridge point**" in found["ridge point"].sentence
    assert len(found) > 150
    assert not {"Predict.", "count", "You need"} & set(found)


@pytest.fixture(scope="module")
def known() -> links.Places:
    return links.Places(parts.parts(ROOT))


def test_a_link_survives_other_minutes_and_no_link_leads_nowhere(known: links.Places) -> None:
    there = known.to("#2-Roofline-·-1-min", "chapters/1_inner_loop.ipynb")
    assert there == ("1_inner_loop/2_roofline", "c1-2-roofline")
    assert known.to("../drills/interview.ipynb", "chapters/1_inner_loop.ipynb") == ("drills/interview", "")
    assert known.to("https://pytorch.org", "chapters/1_inner_loop.ipynb") is None
    with pytest.raises(ValueError, match="leads to no heading"):
        known.to("#99-Nowhere", "chapters/1_inner_loop.ipynb")


def test_a_part_heading_within_a_cell_begins_a_page() -> None:
    cell = {"cell_type": "markdown", "source": "before\n```\n## no heading\n```\n## 2 Two\nafter"}
    first, second = parts._cut(cell)
    assert first["source"] == "before\n```\n## no heading\n```\n"
    assert second["source"] == "## 2 Two\nafter"


def test_what_only_a_notebook_can_mean_is_left_out(known: links.Places) -> None:
    opening = parts.parts(ROOT)[0]
    cell = {"cell_type": "markdown", "source": "This is your own copy: write in it.\n\nEach part stands alone."}
    (shown,) = cells.shown(cell, opening, known, str)
    assert shown["source"] == "Each part stands alone."


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(build.SiteError, match="name an empty folder"):
        build.build(ROOT, tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years"


def test_a_dead_link_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_: Path, sources: Path, __: Sequence[str]) -> None:
        sources.mkdir()
        (sources / "index.md").write_text("# Pages\n\n[a part](#of-no-chapter)\n")

    monkeypatch.setattr(build, "write_sources", write)
    with pytest.raises(build.SiteError, match="could not be built"):
        build.build(ROOT, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_formula_that_cannot_be_set_is_named() -> None:
    setter = mathematics.Setter()
    try:
        assert "<math" in setter.set(r"w_\max", display=False)
        with pytest.raises(ValueError, match=r"'\\\\nosuch' cannot be set"):
            setter.set(r"\nosuch", display=True)
    finally:
        setter.close()


def test_a_package_that_is_another_is_not_used(tmp_path: Path) -> None:
    archive = tmp_path / "katex.tgz"
    archive.write_bytes(b"something else")
    with pytest.raises(npm.FetchError, match="nothing of it was used"):
        npm._matches(archive, npm.PINS["katex"][1], "katex")
