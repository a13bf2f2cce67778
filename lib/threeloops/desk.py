"""The reader's desk: copies of the notebooks that are theirs to write in.

The committed chapters are executed, for reading on a code host. The reader works in copies under my/, with outputs
cleared, so that no answer stands under its question and no update touches anyone's work. A new edition arrives beside
the old copy; `reset` keeps the old one aside.
"""

import datetime
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from threeloops import checks
from threeloops.contents import Place, book_root, find_place


def history_path() -> Path:
    """Where the reader's attempts are kept; another file where THREELOOPS_HISTORY names one."""
    return (
        Path(os.environ["THREELOOPS_HISTORY"])
        if os.environ.get("THREELOOPS_HISTORY")
        else book_root() / "my" / "history.sqlite3"
    )


def find_notebook(word: str, root: Path) -> tuple[str, Place | None]:
    """The notebook that a reader means, and the part of it: a part as find_place knows it, a drill set as
    "drills/kv_cache", or "drills/interview".
    """
    if word.startswith("drills/"):
        sets = {path.stem: path.relative_to(root).as_posix() for path in drill_notebooks(root)}
        name = word.split("/")[1].removesuffix(".ipynb")
        checks.one_of(sets, drill_set=name)
        return sets[name], None
    place = find_place(word, root)
    return place.notebook, place


def drill_notebooks(root: Path) -> list[Path]:
    """Every drill set, and the interview room beside them."""
    return [*sorted(root.glob("drills/*.ipynb")), *sorted(root.glob("drills/*/*.ipynb"))]


def cleared(notebook: dict) -> dict:  # type: ignore[type-arg]
    """The notebook without outputs and execution counts."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return notebook


def _write(notebook: dict, path: Path) -> str:  # type: ignore[type-arg]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def readers_copy(source: Path, root: Path) -> Path:
    """The reader's copy of a notebook; made on first use, renewed while untouched, and otherwise joined by the new
    edition.

    my/editions.json remembers, for every copy, which edition it came from and what was written, so that an untouched
    copy is known.
    """
    record_path = root / "my" / "editions.json"
    record: dict[str, dict[str, str]]
    try:
        record = json.loads(record_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        record = {}
    edition = _digest(source)
    relative = source.relative_to(root).as_posix()
    seen: dict[str, str] = record.get(relative, {})
    copy = root / "my" / seen.get("copy", relative)
    if copy.exists() and seen.get("edition") == edition:
        return copy
    if copy.exists() and _digest(copy) != seen.get("written"):
        copy = root / "my" / relative.replace(".ipynb", f".edition-{edition[:6]}.ipynb")
        print(f"A new edition of {source.name} is here; your own copy stays beside it.")
    written = _write(cleared(json.loads(source.read_text(encoding="utf-8"))), copy)
    record[relative] = {"copy": copy.relative_to(root / "my").as_posix(), "edition": edition, "written": written}
    record_path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return copy


def reset(word: str, root: Path) -> tuple[Path, Path | None]:
    """Start the notebook of a part, or a drill set, afresh: (the new copy, where the old one was kept, None if there
    was none).
    """
    source = root / find_notebook(word, root)[0]
    copy = readers_copy(source, root)
    aside = None
    if json.loads(copy.read_text(encoding="utf-8")) != cleared(json.loads(source.read_text(encoding="utf-8"))):
        moment = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
        aside = root / "my" / "aside" / f"{copy.stem}.{moment}.ipynb"
        aside.parent.mkdir(parents=True, exist_ok=True)
        copy.replace(aside)
        copy = readers_copy(source, root)
    return copy, aside


def lab_settings(root: Path) -> Path:
    """JupyterLab's settings for the book: no news pop-up, no call home. Kept in my/, out of the reader's own
    configuration.
    """
    path = root / "my" / "lab" / "overrides.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    notes = {"fetchNews": "false", "checkForUpdates": False}
    path.write_text(
        json.dumps({"@jupyterlab/apputils-extension:notification": notes}, indent=1) + "\n", encoding="utf-8"
    )
    return path.parent


def lab_config(notebook: str, place: Place | None, root: Path) -> Path:
    """Server settings that name the cell to open at. Not in the address: Jupyter adds its token to the end, where a #
    would swallow it.
    """
    path = lab_settings(root) / "server.json"
    page = {"threeloopsCell": place.cell, "threeloopsNotebook": notebook} if place else {}
    path.write_text(
        json.dumps({"ServerApp": {"tornado_settings": {"page_config_data": page}}}, indent=1) + "\n", encoding="utf-8"
    )
    return path


def lab_command(copy: Path, place: Place | None, *, browser: bool, root: Path) -> list[str]:
    """The command that starts JupyterLab on a notebook of the book.

    Its extension (lab/) shows the contents panel and goes to the part: JupyterLab by itself opens every notebook at
    its top.
    """
    notebook = copy.relative_to(root).as_posix()
    return [
        *(sys.executable, "-m", "jupyterlab"),
        f"--config={lab_config(notebook, place, root)}",
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{quote(notebook)}",
        f"--LabApp.app_settings_dir={lab_settings(root)}",
        f"--LabApp.extra_labextensions_path={Path(__file__).with_name('lab')}",
        *([] if browser else ["--no-browser"]),
        *_as_root(),
    ]


def all_copies(root: Path) -> dict[str, Path]:
    """The reader's copy of every chapter, every drill set and the interview room, made where it is missing:
    "chapters/1_inner_loop.ipynb" -> its copy.
    """
    sources = [*sorted(root.glob("chapters/*.ipynb")), *drill_notebooks(root)]
    return {source.relative_to(root).as_posix(): readers_copy(source, root) for source in sources}


def open_book(word: str | None, *, browser: bool, root: Path) -> int:
    """Open the reader's copy in JupyterLab, at a part of a chapter or at a drill set ("drills/kv_cache"); ends when
    the server does.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise ValueError("JupyterLab is not installed here; `python3 book.py` installs it and opens the book")
    copies = all_copies(root)
    if not copies:
        raise ValueError("chapters/ holds no notebook; fetch the book's repository again")
    name, place = find_notebook(word, root) if word else (next(iter(copies)), None)
    return subprocess.call(lab_command(copies[name], place, browser=browser, root=root))


def _as_root() -> list[str]:
    """JupyterLab refuses to run as root unless told; in a container or on a rented machine root is who one is."""
    return ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
