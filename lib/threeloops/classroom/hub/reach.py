"""Whether the students' accounts can run this Python and read this book: a hub starts their servers as themselves."""

import os
import stat
import subprocess
import sys
from pathlib import Path

STRANGER = 65534  # nobody: an account that owns nothing and belongs to no group
NEEDED = "import threeloops.quick_start, jupyterhub, jupyterlab, nbgrader, threeloops.drills.engine.sheet"
PATIENCE_S = 120


def barrier(path: Path) -> Path | None:
    """The first folder or file on the way to this one that others may not pass; None where the way is free. A link's
    target is on the way.

    >>> barrier(Path("/")) is None
    True
    """
    for way in dict.fromkeys((path.absolute(), path.resolve())):
        for step in (*reversed(way.parents), way):
            mode = step.stat().st_mode
            needed = stat.S_IXOTH if step != way and stat.S_ISDIR(mode) else stat.S_IROTH
            if not mode & needed:
                return step
    return None


def refuse_unless_open(book: Path, folder: Path) -> None:
    """Refuse a hub whose students could not start their servers.

    Raises:   ValueError, with the folder that keeps them out and what would help
    """
    fix = (
        "install the book where everybody may read, with a Python that everybody may run: as /srv/three-loops/book,"
        " by `/usr/bin/python3 book.py setup --hub`"
    )
    for what, path in (
        ("run this Python", Path(sys.executable)),
        ("load its standard library", Path(os.__file__)),
        ("read this book", book / "lib" / "threeloops"),
    ):
        closed = barrier(path)
        if closed:
            raise ValueError(f"students could not {what}: {path} lies behind {closed}, which is closed to them; {fix}")
    closed = barrier(folder.parent)
    if closed:
        raise ValueError(f"students could not reach {folder}: {closed} is closed to them; try /srv/three-loops/hub")
    tried = subprocess.run(
        [sys.executable, "-c", NEEDED],
        user=STRANGER,
        group=STRANGER,
        extra_groups=[],
        cwd="/",
        env=os.environ | {"HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    if tried.returncode:
        why = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ValueError(f"students could not load what their servers need ({why}); {fix}")
