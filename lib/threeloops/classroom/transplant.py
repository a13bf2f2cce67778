"""The student's own cells, set into the released notebook.

A submission is a file that anybody may have written with any tool. Only the sources of its answer cells, and of code
cells that the student added, are taken; everything else, every test, point and mark, comes from the release. Deleted,
edited, doubled or relabelled cells then cannot matter. Where an editor has dropped what tells an answer cell, or
the student has split, merged, moved or retyped it, `placing` finds the answer by its name and its place, and says so.
"""

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from threeloops import units
from threeloops.classroom.placing import is_answer, placed
from threeloops.classroom.questions import Notebook, bound, is_python, source
from threeloops.classroom.sources_only import PIECE_BYTES, without_outputs
from threeloops.drills.engine.student_draws import plain_id

LARGEST_FILE_BYTES = 20_000_000
LONGEST_CELL = 100_000  # characters
MOST_ADDED_CELLS = 200
MOST_CELLS = 5_000
MOST_BRACKETS = 1_000_000  # each object takes some hundred bytes once it is read, however few it takes in the file

# Colab writes a picture into the text of its cell.
PICTURE = re.compile(r"data:image/[\w.+-]{1,40};base64,[\w+/=]{100,}")
# What word processors and telephones put in place of the quotes and blanks that Python reads.
PLAIN = str.maketrans(
    {chr(code): " " for code in (0xA0, 0x202F, 0x2007, 0x3000)}
    | {chr(code): "'" for code in (0x2018, 0x2019, 0x201A, 0xB4)}
    | {chr(code): '"' for code in (0x201C, 0x201D, 0x201E)}
    | {chr(code): "" for code in (0x200B, 0x200C, 0x200D, 0xFEFF)}
)
ODD = frozenset(map(chr, PLAIN))
PACKED = {b"PK\x03\x04": "a zip or an office document", b"\x1f\x8b": "packed by gzip", b"7z\xbc\xaf": "packed by 7-Zip"}


class UnparsableError(ValueError):
    """Not a notebook; the message says what is wrong with it."""


def parsed(content: bytes) -> Notebook:
    """The notebook in a file's bytes.

    Raises:   UnparsableError, in one sentence, for whatever is not a notebook of format 4
    """
    if not content.strip():
        raise UnparsableError("the file is empty, or was damaged or encrypted on its way")
    if len(content) > LARGEST_FILE_BYTES or _brackets(content) > MOST_BRACKETS:
        content = _sources(content)
    if len(content) > LARGEST_FILE_BYTES:
        raise UnparsableError(f"the file is larger than {LARGEST_FILE_BYTES:,} bytes, its outputs not counted")
    if _brackets(content) > MOST_BRACKETS:
        raise UnparsableError(f"the file holds more than {MOST_BRACKETS:,} lists and objects, its outputs not counted")
    if content[:200].lstrip().startswith(b"<"):
        raise UnparsableError("the file is a web page, so it is no notebook; the .ipynb file itself is needed")
    if told := next((what for start, what in PACKED.items() if content.startswith(start)), ""):
        raise UnparsableError(f"the file is {told} under another name; the notebook in it is needed")
    try:
        notebook = json.loads(_text(content))
    except (ValueError, RecursionError):
        raise UnparsableError(
            "the file is not JSON, so it is no notebook (cut off on its way, or merged with conflict marks?)"
        ) from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise UnparsableError("the file holds no list of cells, so it is no notebook of format 4")
    if len(notebook["cells"]) > MOST_CELLS:
        raise UnparsableError(f"the notebook has {len(notebook['cells']):,} cells; at most {MOST_CELLS:,} are read")
    if notebook.get("nbformat") != 4:
        raise UnparsableError(
            f"the notebook's format is {repr(notebook.get('nbformat'))[:20]}, not 4; open and save it in JupyterLab"
        )
    return notebook


def _text(content: bytes) -> str | bytes:
    """What JSON is read from: UTF-8, -16 or -32; what is none of these is what editors of Windows save."""
    try:
        content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")
    return content


def _brackets(content: bytes) -> int:
    return content.count(b"{") + content.count(b"[")


def _sources(content: bytes) -> bytes:
    """The file without its outputs, or as it was where those are past counting."""
    view = memoryview(content)
    pieces = (bytes(view[at : at + PIECE_BYTES]) for at in range(0, len(content), PIECE_BYTES))
    try:
        return b"".join(without_outputs(pieces))
    except ValueError:
        return content


