"""The book's JupyterLab: its settings, kept in my/lab out of the reader's own configuration, and the command that
starts it.

Its extension (threeloops/lab) draws the start page and the cards; the server's half of it is desk/server.py.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

# A reader grades with `book.py grade`, and steps through nothing: these menus, buttons and icons are a teacher's.
TEACHERS = ("@jupyter/nbgrader", "@jupyterlab/debugger-extension")
TEACHERS_SERVERS = ("assignment_list", "course_list", "formgrader", "validate_assignment")


def lab_settings(root: Path, *, teach: bool) -> Path:
    """JupyterLab's settings for the book: no news pop-up, no call home, and for readers nothing of nbgrader's."""
    folder = root / "my" / "lab"
    notes = {"fetchNews": "false", "checkForUpdates": False}
    _write(folder / "overrides.json", {"@jupyterlab/apputils-extension:notification": notes})
    _write(folder / "page_config.json", {"disabledExtensions": {} if teach else dict.fromkeys(TEACHERS, True)})
    return folder


def lab_config(root: Path, *, teach: bool) -> Path:
    """The server's settings: where the reader's copies lie, and which extensions it loads."""
    extensions = {"threeloops.desk.server": True}
    extensions |= {f"nbgrader.server_extensions.{name}": teach for name in TEACHERS_SERVERS}
    page = {"threeloopsCopies": "my/"}
    config = {"ServerApp": {"jpserver_extensions": extensions, "tornado_settings": {"page_config_data": page}}}
    path = root / "my" / "lab" / "server.json"
    _write(path, config)
    return path


def lab_command(copy: Path | None, *, browser: bool, root: Path, teach: bool = False) -> list[str]:
    """The command that starts JupyterLab on a notebook of the book, or on the start page."""
    opens = f"/lab/tree/{quote(copy.relative_to(root).as_posix())}" if copy else "/lab"
    return [
        *(sys.executable, "-m", "threeloops.quick_start", "jupyterlab"),
        f"--config={lab_config(root, teach=teach)}",
        f"--ServerApp.root_dir={root}",
        "--ServerApp.answer_yes=True",  # Ctrl-C closes: the question would stand in the log
        f"--LabApp.default_url={opens}",
        f"--LabApp.app_settings_dir={lab_settings(root, teach=teach)}",
        # which tabs were open: JupyterLab would bring in those of the reader's other folders
        f"--LabApp.workspaces_dir={root / 'my' / 'lab' / 'workspaces'}",
        f"--LabApp.extra_labextensions_path={Path(__file__).parents[1] / 'lab'}",
        *([] if browser else ["--no-browser"]),
        *_as_root(),
    ]


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _as_root() -> list[str]:
    """JupyterLab refuses to run as root unless told; in a container or on a rented machine root is who one is."""
    return ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
