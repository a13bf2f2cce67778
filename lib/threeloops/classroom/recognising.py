"""Which drill set a file is of, by what is in it, and what it is where it is of none.

What tells a set is its questions: the grade ids in the cells' metadata and the drills that its cells ask. Where a tool
has dropped the metadata and somebody the asking cells, the names of its answers tell it. A file's own name counts only
where nothing in it says anything, as in a notebook that was cut off on its way. The bytes are searched and never
parsed: this is done to every file of every student.
"""

import functools
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from threeloops import contents
from threeloops.classroom import uploads
from threeloops.classroom.questions import mark, questions
from threeloops.classroom.uploads import Upload

# Of one person: beyond these, files are named and not looked into.
MOST_LOOKED_AT = 100
MOST_LOOKED_AT_BYTES = 400_000_000
MOST_ZIPS = 5
LEAST = 2  # grade ids and drills, or names, of one set
GRADE_ID = re.compile(rb'"grade_id"\s{0,9}:\s{0,9}"([\w-]{1,80})"')
DRILL = re.compile(rb"""sheet\.(?:ask|check|check_function)\(\s{0,9}\\?["']([\w-]{1,80})""")
NAME = re.compile(rb'(?:"|\\n)(?:def )?([A-Za-z_]\w{0,60})[ ]{0,3}(?:=[^=.]|\()')
# By what a file's name ends in: what it is, for the teacher who has to ask for another.
KINDS = {
    "a web page": (".html", ".htm", ".mhtml", ".xhtml"),
    "a PDF": (".pdf",),
    "a Python script": (".py",),
    "a zip in a zip, or one too many, which is not opened": (".zip",),
    "an archive of another kind than zip": (".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz"),
    "a shortcut to a file elsewhere": (".url", ".webloc", ".lnk", ".desktop", ".gdoc", ".gsheet", ".gslides"),
    "a picture": (".png", ".jpg", ".jpeg", ".heic", ".gif", ".webp", ".svg"),
    "a text document": (".doc", ".docx", ".odt", ".rtf", ".pages", ".tex", ".md"),
    "a table": (".csv", ".xls", ".xlsx", ".ods"),
}
ENDINGS = {ending: kind for kind, endings in KINDS.items() for ending in endings}
STARTS = {b"%PDF": "a PDF", b"PK\x03\x04": "a zip or an office document", b"<": "a web page"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One file, looked into."""

    upload: Upload
    of: str | None  # the drill set that it is of
    told: str = ""  # what it is, where it is of none


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What tells one set from the others."""

    ids: frozenset[str]
    drills: frozenset[str]
    names: frozenset[str]


@functools.cache
def _sets(root: Path) -> dict[str, _Told]:
    """Every released set."""
    found = {}
    for path in sorted(root.glob("drills/*/*.ipynb")):
        if path.stem == path.parent.name:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            asked = questions(notebook)
            found[path.stem] = _Told(
                ids=frozenset(str(mark(cell, "grade_id")) for cell in notebook["cells"] if mark(cell, "grade_id")),
                drills=frozenset(one.drill for one in asked),
                names=frozenset(one.name for one in asked),
            )
    return found


def _matches(pattern: re.Pattern[bytes], content: bytes) -> set[str]:
    return {found.decode() for found in set(pattern.findall(content))}


def is_json(content: bytes) -> bool:
    """Does this begin as a notebook does?"""
    return content[:200].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"


def set_within(content: bytes, sets: Collection[str]) -> str | None:
    """The set whose questions stand in a notebook's bytes; None for none, or what is no notebook.

    >>> set_within(
    ...     rb'{"cells": [{"source": "sheet.check(\\"kv-latent\\", a)\\nsheet.ask(\\"kv-scales\\")"}]}', ["kv_cache"]
    ... )
    'kv_cache'
    """
    content = _eight_bits(content)
    if not is_json(content):
        return None
    known = {name: told for name, told in _sets(contents.book_root()).items() if name in sets}
    ids, drills = _matches(GRADE_ID, content), _matches(DRILL, content)
    found = {name: (len(told.ids & ids) + len(told.drills & drills), told) for name, told in known.items()}
    if not any(count >= LEAST for count, _ in found.values()):
        names = _matches(NAME, content)
        found = {name: (len(told.names & names), told) for name, told in known.items()}
    best = max(found, key=lambda name: (found[name][0], found[name][0] / len(found[name][1].names)), default=None)
    return best if best and found[best][0] >= LEAST else None


def _eight_bits(content: bytes) -> bytes:
    """What an editor has saved in UTF-16, in UTF-8."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", "replace").encode()
    return content


def set_by_name(path: str, sets: Collection[str]) -> str | None:
    """The set that a file is called by, however it was renamed.

    >>> [set_by_name(name, ["kv_cache", "queues"]) for name in ("Copy of KV Cache (1).ipynb", "a_1_2_kv_cache-2.ipynb")]
    ['kv_cache', 'kv_cache']
    """
    called = re.sub(r"[\W_]+", "_", path.casefold().rpartition("/")[2])
    fits = [name for name in sets if re.search(rf"(?:^|_){re.escape(name)}(?:_|$)", called)]
    return max(fits, key=len, default=None)


def set_of(path: str, content: bytes, sets: Collection[str]) -> str | None:
    """The set that a file is of: by what is in it, or by its name where it is called a notebook and says nothing."""
    within = set_within(content, sets)
    if within or not (path.casefold().endswith(".ipynb") or is_json(content)):
        return within
    return set_by_name(path, sets)


def is_of_another_kind(path: str) -> bool:
    """Does its name say that this is no notebook, so that it need not be read?"""
    return PurePosixPath(path).suffix.casefold() in ENDINGS


def kind(path: str, content: bytes = b"") -> str:
    """What a file is that is no notebook of a drill set, as far as its name and its first bytes say.

    >>> kind("kv_cache.html"), kind("essay.ipynb", b'{"cells": []}'), kind("notes.txt", b"see my notebook")
    ('a web page', 'a notebook that asks nothing of a drill set', 'no notebook')
    """
    ending = PurePosixPath(path).suffix.casefold()
    if ending in ENDINGS:
        return ENDINGS[ending]
    if is_json(content) and b'"cells"' in content[: 1 << 20]:
        return "a notebook that asks nothing of a drill set"
    return next((told for start, told in STARTS.items() if content[:9].lstrip().startswith(start)), "no notebook")


def looked_through(files: Sequence[Upload], sets: Sequence[str], asked: str | None) -> list[Looked]:
    """One person's files, each looked into as far as there is room; zips are looked through."""
    opened: list[Upload] = []
    zips = 0
    for upload in files:
        is_zip = upload.opened and not upload.inside and upload.label.casefold().endswith(".zip")
        zips += bool(is_zip)
        opened += uploads.within(upload) if is_zip and zips <= MOST_ZIPS else [upload]
    room, found = MOST_LOOKED_AT_BYTES, []
    opened.sort(key=lambda one: _first(one, asked))
    for number, upload in enumerate(opened):
        room -= upload.size
        if number < MOST_LOOKED_AT and (room >= 0 or not number):
            found.append(looked_into(upload, sets))
        else:
            found.append(Looked(upload=upload, of=None, told=upload.why or "not looked into, for there is too much"))
    return sorted(found, key=lambda one: _natural(one.upload.shown))


def _first(upload: Upload, asked: str | None) -> tuple[bool, bool]:
    """Notebooks are looked into before other files, those that are called by the set before others."""
    called = upload.shown.casefold()
    return not (asked and set_by_name(called, [asked])), not called.endswith(".ipynb")


def _natural(label: str) -> list[tuple[int, str]]:
    """Names in the order that people count in: (2) before (10)."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,9})", label)]


def looked_into(upload: Upload, sets: Sequence[str]) -> Looked:
    if upload.why or is_of_another_kind(upload.shown):
        return Looked(upload=upload, of=None, told=upload.why or kind(upload.shown))
    content = upload.read_start()
    if is_json(_eight_bits(content)):
        content = upload.read()
    name = set_of(upload.shown, content, sets)
    return Looked(upload=upload, of=name, told="" if name else kind(upload.shown, content))
