"""What a page weighs before it can be read, packed as a web host sends it; pictures come later."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.site.conftest import Page, Visit
from threeloops.site.lean import gathered, styles

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
FIRST_BYTES, PART_BYTES, MOST_REQUESTS = 150e3, 300e3, 12
PICTURES = (".webp", ".png")
PACKED = (".html", ".css", ".js", ".svg", ".json")
BEFORE_THE_PAINT = """() => new Promise(done => new PerformanceObserver(list => {
  const painted = list.getEntriesByName('first-contentful-paint')[0];
  if (!painted) return;
  done(1 + performance.getEntriesByType('resource').filter(one => one.startTime < painted.startTime).length);
}).observe({type: 'paint', buffered: true}))"""


def weight(path: Path) -> int:
    """Bytes on the wire; a font is packed already."""
    content = path.read_bytes()
    return len(gzip.compress(content) if path.suffix in PACKED else content)


def test_a_page_is_light_and_asks_for_little(visit: Callable[..., Visit], pages: dict[str, Page], folder: Path) -> None:
    heaviest = max((name for name in pages if re.match(r"\d_", name)), key=lambda name: weight(folder / name))
    for name, most in {"index.html": FIRST_BYTES, heaviest: PART_BYTES, "drills/index.html": FIRST_BYTES}.items():
        seen = visit(name)
        seen.page.wait_for_load_state("networkidle")
        paths = {urlsplit(address).path.lstrip("/") for address in seen.asked if address.startswith("http")}
        fetched = [folder / path for path in paths if not path.endswith(PICTURES)]
        assert sum(map(weight, fetched)) <= most, {path.name: weight(path) for path in fetched}
        assert seen.page.evaluate(BEFORE_THE_PAINT) <= MOST_REQUESTS


def test_all_pages_load_one_style_and_one_script(pages: dict[str, Page], folder: Path) -> None:
    for name, page in pages.items():
        beside = [load.partition("?")[0] for load in page.loads if load.partition("?")[0].endswith((".css", ".js"))]
        ours = [load for load in beside if load.endswith((gathered.STYLE, gathered.SCRIPT))]
        assert len(ours) == 2, name
        assert beside == ours, name
        for told in page.pictures:
            assert told.get("loading") == "lazy", (name, told)
            assert int(told["width"]) * int(told["height"]) > 0, (name, told)
    script = (folder / gathered.SCRIPT).read_text(encoding="utf-8")
    assert "class Card extends Question" in script
    assert "// A question on a page becomes" not in script, "what is said to readers of the source"
    style = (folder / gathered.STYLE).read_text(encoding="utf-8")
    addresses = re.findall(r"url\(([\w./-]+\.(?:woff2|svg))\)", style)  # of a font's formats the one that is there
    assert len(addresses) > 10
    for address in addresses:
        assert (folder / "_static" / address).is_file(), address
    assert not list(folder.rglob("*awesome*"))


def test_every_icon_is_drawn(pages: dict[str, Page], folder: Path) -> None:
    style = (folder / gathered.STYLE).read_text(encoding="utf-8")
    shown = {
        icon
        for page in pages.values()
        for told in re.findall(r'class="[^"]*\bfa-solid ([^"]*)"', page.source)
        for icon in told.split()
        if icon.startswith("fa-") and icon != "fa-lg"
    }
    assert len(shown) > 8
    assert not [icon for icon in shown if f".{icon}{{--icon:" not in style]


def test_a_rule_that_a_script_may_need_stays() -> None:
    names = gathered.names(['<p class="a b" id="c">'], ["one.classList.add('later')"])
    css = ".a .b{x:1} .gone{x:2} .later:hover{x:3} #c>p{x:4} .a:not(.gone){x:5} @font-face{font-family:Font Awesome}"
    kept = styles.used(css, names)
    assert re.findall(r"x:(\d)", kept) == ["1", "3", "4", "5"]
    assert "font-face" not in kept


def test_a_page_that_loads_something_else_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<head><link rel="stylesheet" href="a.css"></head>')
    (tmp_path / "other.html").write_text("<head></head>")
    with pytest.raises(ValueError, match=r"other\.html loads other styles or scripts than index\.html does"):
        gathered.gather(tmp_path)
