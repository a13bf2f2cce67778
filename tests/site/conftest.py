"""The pages, built once for all tests of them, and served to the one browser."""

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import filelock
import pytest

from tests import seeds
from tests.chapters.conftest import PATIENCE_MS
from tests.chapters.conftest import chromium as chromium
from tests.turns import WHOLE
from threeloops.site import build, parts, printing, serve

ROOT = Path(__file__).parents[2]
UNTIL = """async () => {
  const end = performance.now() + %d;
  const asked = %s;
  while (!await asked()) {
    if (performance.now() > end) throw new Error(`never came: ${asked}`);
    await new Promise(on => setTimeout(on, 50));
  }
}"""


@dataclass
class Page(HTMLParser):
    """What a test asks of a page."""

    path: Path
    ids: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)  # names that stand for two things
    links: list[str] = field(default_factory=list)  # where a click leads
    loads: list[str] = field(default_factory=list)  # what the browser fetches by itself
    pictures: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.source = self.path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.twice |= {told["id"]} & self.ids if "id" in told else set()
        self.ids |= {told["id"]} if "id" in told else set()
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        elif tag == "link" and told.get("rel") not in ("index", "search", "next", "prev", "canonical"):
            self.loads.append(told["href"])
        elif "src" in told:
            self.loads.append(told["src"])
        if tag == "img":
            self.pictures.append(told)


@pytest.fixture(scope="session")
def printed() -> list[str]:
    """The chapters that this run prints: another one the next time, and none where nothing looks at them."""
    asked = seeds.turn() in (None, WHOLE["test_site_printed.py"])
    return seeds.todays(printing.chapters(parts.parts(ROOT)), shares=4) if asked else []


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, printed: list[str]) -> Path:
    """The pages, built as `book.py site` does, by the first worker that needs them; another one gets a copy."""
    own = tmp_path_factory.mktemp("pages") / "site"
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return build.build(ROOT, own, prints=printed).parent
    of_all = tmp_path_factory.getbasetemp().with_name("pages")
    with filelock.FileLock(of_all.with_suffix(".lock")):
        if of_all.is_dir():
            return Path(shutil.copytree(of_all, own))
        built = build.build(ROOT, own, prints=printed).parent
        shutil.copytree(built, of_all.with_suffix(".new"))
        of_all.with_suffix(".new").rename(of_all)
        return built


@pytest.fixture(scope="session")
def pages(folder: Path) -> dict[str, Page]:
    """Every page by its address."""
    return {
        path.relative_to(folder).as_posix(): Page(path)
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts
    }


@pytest.fixture(scope="session")
def home(folder: Path) -> Iterator[str]:
    """The address of the pages."""
    with serve.server(folder) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield serve.address(running)
        running.shutdown()


@dataclass
class Visit:
    """A page in the browser, with all that it asked for and complained about."""

    page: Any
    asked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@pytest.fixture
def visit(chromium: Any, home: str) -> Iterator[Any]:
    """Open a page as somebody with this screen and this colour scheme does. In the end: nothing was asked of anybody
    else, and nothing went wrong.
    """
    visits, contexts = [], []

    def go(path: str, *, width: int = 1280, scheme: str = "light", **more: Any) -> Visit:
        contexts.append(
            chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, base_url=home, **more)
        )
        contexts[-1].set_default_timeout(PATIENCE_MS)
        seen = Visit(page=contexts[-1].new_page())
        contexts[-1].on("request", lambda request: seen.asked.append(request.url))
        seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
        seen.page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
        seen.page.goto(path)
        visits.append(seen)
        return seen

    yield go
    for context in contexts:
        context.close()
    for seen in visits:
        assert seen.asked
        assert not [address for address in seen.asked if not address.startswith((home, "data:", "blob:" + home))]
        assert not seen.errors


def until(page: Any, asked: str) -> None:
    """Wait for what a page promises, a function that is async: the browser's own wait takes a promise for a yes."""
    page.evaluate(UNTIL % (PATIENCE_MS, asked))
