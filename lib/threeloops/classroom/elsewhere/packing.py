"""What of the book is needed where one hand-in is graded: the judge, the formulas that it judges by, one drill set.

A set's source is packed without its solutions: between the marks of each stands nothing, so the release that is made
from it is the same to the last byte, and who opens the package finds no answer. Of the chapters only the prose is
packed, from which a verdict says where the book teaches what went wrong.
"""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from threeloops import checks

BOOK = "book"  # folder of the book in a package
SETTINGS = "settings.json"
KEY = "grading.key"
PACKAGES = ("filelock", "nbgrader", "pint")  # pinned by requirements.lock
FILES = ("nbgrader_config.py", "requirements.lock", "LICENSE")
# Rooms that no judge enters.
NOT_NEEDED = ("commands", "desk", "figures", "lab", "measure", "paper", "room", "sheets", "site", "widgets")
KINDS = {".py", ".json", ".toml", ".csv", ".j2"}
REGION = re.compile(r"(### BEGIN SOLUTION\n).*?(?=^[ \t]*### END SOLUTION)", re.DOTALL | re.MULTILINE)
STAMP = (1980, 1, 1, 0, 0, 0)  # the same book makes the same package
PROGRAM, PRIVATE = 0o755, 0o600


def without_solutions(notebook: dict[str, object]) -> dict[str, object]:
    """A set's source with nothing between the marks of a solution.

    >>> cell = {"source": "x = ...\\n### BEGIN SOLUTION\\nx = 7\\n### END SOLUTION"}
    >>> without_solutions({"cells": [cell]})["cells"][0]["source"]
    'x = ...\\n### BEGIN SOLUTION\\n### END SOLUTION'
    """
    cells = notebook["cells"]
    assert isinstance(cells, list)
    return notebook | {"cells": [cell | {"source": REGION.sub(r"\1", "".join(cell["source"]))} for cell in cells]}


def book(root: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """(path, content) of every file that grading one set takes.

    Raises:   ValueError when the book has no such set
    """
    sets = sorted(path.parent.name for path in root.glob("solutions/*/*.ipynb") if path.stem == path.parent.name)
    checks.one_of(sets, drill_set=name)
    for file in FILES:
        yield file, (root / file).read_bytes()
    library = root / "lib" / "threeloops"
    for path in sorted(library.rglob("*")):
        inside = path.relative_to(library)
        if path.suffix in KINDS and inside.parts[0] not in NOT_NEEDED and "__pycache__" not in inside.parts:
            yield f"lib/threeloops/{inside.as_posix()}", path.read_bytes()
    source = f"solutions/{name}/{name}.ipynb"
    yield source, _as_json(without_solutions(json.loads((root / source).read_text(encoding="utf-8"))))
    for path in sorted(root.glob("drills/*/*.ipynb")):  # all: a hand-in of another set is named by its set
        yield path.relative_to(root).as_posix(), path.read_bytes()
    for path in sorted(root.glob("chapters/*.ipynb")):
        chapter = json.loads(path.read_text(encoding="utf-8"))
        prose = [cell for cell in chapter["cells"] if cell["cell_type"] == "markdown"]
        yield path.relative_to(root).as_posix(), _as_json(chapter | {"cells": prose})


def _as_json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def write(path: Path, files: Mapping[str, bytes], *, programs: tuple[str, ...] = ()) -> Path:
    """Write a package, whole or not at all; its owner alone may read it, and what is a program can be started."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = path.with_name(f".{path.name}.half")
    half.unlink(missing_ok=True)
    half.touch(mode=PRIVATE)
    with zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, STAMP)
            mode = PROGRAM if name in programs else PRIVATE if name == KEY else 0o644
            member.external_attr = (0o100000 | mode) << 16
            package.writestr(member, content, compress_type=zipfile.ZIP_DEFLATED)
    half.replace(path)
    return path


def settings(**values: object) -> bytes:
    """What the package says of the course, for the grader that runs it."""
    return _as_json(values)
