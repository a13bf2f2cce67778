"""What fails says so and goes on: each file in turn is missing, damaged, cut off or stalled, and "Try again" works."""

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chapters.conftest import PATIENCE_MS
from tests.site.faulty import Server
from tests.site.test_site_cards import KEY, SET, answers, left_to_python, said
from threeloops.site import serve
from threeloops.site.answering import SEED
from threeloops.site.lean import gathered

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore:.*MystReferenceResolver.app"),  # Sphinx to MyST: nothing of ours
]
PYTHON = ("about.json", "pyodide.mjs", "pyodide.asm.mjs.gz", "pyodide.asm.wasm.gz", "standard.zip", "book.zip")
MORE = "more.zip"  # what no answer needs
SAYS = {
    "missing": "{name} is missing from the folder of pages.",
    "damaged": "{name} came damaged.",
    "short": "{name} came damaged.",
    "cut": "{name} broke off in the middle.",
}
SHORT_MS = 1500  # a limit for what is known to come no more
AGAIN = "Try again"
# What a browser does that keeps nothing for a page: its storage denied, not there, full; and how that ends.
DENIED = {
    "lets these pages keep nothing": """
        const {open} = IDBFactory.prototype;
        IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError'); };
        window.allow = () => { IDBFactory.prototype.open = open; };
    """,
    "keep nothing: its settings": """
        const held = window.indexedDB;
        Object.defineProperty(window, 'indexedDB', {value: undefined, configurable: true});
        window.allow = () => Object.defineProperty(window, 'indexedDB', {value: held});
    """,
    "the storage of this browser is full": """
        const {put} = IDBObjectStore.prototype;
        IDBObjectStore.prototype.put = () => { throw new DOMException('no', 'QuotaExceededError'); };
        window.allow = () => { IDBObjectStore.prototype.put = put; };
    """,
}
NO_THEME = """
    Object.defineProperty(window, 'localStorage', {
        configurable: true, get() { throw new DOMException('no', 'SecurityError'); },
    });
"""


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with Server(folder) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.over.set()
        running.shutdown()


@pytest.fixture
def opened(chromium: Any, server: Server) -> Iterator[Any]:
    """A page of that server; what a service worker keeps would hide what fails."""
    context = chromium.new_context(base_url=serve.address(server), service_workers="block")
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    server.faults = {}
    context.close()


def test_each_file_of_python_fails_in_each_way_and_comes_when_it_is_asked_for_again(
    opened: Any, server: Server
) -> None:
    opened.goto(SET)
    card = opened.locator(f".drill[data-drill={KEY}]")
    again = card.get_by_role("button", name=AGAIN)

    def fails(name: str, kind: str, words: str, by: Any = again) -> None:
        server.faults = {name: kind}
        by.click()
        card.locator(".drill-said", has_text=words).wait_for()  # of a damaged file the name comes first

    # Python comes while an answer is being written; when that has failed, it is the answer that asks for it.
    fails(PYTHON[0], "missing", SAYS["missing"].format(name=PYTHON[0]), by=card.get_by_role("textbox"))
    card.get_by_role("textbox").fill(left_to_python(answers(KEY, SEED)[0]))
    fails(PYTHON[1], "missing", SAYS["missing"].format(name=PYTHON[1]), by=card.get_by_role("button", name="Check"))
    for kind, words in SAYS.items():
        for name in PYTHON:
            # a damaged list of hashes may be seen at the file that it names
            fails(name, kind, words.format(name="" if kind == "damaged" else name).strip())
    for kind in ("missing", "cut"):
        fails("worker.js", kind, "worker.js did not come.")
    opened.evaluate(f"threeloops.LIMITS.stall_ms = {SHORT_MS}")
    fails("worker.js", "stalled", "Python did not come within")
    # long enough for a busy machine to hand over all that comes before the file that stalls
    opened.evaluate(f"threeloops.LIMITS.stall_ms = {6 * SHORT_MS}")
    fails("book.zip", "stalled", "Python stopped coming at")
    server.faults = {}
    opened.evaluate(f"Object.assign(threeloops.LIMITS, {{stall_ms: {PATIENCE_MS}, start_ms: 1}})")
    again.click()
    said(card, "Python did not start within")
    opened.evaluate(f"threeloops.LIMITS.start_ms = {PATIENCE_MS}")
    again.click()
    said(card, "Right.")
    assert not again.count()
    the_rest_of_the_book_comes_when_it_is_asked_for_again(opened, server)


