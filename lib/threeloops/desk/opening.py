"""Opening: from a word to an open book, one line that says where it is and how to come back, and a clean end."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import urllib.request
import webbrowser
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from threeloops import wall_clock
from threeloops.desk import copies
from threeloops.desk.jupyter import lab_command
from threeloops.desk.start_page import written_page
from threeloops.drills.engine.ask_first import READER

START_S = 120  # a cold disk may need a minute for JupyterLab
ANSWERS_S = 5


def open_book(word: str | None, *, browser: bool, root: Path, teach: bool = False) -> int:
    """Open the start page, or the reader's copy of a part, a drill set ("drills/kv_cache") or a whole chapter
    ("chapters/1_inner_loop"); ends when the server does.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise ValueError("JupyterLab is not installed here; `python3 book.py` installs it and opens the book")
    if not copies.chapters(root):
        raise ValueError("chapters/ holds no notebook; fetch the book's repository again")
    key = copies.find_notebook(word, root)[0] if word else None
    print("Opening the book ...", flush=True)
    made = copies.all_copies(root)
    written_page(root)
    copy = None
    if key is not None:
        copy = made[key] if key in made else copies.whole_copy(root / key, root)
    address = "" if teach else _open_already(copy, root)  # that one may have been opened without a teacher's tools
    if address:
        print(f"The book is open already: {address}\nCtrl-C in the terminal where it was opened closes it.", flush=True)
        if browser:
            webbrowser.open(address)
        return 0
    return serve(lab_command(copy, browser=browser, root=root, teach=teach), root)


def serve(command: list[str], root: Path) -> int:
    """Run the server with its log in a file until it ends, or Ctrl-C or a `kill` of this process ends it."""
    log = root / "my" / "lab" / "server.log"
    noted = _notes()
    in_background = signal.getsignal(signal.SIGINT) == signal.SIG_IGN  # a shell's `&`: no Ctrl-C comes here
    closes = f"`kill {os.getpid()}`" if in_background else "Ctrl-C here"
    with log.open("w", encoding="utf-8") as stream:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=root,
            env=os.environ | {READER: "1"},
        )
        before = signal.signal(signal.SIGTERM, lambda *_: server.terminate())  # it closes its kernels; we end with it
        try:
            address = _address(server, root, noted)
            if not address:
                print(f"JupyterLab did not start; its log says why: {log}", file=sys.stderr)
                return server.wait() or 1
            print(
                f"The book is open: {address}\n{closes} closes it, `book.py` opens it again; your work is in my/,"
                f" the server's log in {log.relative_to(root)}.",
                flush=True,
            )
            return server.wait()
        except KeyboardInterrupt:  # the server has had it too, and closes its kernels
            return _closed(server)
        finally:
            signal.signal(signal.SIGTERM, before)


def _closed(server: "subprocess.Popen[bytes]") -> int:
    try:
        server.wait(15)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        server.terminate()
        server.wait()
    print("\nClosed.")
    return 0


def _address(server: "subprocess.Popen[bytes]", root: Path, noted: dict[Path, int]) -> str:
    """Where the server that has just been started can be reached, token and all; empty if it ended or never was. Its
    note is one that was not there before, whatever the clock says.
    """
    found: list[dict[str, Any]] = []

    def answered() -> bool:
        found.extend(_servers(root, but=noted))
        return bool(found) or server.poll() is not None

    wall_clock.until(answered, limit_s=START_S, step_s=0.1)
    return f"{found[0]['url']}lab?token={found[0]['token']}" if found else ""


def _notes() -> dict[Path, int]:
    """The note of each of Jupyter's servers, and when it was written (ns); one that was killed has left its own."""
    from jupyter_core.paths import jupyter_runtime_dir

    notes = {}
    for path in Path(jupyter_runtime_dir()).glob("jpserver-*.json"):
        with contextlib.suppress(OSError):  # one that has just gone
            notes[path] = path.stat().st_mtime_ns
    return notes


def _servers(root: Path, *, but: Mapping[Path, int] = MappingProxyType({})) -> Iterator[dict[str, Any]]:
    """What Jupyter's servers in this folder have noted of themselves, but for these notes."""
    for path, written_ns in _notes().items():
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            if but.get(path) != written_ns and Path(about["root_dir"]).samefile(root):
                yield about
        except (OSError, ValueError, KeyError):  # one that is being written, or has just gone
            continue


def _open_already(copy: Path | None, root: Path) -> str:
    """Where the book's own server that runs in this folder shows a notebook, or the start page; empty if none does."""
    tree = f"/tree/{quote(copy.relative_to(root).as_posix())}" if copy else ""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # this machine is reached without a proxy
    for about in _servers(root):
        try:
            direct.open(f"{about['url']}threeloops/start?token={about['token']}", timeout=ANSWERS_S).close()
        except OSError:  # gone, or a JupyterLab without the book's extension
            continue
        return f"{about['url']}lab{tree}?token={about['token']}"
    return ""
