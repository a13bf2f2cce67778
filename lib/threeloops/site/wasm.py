"""Python for the pages: CPython in WebAssembly (Pyodide), with the same library that the book runs, compiled for it.

Everything lies inside the folder of pages, and nothing of it is fetched before a reader answers a question or turns a
control.
"""

import ast
import functools
import gzip
import hashlib
import importlib.util
import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path

from threeloops.drills.engine import bank
from threeloops.site import exploring, npm

LIBRARY = Path(__file__).resolve().parents[1]
ENTRIES = (
    *(f"threeloops.site.{name}" for name in ("answering", "functions", "remembering")),
    # found by their folders when they run, so that no import names them
    *(f"threeloops.drills.{family}{kind}" for family in bank.families() for kind in ("", ".functions")),
)
# What no answer needs: explorers, the interview room, a service that is sized, the code of the chapters.
MORE = (
    *(f"threeloops.site.{name}" for name in ("exploring", "rehearsal.sitting", "running.kernel")),
    "threeloops.commands.serve.on_page",
    *map(exploring.module_name, exploring.EXPLORERS),
)
# What reads units and what spreads repeats, with what they need themselves.
FROM_ELSEWHERE = ("fsrs", "flexcache", "flexparser", "pint", "platformdirs", "typing_extensions")
# Of the standard library: what talks to networks, terminals and other processes, which the page has not.
LEFT_OUT = (
    *("_pyrepl", "imaplib.py", "multiprocessing", "pdb.py", "pydoc.py", "pydoc_data", "unittest", "wsgiref"),
    *("xml", "xmlrpc", "doctest.py", "ftplib.py", "poplib.py", "smtplib.py", "tarfile.py", "turtle.py"),
    *("ensurepip", "mailbox.py", "pickletools.py", "plistlib.py", "pstats.py", "socketserver.py", "venv"),
)
DATA = (".json", ".sql", ".toml")


class CompileError(ValueError):
    """The library could not be compiled for the pages."""


def needed(*entries: str) -> set[str]:
    """Some modules of the book and every one that they import, at the top or inside a function, with its packages.

    >>> found = needed("threeloops.room.question")
    >>> "threeloops.drills.engine.judge" in found, any("measure" in name for name in found)
    (True, False)
    """
    found: set[str] = set()
    waiting = [*entries]
    while waiting:
        name = waiting.pop()
        path = path_of(name)
        if name in found or path is None:
            continue
        found.add(name)
        waiting += [name.rpartition(".")[0], *_imported(path)]
    return found


@functools.cache
def path_of(name: str) -> Path | None:
    """The file of a module of the book."""
    if name.partition(".")[0] != "threeloops":
        return None
    below = LIBRARY.joinpath(*name.split(".")[1:])
    return next((path for path in (below.with_suffix(".py"), below / "__init__.py") if path.is_file()), None)


@functools.cache
def _imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


def bundle(into: Path, work: Path, *, imported: Iterable[str] = ()) -> None:
    """Write everything that runs Python in a page: the interpreter, its standard library, the book's. `imported` are
    the modules that the code of the chapters may import.
    """
    pyodide = npm.kept("pyodide")
    code = work / "code"
    _gather(code, pyodide, imported)
    done = subprocess.run(
        [*npm.node(), str(Path(__file__).with_name("compile.mjs")), str(pyodide), str(code)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CompileError(f"the library could not be compiled for the pages: {(done.stderr or done.stdout)[-500:]}")
    into.mkdir(parents=True)
    for name in ("book", "more"):
        _pack(code / name, into / f"{name}.zip")
    _pack(code / "standard", into / "standard.zip")
    shutil.copy(pyodide / "pyodide.mjs", into)
    # packed here and unpacked by the page: not every host packs what it sends
    for name in ("pyodide.asm.mjs", "pyodide.asm.wasm"):
        (into / f"{name}.gz").write_bytes(gzip.compress((pyodide / name).read_bytes(), 9, mtime=0))
    lock = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    contents = {path.name: path.read_bytes() for path in sorted(into.iterdir())}
    files = {name: {"bytes": len(held), "sha256": hashlib.sha256(held).hexdigest()} for name, held in contents.items()}
    bytes_in_all = sum(len(held) for name, held in contents.items() if name != "more.zip")
    told = {"lock": {"info": lock["info"], "packages": {}}, "bytes": bytes_in_all, "files": files}
    (into / "about.json").write_text(json.dumps(told), encoding="utf-8")


def _gather(code: Path, pyodide: Path, imported: Iterable[str]) -> None:
    """Lay out what is to be compiled."""
    book, more, standard = code / "book", code / "more", code / "standard"
    first = needed(*ENTRIES)
    for folder, names in ((book, first), (more, needed(*MORE, *imported) - first)):
        for name in sorted(names):
            path = path_of(name)
            assert path is not None
            _copy(path, folder)
    for path in LIBRARY.rglob("*"):
        if path.suffix in DATA:
            rooms = [folder for folder in (book, more) if _copied(path.parents[1], folder).is_dir()]
            for folder in rooms[:1]:
                _copy(path, folder)
    for name in FROM_ELSEWHERE:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise CompileError(f"{name} is not installed here; `python3 book.py site` installs it")
        source = Path(spec.origin)
        if source.name == "__init__.py":
            shutil.copytree(
                source.parent, book / name, ignore=shutil.ignore_patterns("__pycache__", "testsuite", "*.txt")
            )
        else:
            shutil.copy(source, book)
    with zipfile.ZipFile(pyodide / "python_stdlib.zip") as archive:
        archive.extractall(standard, [name for name in archive.namelist() if name.split("/")[0] not in LEFT_OUT])


def _copied(path: Path, folder: Path) -> Path:
    return folder / path.relative_to(LIBRARY.parent)


def _copy(path: Path, folder: Path) -> None:
    _copied(path, folder).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, _copied(path, folder))


def _pack(folder: Path, archive: Path) -> None:
    """The compiled files of a folder, and its data, as an archive that is the same whenever it is made."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as made:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".pyc", *DATA):
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix())
                entry.compress_type = zipfile.ZIP_DEFLATED
                made.writestr(entry, path.read_bytes())
