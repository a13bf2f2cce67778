"""Without a network: what was visited opens, the whole book can be kept, and a new edition comes without mixing."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chapters.conftest import PATIENCE_MS
from tests.site.conftest import until
from tests.site.faulty import Server
from tests.site.test_site_cards import KEY, SET, answers, left_to_python, said
from threeloops.site import build, offline, serve
from threeloops.site.answering import SEED
from threeloops.site.lean import gathered

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
PART, OTHER = "1_inner_loop/2_roofline.html", "1_inner_loop/3_the_gpu.html"
SECOND = "Second edition"
SHOWN = """async () => {
  if (!await caches.match(location.href)) return false;
  for (const one of document.querySelectorAll('script[src], link[rel=stylesheet], img[src]'))
    if (!await caches.match(one.src || one.href, {ignoreSearch: true})) return false;
  return true;
}"""
REMEMBERED = """addEventListener('DOMContentLoaded', () => {
  sessionStorage.seen = (sessionStorage.seen ?? '') + document.querySelector('[role=status]')?.textContent;
});"""
# A page that is slow: when it first hears of its worker, the next edition is in its place already.
LATE = """if (!sessionStorage.late) {
  sessionStorage.late = 'yes';
  const {ready} = navigator.serviceWorker;
  Object.defineProperty(navigator.serviceWorker, 'ready', {value: ready.then(async registration => {
    await registration.update();
    while (registration.installing) await new Promise(on => setTimeout(on, 20));
    return {active: registration.waiting ?? registration.active, addEventListener() {}, update: async () => {}};
  })});
}"""
PICTURES = (
    "[...document.querySelectorAll('article img')].every(one => { one.loading = 'eager'; return one.naturalWidth; })"
)


@pytest.fixture(scope="module")
def second(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another edition of the same pages: each page has another first word, and so has a style."""
    made = tmp_path_factory.mktemp("second") / "site"
    shutil.copytree(folder, made)
    for path in [made / SET, made / PART, made / OTHER, made / "index.html"]:
        path.write_text(path.read_text("utf-8").replace("<h1>", f"<h1>{SECOND}: "), "utf-8")
    style = made / gathered.STYLE
    style.write_text(style.read_text("utf-8") + "h1 { color: rgb(1, 2, 3); }\n", "utf-8")
    shutil.copy(build.STATIC / "service_worker.js", made / "_static")
    offline.write(made, build.TITLE)
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with Server(folder) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.over.set()
        running.shutdown()


@pytest.fixture
def page(chromium: Any, server: Server) -> Iterator[Any]:
    context = chromium.new_context(base_url=serve.address(server))
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def editions(page: Any) -> list[str]:
    """What the browser keeps: the name of each edition's cache ends in that edition's own."""
    return [name.rpartition(" ")[2] for name in page.evaluate("caches.keys()")]


def edition(pages: Path) -> Any:
    return offline.listed(pages)["edition"]


def test_what_was_visited_opens_and_the_whole_book_can_be_kept_and_renewed(
    page: Any, server: Server, folder: Path, second: Path
) -> None:
    page.goto(PART)
    until(page, SHOWN)
    server.down = True
    page.reload()
    assert page.locator("h1").inner_text().startswith("1.2 Roofline")
    page.wait_for_function(PICTURES)
    page.goto(OTHER)
    page.get_by_text("this page is not kept in this browser").wait_for()

    server.down = False
    page.goto("offline.html")
    about = page.locator("#my-offline")
    files: Any = offline.listed(folder)["files"]
    megabytes = f"{sum(size for size, _ in files.values()) / 1e6:.1f} MB"
    about.get_by_text(f"of {megabytes} are in this browser.").wait_for()
    server.faults = {"book.zip": "missing"}
    about.get_by_role("button", name="Keep the whole book").click()
    about.get_by_text("book.zip is missing").wait_for()
    server.faults = {}
    about.get_by_role("button", name="Try again").click()
    about.get_by_text(f"The whole book, {megabytes}, is in this browser").wait_for()
    server.down = True
    page.goto(SET)
    card = page.locator(f".drill[data-drill={KEY}]")
    card.get_by_role("textbox").fill(left_to_python(answers(KEY, SEED)[0]))
    card.get_by_role("button", name="Check").click()
    said(card, "Right.")

    server.folder, server.down = second, False
    page.goto(SET)
    opens = page.get_by_role("button", name="Open it")
    opens.wait_for()
    assert SECOND not in page.locator("h1").inner_text()
    opens.click()
    page.locator("h1", has_text=SECOND).wait_for()
    until(page, "async () => (await caches.keys()).length === 1")
    assert editions(page) == [edition(second)] != [edition(folder)]
    server.down = True
    page.goto(OTHER)
    page.locator("h1", has_text=SECOND).wait_for()
    page.goto("offline.html")
    about.get_by_text("The whole book, ").wait_for()
    about.get_by_role("button", name="Delete what is kept").click()
    about.get_by_text("0.0 of").wait_for()


@pytest.mark.parametrize("late", ["", LATE], ids=["", "and had come before the page could listen"])
def test_a_page_of_another_edition_waits_until_that_edition_is_there(
    page: Any, server: Server, second: Path, late: str
) -> None:
    page.goto(PART)
    until(page, SHOWN)
    server.folder = second
    page.add_init_script(late)
    page.add_init_script(REMEMBERED)  # the page that waits is gone once what it waits for has come
    page.goto(OTHER, wait_until="commit")
    page.locator("h1", has_text=SECOND).wait_for()
    assert page.evaluate("sessionStorage.seen").startswith("A new edition of this book is there")
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(1, 2, 3)"
    until(page, "async () => (await caches.keys()).length === 1")
    assert editions(page) == [edition(second)]


def test_an_edition_that_the_browser_holds_back_is_waited_for_once_and_then_a_way_out_is_there(
    page: Any, server: Server, second: Path, tmp_path: Path
) -> None:
    """The next edition's worker hears "go" and stays where it is, as a browser now and then has it."""
    held = tmp_path / "site"
    shutil.copytree(second, held)
    worker = held / "offline.js"
    worker.write_text("self.skipWaiting = async () => {};\n" + worker.read_text("utf-8"), "utf-8")
    page.goto(PART)
    until(page, SHOWN)
    server.folder = held
    loads: list[str] = []
    page.on("load", lambda loaded: loads.append(loaded.url))
    page.goto(OTHER)
    out = page.get_by_role("button", name="Read it without what was kept")
    out.wait_for()
    assert len(loads) == 2, "the page, and once anew"
    out.click()
    page.locator("h1", has_text=SECOND).wait_for()


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ("Object.defineProperty(window, 'isSecureContext', {value: false})", "Over plain http"),
        ("delete Navigator.prototype.serviceWorker", "This browser, or this private window, keeps no pages"),
        ("ServiceWorkerContainer.prototype.register = async () => { throw new Error('denied') }", "denied"),
    ],
)
def test_where_nothing_can_be_kept_a_sentence_stands_where_the_button_would(
    page: Any, without: str, words: str
) -> None:
    page.add_init_script(without)
    page.goto("offline.html")
    about = page.locator("#my-offline")
    about.get_by_text(words).wait_for()
    assert not about.get_by_role("button", name="Keep the whole book").is_visible()


def test_opened_as_a_file_it_says_that_no_network_is_needed(page: Any, folder: Path) -> None:
    page.goto((folder / "offline.html").as_uri())
    page.get_by_text("These pages are files on this machine already").wait_for()
