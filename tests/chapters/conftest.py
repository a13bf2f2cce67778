"""A real JupyterLab, opened the way a reader opens it, and a headless browser to look at it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
START_S = 90
# Every folder in which Jupyter keeps something of a person's own: a test must neither read nor change them.
PERSONAL = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_WORKSPACES_DIR", "JUPYTERLAB_SETTINGS_DIR", "IPYTHONDIR")


@dataclass(frozen=True, kw_only=True)
class Door:
    """A running JupyterLab, and the page with which it would open the reader's browser."""

    root: Path
    page: str


@dataclass(kw_only=True)
class Sight:
    """A page in the browser and what it has complained about."""

    page: Any
    errors: list[str] = field(default_factory=list)


def chromium_path() -> str:
    """Chromium; without it a CI machine fails, and another one skips with the command that would help."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        hint = "no Chromium here: install it with `apt-get install chromium` (Debian) or `brew install chromium` (macOS)"
        if os.environ.get("CI") == "true":
            pytest.fail(hint)
        pytest.skip(hint)
    return path


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    path = chromium_path()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@contextlib.contextmanager
def running(command: list[str], root: Path, personal: Path) -> Iterator[Door]:
    """A JupyterLab that `command` starts; yields when its opening page is there, ends with all its processes."""
    environment = {**os.environ, **{name: str(personal / name.lower()) for name in PERSONAL}}
    log = personal / "jupyterlab.log"
    personal.mkdir(parents=True, exist_ok=True)
    with log.open("w") as stream:
        server = subprocess.Popen(command, env=environment, cwd=root, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield Door(root=root, page=_opening_page(server, personal / "jupyter_runtime_dir", log))
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


def _opening_page(server: Any, runtime: Path, log: Path) -> str:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        pages = list(runtime.glob("jpserver-*-open.html"))
        if pages and "is running at" in log.read_text():
            return pages[0].as_uri()
        assert server.poll() is None, f"JupyterLab ended:\n{log.read_text()}"
        time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start within {START_S} s:\n{log.read_text()}")


@pytest.fixture(scope="module")
def desk_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the reader's door opens, so that no test touches anyone's my/, and none what another has run and saved."""
    root = tmp_path_factory.mktemp("book")
    shutil.copytree(ROOT / "chapters", root / "chapters")
    return root


@pytest.fixture(scope="module")
def open_at(chromium: object, desk_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str | None], Door]]:
    """Open the book at a part, as `python3 book.py PART` does."""
    with contextlib.ExitStack() as stack:

        def door(word: str | None) -> Door:
            code = f"from pathlib import Path; from threeloops import desk; desk.open_book({word!r}, browser=False, root=Path({str(desk_root)!r}))"
            return stack.enter_context(running([sys.executable, "-c", code], desk_root, tmp_path_factory.mktemp("jupyter")))

        yield door


@pytest.fixture(scope="module")
def look(chromium: Any) -> Iterator[Callable[[str], Sight]]:
    """A new page at an address, whose complaints are collected."""
    with contextlib.ExitStack() as stack:

        def sight(address: str) -> Sight:
            context = chromium.new_context(viewport={"width": 1280, "height": 1000})
            stack.callback(context.close)
            seen = Sight(page=context.new_page())
            seen.page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
            seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
            seen.page.goto(address)
            return seen

        yield sight