def test_practise_says_how_much_comes(folder: Path) -> None:
    told = re.search(r"about (\d+) megabytes", (folder / "practise.html").read_text(encoding="utf-8"))
    comes = json.loads((folder / "_static" / "python" / "about.json").read_text(encoding="utf-8"))["bytes"]
    assert told
    assert float(told[1]) == pytest.approx(comes / 1e6, rel=0.1)


def the_rest_of_the_book_comes_when_it_is_asked_for_again(opened: Any, server: Server) -> None:
    opened.evaluate("window.before = threeloops.book.worker")
    server.faults = {MORE: "missing"}
    asked = "threeloops.call('exploring.begun', 'system_map').then(() => 'here', error => error.message)"
    assert opened.evaluate(asked) == f"{MORE} is missing from the folder of pages."
    server.faults = {}
    assert opened.evaluate(asked) == "here"
    assert opened.evaluate("threeloops.book.worker === before"), "the same Python, which went on without it"


def test_the_limit_of_pythons_start_holds_where_what_lists_its_files_comes_last(opened: Any, server: Server) -> None:
    opened.goto(SET)
    card = opened.locator(f".drill[data-drill={KEY}]")
    server.faults = {PYTHON[0]: "late"}
    opened.evaluate(f"Object.assign(threeloops.LIMITS, {{stall_ms: {PATIENCE_MS}, start_ms: 1}})")
    card.get_by_role("textbox").fill(left_to_python(answers(KEY, SEED)[0]))
    card.get_by_role("button", name="Check").click()
    said(card, "Python did not start within")


def test_what_draws_comes_when_it_is_asked_for_again(opened: Any, server: Server) -> None:
    server.faults = {"panel.js": "cut"}
    opened.goto("index.html")
    explorer = opened.locator(".explorer")
    again = explorer.get_by_role("button", name=AGAIN)
    explorer.get_by_text("panel.js did not come, or not whole.").wait_for()
    server.faults = {"vega.js": "missing", "book.zip": "missing"}
    again.click()
    explorer.get_by_text("Turn something").wait_for()
    explorer.locator(".tl-controls select, .tl-controls input").first.focus()
    opened.keyboard.press("ArrowDown")
    explorer.get_by_text("vega.js did not come, or not whole.").wait_for()
    explorer.get_by_text("book.zip is missing").wait_for()
    opened.evaluate(f"threeloops.LIMITS.script_ms = {SHORT_MS}")
    server.faults = {"vega.js": "stalled", "book.zip": "missing"}
    again.last.click()
    explorer.get_by_text("vega.js did not come within").wait_for()
    opened.evaluate(f"threeloops.LIMITS.script_ms = {PATIENCE_MS}")
    server.faults = {}
    again.last.click()
    again.first.click()
    again.wait_for(state="detached")
    opened.locator(".explorer .vega-embed[role=graphics-document]").wait_for()


def test_each_script_and_style_of_a_page_is_missed_in_a_sentence(opened: Any, server: Server) -> None:
    for name in (Path(gathered.SCRIPT).name, Path(gathered.STYLE).name):
        server.faults = {name: "missing"}
        opened.goto(SET)
        missed = opened.get_by_role("alert")
        missed.get_by_text(f"{name} did not come.").wait_for()
        server.faults = {}
        missed.get_by_role("button", name=AGAIN).click()
        missed.wait_for(state="detached")
        opened.locator(".drill form").first.wait_for()


@pytest.mark.parametrize("words", DENIED)
def test_where_nothing_can_be_kept_a_sentence_says_so_until_it_can(opened: Any, words: str) -> None:
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.add_init_script(NO_THEME)
    opened.add_init_script(f"{{ {DENIED[words]} }}")
    opened.goto("code.html")
    task = opened.locator(".drill[data-function]").first
    task.get_by_role("textbox").fill("def mine(): pass")
    task.locator("p", has_text="This answer is not remembered").filter(has_text=words).wait_for()
    opened.evaluate("allow()")
    task.get_by_role("button", name=AGAIN).click()
    task.get_by_text("not remembered").wait_for(state="detached")
    opened.get_by_role("button", name="Color mode").click()
    opened.get_by_role("button", name="Dark").click()
    opened.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert not errors


def test_a_full_storage_that_says_so_late_is_heard(opened: Any) -> None:
    opened.goto("memory.html")
    late = """async () => {
        const {put} = IDBObjectStore.prototype;
        IDBObjectStore.prototype.put = function (...words) {
            const request = put.apply(this, words);
            request.addEventListener('success', () => this.transaction.abort());
            return request;
        };
        return threeloops.leave('a place', {}).then(() => 'kept', error => error.message);
    }"""
    assert opened.evaluate(late) != "kept"
