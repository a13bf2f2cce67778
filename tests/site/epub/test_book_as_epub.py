"""The book as an EPUB: a file that e-readers open, every part and every picture in it, and links that arrive."""

import posixpath
import re
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from tests.site.conftest import ROOT, Page
from threeloops.site import npm, parts
from threeloops.site.epub import leaves, volume
from threeloops.site.front.edition import edition

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
MOST_BYTES = 8e6
NARROW = 360  # pixels of a small reader
OPF = {"opf": "http://www.idpf.org/2007/opf", "dc": "http://purl.org/dc/elements/1.1/"}
# Children that MathML Core takes: https://www.w3.org/TR/mathml-core/
CHILDREN = {"msub": 2, "msup": 2, "munder": 2, "mover": 2, "mfrac": 2, "mroot": 2, "msubsup": 3, "munderover": 3}
DRAWN = """() => ({
  lost: [...document.images].filter(one => !one.naturalWidth).length,
  formulas: [...document.querySelectorAll('math')].filter(one => one.getBoundingClientRect().height > 5).length,
  open: document.querySelectorAll('details[open]').length,
  folded: document.querySelectorAll('details').length,
  wide: document.documentElement.scrollWidth,
})"""


@pytest.fixture(scope="module")
def book(folder: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(folder / volume.FILE)


@pytest.fixture(scope="module")
def package(book: zipfile.ZipFile) -> Any:
    container = etree.fromstring(book.read("META-INF/container.xml"))
    (path,) = container.xpath("//@full-path")
    return etree.fromstring(book.read(path))


@pytest.fixture(scope="module")
def bound(book: zipfile.ZipFile) -> dict[str, Any]:
    """Every leaf as XML reads it: what is not well formed is none."""
    names = [name for name in book.namelist() if name.endswith(".xhtml")]
    return {posixpath.basename(name): etree.fromstring(book.read(name)) for name in names}


def test_a_reader_knows_it_for_what_it_is(book: zipfile.ZipFile, package: Any, folder: Path) -> None:
    first = book.infolist()[0]
    assert (first.filename, first.compress_type, first.extra) == ("mimetype", zipfile.ZIP_STORED, b"")
    assert book.read(first) == b"application/epub+zip"
    assert (folder / volume.FILE).stat().st_size < MOST_BYTES
    assert package.get("version") == "3.0"
    told = edition(ROOT)
    said = {name: package.xpath(f"//dc:{name}/text()", namespaces=OPF) for name in ("title", "language", "date")}
    assert said == {"title": [told.title], "language": ["en"], "date": [told.date]}
    assert told.licence in package.xpath("string(//dc:rights)", namespaces=OPF)
    assert f">{told.version}</meta>" in etree.tostring(package).decode()
    title_page = book.read(f"{volume.FOLDER}/title.xhtml").decode()
    assert f"Version {told.version} of {told.date}" in title_page


def test_what_is_in_it_is_listed_once_and_in_order(book: zipfile.ZipFile, package: Any, bound: dict[str, Any]) -> None:
    items = package.xpath("//opf:item", namespaces=OPF)
    files = {name.removeprefix(f"{volume.FOLDER}/") for name in book.namelist() if name.startswith(volume.FOLDER)}
    assert Counter(one.get("href") for one in items) == Counter(files - {"package.opf"})
    by_id = {one.get("id"): one for one in items}
    assert len(by_id) == len(items)
    read = [by_id[name].get("href") for name in package.xpath("//opf:itemref/@idref", namespaces=OPF)]
    assert sorted(read) == sorted(bound)
    assert read[:2] == ["title.xhtml", "contents.xhtml"]
    in_parts = [leaves.leaf_file(part.page) for part in parts.parts(ROOT)]
    assert read[2:-1] == in_parts
    listed = bound["contents.xhtml"].xpath("//*[local-name()='nav']//@href")
    assert [*listed] == ["title.xhtml", *in_parts, read[-1]]
    formulas = {name for name, leaf in bound.items() if leaf.xpath("//*[local-name()='math']")}
    assert formulas == {one.get("href") for one in items if one.get("properties") == "mathml"}
    assert len(formulas) > 30


def test_every_link_and_every_picture_arrives(book: zipfile.ZipFile, bound: dict[str, Any]) -> None:
    ids = {name: leaf.xpath("//@id") for name, leaf in bound.items()}
    assert not {name: Counter(found).most_common(1) for name, found in ids.items() if len(set(found)) < len(found)}
    lost = []
    for name, leaf in bound.items():
        for link in leaf.xpath("//@href | //@src"):
            path, _, anchor = link.partition("#")
            there = path or name
            if re.match("https?:|mailto:", link):
                continue
            if f"{volume.FOLDER}/{there}" not in book.namelist() or (anchor and anchor not in ids[there]):
                lost.append(f"{name}: {link}")
    assert not lost
    pictures = [one for leaf in bound.values() for one in leaf.xpath("//*[local-name()='img']")]
    assert len(pictures) > 150
    assert not [one.get("src") for one in pictures if len(one.get("alt", "")) < 20]


def test_formulas_are_mathml_as_its_standard_has_it(bound: dict[str, Any]) -> None:
    formulas = [one for leaf in bound.values() for one in leaf.xpath("//*[local-name()='math']")]
    assert len(formulas) > 500
    assert all(one.get("alttext") for one in formulas)
    for one in (inner for formula in formulas for inner in formula.iter()):
        tag = etree.QName(one).localname
        assert len(one) == CHILDREN.get(tag, len(one)), etree.tostring(one)
        assert tag not in leaves.TOKENS or not len(one), etree.tostring(one)


def test_answers_stand_at_the_end_and_predictions_stay_folded(bound: dict[str, Any], pages: dict[str, Page]) -> None:
    answers = 0
    for leaf in bound.values():
        links = leaf.xpath("//@href")
        told = [name for name in leaf.xpath("//@id") if re.match(r"answer-\d+$", name)]
        answers += len(told)
        assert all(any(link.endswith(f"#{name}") for link in links) for name in told)
        assert not leaf.xpath("//*[local-name()='script' or local-name()='button'] | //@style")
    assert answers > 100
    folded = sum(len(leaf.xpath("//*[local-name()='details' and not(@open)]")) for leaf in bound.values())
    assert folded == sum(page.source.count('<details class="outcome"') for page in pages.values()) > 80


def test_what_a_script_has_to_show_is_left_out() -> None:
    strip = "<section class='far' hidden><progress value='0'></progress></section>"
    one = leaves.leaf("1/a", f"<article><h1>A</h1>{strip}<p>kept</p></article>")
    assert leaves.bound(one, lambda link, page: "").endswith(b"<article><h1>A</h1><p>kept</p></article></body></html>")


def test_a_link_leads_to_the_pages_where_they_have_an_address() -> None:
    one = leaves.leaf("1/a", "<article><h1>A</h1><p id='x'>x</p></article>")
    lead = leaves.leader({"1/a": one}, "https://example.org/")
    assert lead("#x", "1/a") == "1_a.xhtml#x"
    assert lead("#gone", "1/a") == "1_a.xhtml"
    assert lead("../drills/kv.html#y", "1/a") == "https://example.org/drills/kv.html#y"
    assert leaves.leader({}, "")("../drills/kv.html", "1/a") == ""


def test_it_is_seen_as_it_is_meant(book: zipfile.ZipFile, chromium: Any, tmp_path: Path) -> None:
    """An e-reader is a browser without a script; this one has axe-core besides."""
    book.extractall(tmp_path)
    axe = (npm.kept("axe-core") / "axe.min.js").read_text(encoding="utf-8")
    page = chromium.new_page(viewport={"width": NARROW, "height": 640})
    for name in ("title.xhtml", "contents.xhtml", leaves.leaf_file("1_inner_loop/2_roofline")):
        page.goto((tmp_path / volume.FOLDER / name).as_uri())
        seen = page.evaluate(DRAWN)
        assert (seen["lost"], seen["open"]) == (0, 0)
        assert seen["wide"] <= NARROW
        page.evaluate(axe)
        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
        found = page.evaluate("rules => axe.run(document, {runOnly: rules, preload: false})", rules)["violations"]
        assert not [(one["id"], one["nodes"][0]["html"][:200]) for one in found]
    assert seen["formulas"] > 20
    assert seen["folded"] > 2
    page.close()
