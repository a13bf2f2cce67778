"""Whose hand-in this is: the roster's student for a file that a platform has named.

Canvas names files NAME_LATE_USER_FILE_…: the sortable name without spaces, LATE where it came after the due date, and
the numbers of the user and of the file ("Canvas LMS source, lib/content_zipper.rb",
https://github.com/instructure/canvas-lms/blob/master/lib/content_zipper.rb). The user's number is the ID of the
gradebook's export, so a roster that was made from one knows it.

Moodle names folders NAME_NUMBER_assignsubmission_file, with the number of a participant in this one assignment. The
assignment's grading worksheet knows it as “Participant NUMBER”, with the e-mail address and the time of the hand-in
("Moodle source, mod/assign/gradingtable.php", https://github.com/moodle/moodle/blob/main/mod/assign/gradingtable.php).
Without the worksheet the name has to do.
"""

import datetime as dt
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from threeloops.classroom.intake import CANVAS, MOODLE, Submission
from threeloops.classroom.term import lists
from threeloops.classroom.term.languages import moodle_time, worksheet_columns
from threeloops.classroom.term.people import Person
from threeloops.drills.engine.student_draws import plain_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One participant of a grading worksheet."""

    name: str
    email: str
    came: dt.datetime | None


def platform(label: str) -> str:
    """Which platform has named a hand-in: canvas, moodle, or folder for none.

    >>> platform("lovelace_kingada_77_88_kv_cache.ipynb"), platform("Ada L_9_assignsubmission_file/kv_cache.ipynb")
    ('canvas', 'moodle')
    """
    top, _, rest = label.partition("/")
    return "moodle" if MOODLE.match(top) else "canvas" if not rest and CANVAS.match(top) else "folder"


def marked_late(label: str) -> bool:
    """Has Canvas marked it as late?

    >>> marked_late("lovelaceada_LATE_77_88_kv_cache.ipynb"), marked_late("late_77_88_kv_cache.ipynb")
    (True, False)
    """
    named = CANVAS.match(label)
    return bool(named and named["late"])


def worksheet(path: Path, zone: ZoneInfo) -> dict[str, Row]:
    """A Moodle assignment's grading worksheet, by the participants' numbers.

    Raises:   ValueError, in one sentence, for another file, or a time in another language
    """
    headings, numbered = lists.rows(path)
    columns = worksheet_columns(headings)
    if not {"identifier", "came"} <= set(columns):
        raise ValueError(
            f"{path} is no grading worksheet of Moodle's: expected columns Identifier and Last modified (submission),"
            f" in English, German, French, Spanish or Portuguese, found {', '.join(headings)}"
        )
    found = {}
    for line, row in numbered:
        identifier = row.get(columns["identifier"], "")
        number = re.search(r"\d+$", identifier)
        if not number:
            raise ValueError(f"{path}, line {line}: {identifier!r} is no identifier like Participant 123")
        found[number[0]] = Row(
            name=row.get(columns.get("full name", ""), ""),
            email=row.get(columns.get("email address", ""), ""),
            came=moodle_time(row.get(columns["came"], ""), zone, where=f"{path}, line {line}"),
        )
    return found


def squeezed(name: str) -> str:
    """Letters and digits alone, as Canvas writes names.

    >>> squeezed("Lovelace, Ada-Zoë")
    'lovelaceadazoë'
    """
    return plain_id(name).replace("-", "")


def spellings(one: Person) -> set[str]:
    """How a platform may write this person: the id, and the name with its words in any turn (first name first, or
    last).
    """
    words = plain_id(one.name).split("-")
    turned = {"".join(words[cut:] + words[:cut]) for cut in range(len(words))}
    return {spelling for spelling in {squeezed(one.student), *turned} if spelling}


def _is_somebody_else(found: Person, one: Submission, row: Row | None) -> bool:
    """Does the platform know a person of that name by another number or address than the roster does?"""
    other_number = platform(one.label) == "canvas" and found.canvas_id and found.canvas_id != one.own
    other_address = row and row.email and found.email and row.email.casefold() != found.email.casefold()
    return bool(other_number or other_address)


def _may_be_called(name: str, folder: str) -> bool:
    """May a folder of that name be of whoever the worksheet calls so? One word of it is enough.

    >>> _may_be_called("Grace Hopper", "Grace_B Hopper"), _may_be_called("Grace Hopper", "Team A")
    (True, False)
    """
    words = set(plain_id(name).split("-")) & set(plain_id(folder).split("-"))
    return not name or bool(words) or squeezed(name) == squeezed(folder)


class Directory:
    """The roster, asked for whoever handed something in."""

    def __init__(self, people: Sequence[Person], sheet: Mapping[str, Row] | None = None) -> None:
        self._sheet = sheet or {}
        self._by_canvas_id = {one.canvas_id: one for one in people if one.canvas_id}
        self._on_github = [one for one in people if one.github]
        self._by_email = {one.email.casefold(): one for one in people if one.email}
        self._by_spelling: dict[str, list[Person]] = {}
        for one, spelling in itertools.chain.from_iterable(
            ((one, spelling) for spelling in spellings(one)) for one in people
        ):
            self._by_spelling.setdefault(spelling, []).append(one)

    def row(self, one: Submission) -> Row | None:
        """What the grading worksheet says of a hand-in. A group's folder has the group's number, which may be that of
        some participant, too: who is called otherwise is not meant.
        """
        row = self._sheet.get(one.own) if platform(one.label) == "moodle" else None
        return row if row and _may_be_called(row.name, one.folder) else None

    def row_of(self, one: Person) -> Row | None:
        """What the grading worksheet says of a person."""
        number = self.participant(one)
        return self._sheet[number] if number else None

    def participant(self, one: Person) -> str:
        """A person's number in the grading worksheet; nothing where that does not say."""
        fits = [
            number
            for number, row in self._sheet.items()
            if (row.email.casefold() == one.email.casefold() if row.email and one.email else False)
            or (not (row.email and one.email) and row.name and squeezed(row.name) in spellings(one))
        ]
        return fits[0] if len(fits) == 1 else ""

    def find(self, one: Submission) -> Person:
        """The student of a hand-in: by the platform's number where the roster or the worksheet knows it, otherwise by
        id or name.

        Raises:   ValueError, in one sentence, when nobody fits or more than one
        """
        if platform(one.label) == "canvas" and one.own in self._by_canvas_id:
            return self._by_canvas_id[one.own]
        row = self.row(one)
        if row and row.email.casefold() in self._by_email:
            return self._by_email[row.email.casefold()]
        name = row.name if row and row.name else one.folder
        fits = {
            found.student: found
            for found in self._by_spelling.get(squeezed(name), [])
            if not _is_somebody_else(found, one, row)
        }
        fits = fits or self._by_repository(one)
        if len(fits) == 1:
            return next(iter(fits.values()))
        if fits:
            raise ValueError(f"{name!r} may be {' or '.join(sorted(fits))}")
        other = self._sheet.get(one.own) if platform(one.label) == "moodle" and not row else None
        raise ValueError(
            f"nobody on the roster is called {name!r}"
            + (f" (participant {one.own} is {other.name!r}: is this a group's? `classroom groups`)" if other else "")
        )

    def _by_repository(self, one: Submission) -> dict[str, Person]:
        """Whose repository on GitHub a folder is: it is called by the assignment and, at its end, by the student."""
        name = f"-{one.folder}".casefold()
        ends = {len(found.github): found for found in self._on_github if name.endswith(f"-{found.github}".casefold())}
        return {found.student: found for length, found in ends.items() if length == max(ends)}
