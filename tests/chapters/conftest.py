"""A real JupyterLab, opened the way a reader opens it, and a headless browser to look at it: one of each for all
tests, and a folder for each file of tests.
"""

import atexit
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.chapters.keys import answer_restarts
from threeloops import wall_clock
from threeloops.desk import opening

ROOT = Path(__file__).parents[2]
START_S = 90
PATIENCE_MS = 120_000  # for anything on a page, on a machine that is busy with other tests
# Every folder in which Jupyter keeps something of a person's own: a test must neither read nor change them.
PERSONAL = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "IPYTHONDIR",
)


@dataclass(frozen=True, kw_only=True)
class Door:
    """A folder of a running JupyterLab, and the page with which the reader's browser would be opened."""

    root: Path
    page: str
    server: str = ""  # address of the server, with a / at its end
    token: str = ""
    folder: str = ""  # where root is, seen from the server; with a / at its end
    # what desk.py would have this page's server write into it
    config: Mapping[str, Any] = field(default_factory=dict)

    def address(self, path: str, workspace: str = "") -> str:
        """A notebook of this folder in a workspace of its own: JupyterLab would open beside it what another test had
        open.
        """
        name = re.sub(r"\W", "-", self.folder + workspace) or "own"
        return f"{self.server}lab/workspaces/{name}/tree/{quote(self.folder + path)}?token={self.token}"

    def end_kernels(self) -> None:
        """Shut down what runs in this folder."""
        self.end_kernel("")

    def end_kernel(self, path: str) -> None:
        """Shut down what runs in one notebook of this folder."""
        for session in json.loads(self._ask("sessions")):
            if session["path"].startswith(self.folder + path):
                self._ask(f"sessions/{session['id']}", method="DELETE")

    def _ask(self, what: str, method: str = "GET") -> bytes:
        request = urllib.request.Request(
            f"{self.server}api/{what}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return bytes(answer.read())


@dataclass(kw_only=True)
class Sight:
    """A page in the browser and what it has complained about."""

    page: Any
    errors: list[str] = field(default_factory=list)


WINDOWLESS = "chromium-headless-shell"


def chromium_path() -> str:
    """Chromium; without it a CI machine fails, and another one skips with the command that would help."""
    names = (WINDOWLESS, "chromium", "chromium-browser", "google-chrome")  # the first is the quickest
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        hint = (
            "no Chromium here: install it with `apt-get install chromium` (Debian) or `brew install chromium` (macOS)"
        )
        if os.environ.get("CI") == "true":
            pytest.fail(hint)
        pytest.skip(hint)
    return path


@pytest.fixture(scope="session")
def chromium() -> Any:
    """One browser a process, whichever folders of tests import this fixture: a second driver would not start beside
    the first.
    """
    return _browser(chromium_path())


@functools.cache
def _browser(path: str) -> Any:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    driver = sync_playwright().start()
    words = ["--no-sandbox", "--disable-dev-shm-usage"]
    if path.endswith(WINDOWLESS):  # without a window it has no recogniser of speech, and dies of the question
        words.append("--disable-blink-features=OnDeviceWebSpeechAvailable")
    browser = driver.chromium.launch(executable_path=path, args=words)
    atexit.register(lambda: (browser.close(), driver.stop()))
    return browser


@contextlib.contextmanager
def running(command: list[str], root: Path, personal: Path, **more: str) -> Iterator[Door]:
    """A JupyterLab that `command` starts; yields when its opening page is there, ends with all its processes."""
    environment = {**os.environ, **{name: str(personal / name.lower()) for name in PERSONAL}, **more}
    log = personal / "jupyterlab.log"
    personal.mkdir(parents=True, exist_ok=True)
    with log.open("w") as stream:
        server = subprocess.Popen(
            command, env=environment, cwd=root, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        page = _opening_page(server, personal / "jupyter_runtime_dir", log)
        (about,) = [json.loads(path.read_text()) for path in (personal / "jupyter_runtime_dir").glob("jpserver-*.json")]
        yield Door(root=root, page=page, server=about["url"], token=about["token"])
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


def _opening_page(server: Any, runtime: Path, log: Path) -> str:
    def told() -> bool:
        assert server.poll() is None, f"JupyterLab ended:\n{log.read_text()}"
        page = any(runtime.glob("jpserver-*-open.html"))
        return page and bool(re.search("The book is open|is running at", log.read_text()))

    started = wall_clock.until(told, limit_s=START_S, step_s=0.2)
    assert started, f"JupyterLab did not start within {START_S} s:\n{log.read_text()}"
    return next(runtime.glob("jpserver-*-open.html")).as_uri()


PART = "roofline"  # at which the book is opened for all tests
FEDERATED = "federated_extensions"
# Written over what the server says, when the page has been read and before anything in it runs.
CONFIGURE = """told => document.addEventListener('readystatechange', () => {
  const written = document.getElementById('jupyter-config-data');
  if (written) written.textContent = JSON.stringify({...JSON.parse(written.textContent), ...told});
}, {once: true})"""


@pytest.fixture(scope="session")
def lab(chromium: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """The book, opened at a part as `python3 book.py PART` does: a copy, so that no test touches anyone's my/, and a
    history of its own.
    """
    root, personal = tmp_path_factory.mktemp("book"), tmp_path_factory.mktemp("jupyter")
    shutil.copytree(ROOT / "chapters", root / "chapters")
    code = (
        f"from pathlib import Path; from threeloops.desk import opening; opening.open_book({PART!r}, browser=False,"
        f" root=Path({str(root)!r}))"
    )
    with running(
        [sys.executable, "-c", code], root, personal, THREELOOPS_HISTORY=str(root / "history.sqlite3")
    ) as door:
        yield door


@pytest.fixture(scope="module")
def folder(lab: Door, request: pytest.FixtureRequest) -> Iterator[Door]:
    """A folder of these tests' own in the running JupyterLab; what runs in it ends with them."""
    name = request.module.__name__.rpartition(".")[2]
    root = lab.root / name
    root.mkdir()
    config = {"threeloopsCopies": f"{name}/my/"}
    door = Door(root=root, page="", server=lab.server, token=lab.token, folder=f"{name}/", config=config)
    yield door
    door.end_kernels()


@pytest.fixture(scope="module")
def open_at(folder: Door) -> Callable[[str], Door]:
    """The book in a folder of its own, opened as `python3 book.py WORD` does: what desk.py tells JupyterLab is told
    to the one that runs.
    """

    def door(word: str) -> Door:
        for name in ("chapters", "drills"):
            shutil.copytree(ROOT / name, folder.root / name)
        told: list[list[str]] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, "serve", lambda command, root: told.append(command) or 0)
            opening.open_book(word, browser=False, root=folder.root)
        options = dict(option.partition("=")[::2] for option in told[0] if "=" in option)
        return replace(folder, page=folder.address(unquote(options["--LabApp.default_url"].removeprefix("/lab/tree/"))))

    return door


# the pages that are open, so that a red test can say what stood on them
OPEN: list[Sight] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure where its pages were, what dialog stood before them, and what the browser complained about."""
    report = yield
    if report.failed:
        for seen in OPEN:
            dialogs = []
            with contextlib.suppress(Exception):  # a page that is closed, or has crashed
                dialogs = seen.page.locator(".jp-Dialog").all_inner_texts()
            report.sections.append((f"a page at {seen.page.url}", "\n".join([*dialogs, *seen.errors])))
    return report


@pytest.fixture(scope="module")
def look(chromium: Any) -> Iterator[Callable[[Door], Sight]]:
    """A new page at a door, whose complaints are collected."""
    with contextlib.ExitStack() as stack:

        def sight(door: Door) -> Sight:
            context = chromium.new_context(viewport={"width": 1280, "height": 1000})
            context.set_default_timeout(PATIENCE_MS)
            stack.callback(context.close)
            if door.config:
                context.add_init_script(f"({CONFIGURE})({json.dumps(dict(door.config))})")
            seen = Sight(page=context.new_page())
            OPEN.append(seen)
            stack.callback(OPEN.remove, seen)
            answer_restarts(seen.page)
            seen.page.on(
                "console", lambda message: seen.errors.append(message.text) if message.type == "error" else None
            )
            seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
            seen.page.goto(door.page)
            return seen

        yield sight
