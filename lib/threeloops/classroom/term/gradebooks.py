"""Marks as a platform's gradebook takes them.

Canvas:   Student, ID, SIS User ID, SIS Login ID, Section, then a column for each assignment, and below the headings a
          row “Points Possible”. A column that no assignment is called by becomes a new assignment, so there is none but
          the marks. "Import CSV File to Carmen Grades", The Ohio State University,
          https://teaching.resources.osu.edu/toolsets/carmencanvas/guides/calculating-final-grades/import-csv-file-carmen-grades;
          "Canvas LMS source, lib/gradebook_importer.rb",
          https://github.com/instructure/canvas-lms/blob/master/lib/gradebook_importer.rb
Moodle:   an identity to map from, Email address or ID number, and a column for each grade item, mapped on the page that
          follows the upload; further columns may be refused. "Grade import", MoodleDocs,
          https://docs.moodle.org/405/en/Grade_import
          With the assignment's grading worksheet: the same file with its column Grade filled in ("Moodle source,
          mod/assign/feedback/offline/importgradeslib.php",
          https://github.com/moodle/moodle/blob/main/mod/assign/feedback/offline/importgradeslib.php).
csv:      everything that is known: raw points, days late, points after the late policy, extra days and time.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from threeloops import checks
from threeloops.classroom.intake import person
from threeloops.classroom.term import lists, matching
from threeloops.classroom.term.collecting import received
from threeloops.classroom.term.languages import worksheet_columns
from threeloops.classroom.term.marks import EXCUSED, Line, Mark
from threeloops.classroom.term.people import Person
from threeloops.classroom.term.settings import Term
from threeloops.drills.engine.student_draws import plain_id

FORMATS = ("canvas", "moodle", "csv")
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("ID number", "Email address")
IN_CANVAS_EXCUSED = "EX"
POSSIBLE = "    Points Possible"  # as Canvas writes it


def export(term: Term, lines: Sequence[Line], names: Sequence[str], form: str, *, worksheet: Path | None) -> Path:
    """Write one gradebook; returns where it is.

    Raises:   ValueError when the roster does not hold what the platform knows its students by
    """
    checks.one_of(FORMATS, format=form)
    if worksheet is not None:
        if form != "moodle" or len(names) != 1:
            raise ValueError("a grading worksheet is Moodle's, of one assignment: give --format moodle and one set")
        return _filled(term, lines, names[0], worksheet)
    of = names[0] if len(names) == 1 else "marks"
    path = term.folder / "exported" / (f"{of}.csv" if form == "csv" else f"{of}-{form}.csv")
    titles = {name: term.handed_out(name).title for name in names}
    points = [[_cell(line.marks[name], form) for name in names] for line in lines]
    if form == "csv":
        return _everything(path, term, lines, names)
    if form == "moodle":
        lost = [one.person.student for one in lines if not (one.person.email or one.person.id_number)]
        _needs(lost, "e-mail address or ID number", "Moodle's participants' table or grade export")
        found = [[one.person.id_number, one.person.email, *own] for one, own in zip(lines, points, strict=True)]
        return lists.write(path, [*MOODLE, *titles.values()], found)
    _needs([one.person.student for one in lines if not one.person.canvas_id], "Canvas ID", "Canvas's gradebook export")
    possible = [[POSSIBLE, "", "", "", "", *(lines[0].marks[name].maximum for name in names)]] if lines else []
    rows = [[*_in_canvas(line.person), *own] for line, own in zip(lines, points, strict=True)]
    return lists.write(path, [*CANVAS, *titles.values()], [*possible, *rows])


def _cell(mark: Mark, form: str) -> object:
    """Points, or a blank: no platform takes that for 0. Canvas has a word for who is excused."""
    return IN_CANVAS_EXCUSED if form == "canvas" and mark.status == EXCUSED else mark.points


def _in_canvas(one: Person) -> tuple[str, ...]:
    """The columns by which Canvas knows a student."""
    return one.name, one.canvas_id, one.sis_user_id, one.sis_login_id, one.section


def _needs(lost: Sequence[str], what: str, source: str) -> None:
    if lost:
        raise ValueError(
            f"the roster holds no {what} of {len(lost)}, {lost[0]} among them; make it from {source}, or export with"
            " --format csv"
        )


def _everything(path: Path, term: Term, lines: Sequence[Line], names: Sequence[str]) -> Path:
    headings = ["student", "name", "section", "extra_days", "extra_time"]
    for name in names:
        headings += [f"{name} {what}" for what in ("status", "raw", "of", "days late", "points", "waiting", "reason")]
    rows = []
    for line in lines:
        one = line.person
        row: list[object] = [one.student, one.name, one.section, one.extra_days, one.extra_time]
        for name in names:
            mark = line.marks[name]
            row += [mark.status, mark.raw, mark.maximum, mark.days_late, mark.points, mark.waiting, mark.reason]
        rows.append([*row, term.late.in_words])
    return lists.write(path, [*headings, "late policy"], rows)


def _filled(term: Term, lines: Sequence[Line], name: str, worksheet: Path) -> Path:
    """The worksheet with the grades in it, its other columns and their order as they came."""
    matching.worksheet(worksheet, term.zone)  # is it one?
    headings, numbered = lists.rows(worksheet)
    compared = [lists.heading(one) for one in headings]
    columns = worksheet_columns(headings)
    if not {"grade", "graded"} <= set(columns):
        raise ValueError(f"{worksheet} has no columns Grade and Last modified (grade); Moodle takes none without them")
    points = {plain_id(line.person.student): line.marks[name].points for line in lines}
    emails = {line.person.email.casefold(): plain_id(line.person.student) for line in lines if line.person.email}
    by_number = {
        person(one.handed_in_as).own: one.student
        for one in received(term, name).values()
        if matching.platform(one.handed_in_as) == "moodle"
    }
    rows = []
    for _, row in numbered:
        number = re.search(r"\d+$", row[columns["identifier"]])
        student = by_number.get(number[0] if number else "") or emails.get(
            row.get(columns.get("email address", ""), "").casefold(), ""
        )
        if points.get(student) is not None:
            row = row | {columns["grade"]: lists.safe(points[student])}
        rows.append([row.get(column, "") for column in compared])
    return lists.write(term.folder / "exported" / f"{name}-worksheet.csv", headings, rows, exact=True)