def _readable(notebook: Notebook, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The cells that can be read at all: pictures in their text left out, quotes and blanks of a word processor made
    plain where they keep Python from reading.
    """
    unread: Counter[str] = Counter()
    for cell in notebook["cells"]:
        if not isinstance(cell, dict):
            continue
        if not isinstance(cell.get("source", ""), str | list):
            unread["whose source is no text not read"] += 1
            continue
        text = PICTURE.sub("(picture)", source(cell))
        if len(text) > LONGEST_CELL:
            unread[f"of more than {LONGEST_CELL:,} characters not read"] += 1
            continue
        if cell.get("cell_type") == "code" and not ODD.isdisjoint(text) and not is_python(text):
            plain = text.translate(PLAIN)
            if is_python(plain):
                text = plain
                unread["with quotes or blanks of a word processor, read as plain ones"] += 1
        yield cell if text == source(cell) else cell | {"source": text}
    notes += [f"{units.counted(times, 'cell')} {how}" for how, times in unread.items()]


def disarmed(prose: str) -> str:
    """A student's prose without HTML and links: a teacher's page shows it, and must run nothing from it.

    >>> disarmed("a <b>bold</b> [claim](javascript:alert(1)), as https://a.b/ says")
    'a &lt;b>bold&lt;/b> [claim] (javascript:alert(1)), as https&#58;//a.b/ says'
    """
    return re.sub(r":(?=//)", "&#58;", re.sub(r"\](?=[(:\[])", "] ", prose.replace("<", "&lt;")))


def transplanted(release: Notebook, submission: Notebook) -> dict[str, Any]:
    """The release with the student's answers in it, and the student's added code cells where they stood."""
    return told(release, submission)[0]


def told(release: Notebook, submission: Notebook) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The same, and a sentence for whatever was not found where it belongs, or could not be taken."""
    result: dict[str, Any] = copy.deepcopy(dict(release))
    notes: list[str] = []
    found = placed(result["cells"], list(_readable(submission, notes)))
    merged: list[dict[str, Any]] = []
    added = 0
    for number in range(-1, len(result["cells"])):
        if number >= 0:
            released = result["cells"][number]
            text = found.answers.get(number, source(released))
            released["source"] = disarmed(text) if _is_prose(released) else text
            merged += [_added(one, added + more) for more, one in enumerate(found.before.get(number, ()))]
            added += len(found.before.get(number, ()))
            merged.append(released)
        merged += [_added(one, added + more) for more, one in enumerate(found.after.get(number, ()))]
        added += len(found.after.get(number, ()))
    if added > MOST_ADDED_CELLS:
        notes.append(f"of {added:,} added cells the first {MOST_ADDED_CELLS} were taken")
        beyond = {f"added-{number}" for number in range(MOST_ADDED_CELLS, added)}
        merged = [cell for cell in merged if cell["id"] not in beyond]
    result["cells"] = merged
    return result, (*notes, *found.notes)


def _is_prose(released: dict[str, Any]) -> bool:
    return is_answer(released) and released["cell_type"] == "markdown"


def worked_in(release: Notebook, submission: Notebook) -> int:
    """How many answers a student has written, the explanation among them; comments alone are none."""
    asked = [cell for cell in release["cells"] if is_answer(cell) and not _says_who(cell)]
    before = {cell["id"]: _without_comments(cell) for cell in asked}
    after = {cell["id"]: _without_comments(cell) for cell in transplanted(release, submission)["cells"]}
    return sum(after[key] not in ("", text) for key, text in before.items())


def _without_comments(cell: dict[str, Any]) -> str:
    lines = [
        (line.partition("#")[0] if cell["cell_type"] == "code" else line).rstrip() for line in source(cell).splitlines()
    ]
    return "\n".join(line for line in lines if line)


def says(content: bytes, name: str) -> str:
    """What a notebook says about its student or course: read from its text, nothing is run. Empty if it says
    nothing.
    """
    try:
        cells = parsed(content)["cells"]
    except UnparsableError:
        return ""
    texts = [source(cell) for cell in cells if isinstance(cell, dict) and isinstance(cell.get("source"), str | list)]
    match = re.search(rf"""^{name}\s*=\s*["']([^"'\n]*)["']""", "\n".join(texts), re.MULTILINE)
    return plain_id(match[1]) if match else ""


def _says_who(cell: dict[str, Any]) -> bool:
    return {"student", "course"} <= bound(source(cell))


def _added(text: str, number: int) -> dict[str, Any]:
    """A student's own code cell, stripped to its source."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"added-{number}",
        "metadata": {},
        "outputs": [],
        "source": text,
    }
