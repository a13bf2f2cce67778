"""A reader's own drill set is graded from the desk, as `book.py grade` does it, in a process of its own."""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

from threeloops.desk.begun import marks

GRADES = "threeloops.desk.grading"  # this module, which is run for it
GRADES_S = 300  # the longest that a set of functions takes on a busy machine, and more


def graded(name: str, root: Path) -> str:
    """What grading a reader's own drill set says, its mark and its feedback page, as JSON."""
    command = [sys.executable, "-m", GRADES, f"my/drills/{name}", str(root)]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", timeout=GRADES_S, check=False)
    except subprocess.TimeoutExpired:
        late = f"Grading {name} took more than {GRADES_S} s and was stopped; `python3 book.py grade my/drills/{name}`"
        return json.dumps({"said": f"{late} in a terminal waits for it.", "page": "", "mark": ""})
    said = (done.stdout + (done.stderr if done.returncode else "")).strip()
    page = re.search(r"^Feedback.*: (\S.*\.html)$", done.stdout, re.MULTILINE)
    place = below(Path(page[1]), root) if page else ""
    if page and not place:
        said += f"\nThat page is outside {root}, which is all that JupyterLab shows: a browser opens it as a file."
    return json.dumps({"said": said, "page": place, "mark": marks(root).get(name, "") if page else ""})


def below(page: Path, root: Path) -> str:
    """A page's place in the book's folder, also where my/ is a link to another disk; empty where it is outside.

    >>> below(Path("/book/my/graded/a.html"), Path("/book")), below(Path("/else/a.html"), Path("/book"))
    ('my/graded/a.html', '')
    """
    ways = ((page, root), (page.resolve(), root.resolve()))
    return next((at.relative_to(top).as_posix() for at, top in ways if at.is_relative_to(top)), "")


if __name__ == "__main__":
    from threeloops.classroom.grade import grade  # the desk itself opens without a classroom

    asked = functools.partial(grade, Path(sys.argv[1]), root=Path(sys.argv[2]), code=None, roster=None, work=None)
    sys.exit(asked(browser=False, trust_students=False))
