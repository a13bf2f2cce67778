"""Feedback pages in one zip, under the names that a platform's bulk upload gives back to students.

Canvas:   the file's own name from the download with another ending: the numbers of the user and of the file say whose
          it is (Grades › the assignment's menu › Re-Upload Submissions; "Canvas LMS source,
          lib/content_zipper.rb", https://github.com/instructure/canvas-lms/blob/master/lib/content_zipper.rb).
Moodle:   NAME_NUMBER_assignsubmission_file_PAGE: the second of the parts between underscores says whose it is, so that
          a name must not bring any of its own (Grading action › Upload multiple feedback files in a zip;
          "Moodle source, mod/assign/feedback/file/importziplib.php",
          https://github.com/moodle/moodle/blob/main/mod/assign/feedback/file/importziplib.php).
folder:   STUDENT/PAGE, for whoever collected a plain folder.
"""

import html
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from threeloops.classroom.intake import person
from threeloops.classroom.term import decisions, explanations, requests
from threeloops.classroom.term.collecting import Received, received
from threeloops.classroom.term.decisions import Decision
from threeloops.classroom.term.matching import platform
from threeloops.classroom.term.settings import Term

STAMP = (1980, 1, 1, 0, 0, 0)  # the same pages make the same zip


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The zips that were written, and who gets no page."""

    zips: dict[Path, int]  # with the number of pages
    without: tuple[str, ...]


def member(one: Received, name: str) -> str:
    """What a student's page is called in the zip.

    >>> member(
    ...     Received(student="ada", handed_in_as="lovelaceada_LATE_77_88_kv_cache.ipynb", came="", days_late="late"),
    ...     "kv_cache",
    ... )
    'lovelaceada_LATE_77_88_kv_cache.html'
    >>> member(
    ...     Received(student="ada", handed_in_as="Ada_L_9_assignsubmission_file/kv_cache.ipynb", came="", days_late=""),
    ...     "kv_cache",
    ... )
    'Ada L_9_assignsubmission_file_kv_cache.html'
    """
    where = platform(one.handed_in_as)
    if where == "canvas":
        return re.sub(r"(\.ipynb)?(\.txt|\.json|\.zip)?$", "", one.handed_in_as, flags=re.IGNORECASE) + ".html"
    if where == "moodle":
        whose = person(one.handed_in_as)
        return f"{whose.name.replace('_', ' ')}_{whose.own}_assignsubmission_file_{name}.html"
    return f"{one.student}/{name}.html"


def pack(term: Term, name: str) -> Packed:
    """Write a zip for each platform that the hand-ins of a set came from.

    Raises:   ValueError when nothing was collected, or there is no page
    """
    collected = received(term, name)
    if not collected:
        raise ValueError(f"nothing of {name} was collected, so there is no page; `threeloops classroom collect` first")
    pages = {
        one.student: term.graded / "feedback" / (one.graded_as or one.student) / name / f"{name}.html"
        for one in collected.values()
    }
    found = [one for one in collected.values() if pages[one.student].exists()]
    if not found:
        raise ValueError(f"there is no feedback page of {name} yet; `threeloops classroom grade {name}` writes them")
    zips: dict[Path, int] = {}
    comments = decisions.of(term, name, "comment")
    most = decisions.maxima(name) | explanations.maxima(term, name)
    for where in sorted({platform(one.handed_in_as) for one in found}):
        own = [one for one in found if platform(one.handed_in_as) == where]
        path = term.folder / "returned" / f"{name}-{where}.zip"
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for one in own:
                archive.writestr(
                    zipfile.ZipInfo(member(one, name), STAMP),
                    _page(pages[one.student], _said(term, name, one, comments, most)),
                    compress_type=zipfile.ZIP_DEFLATED,
                )
        zips[path] = len(own)
    return Packed(zips=zips, without=tuple(sorted({*collected} - {one.student for one in found})))


def _said(
    term: Term, name: str, one: Received, comments: Mapping[str, Decision], most: Mapping[str, float]
) -> list[tuple[str, str]]:
    """What the teacher has to say to one student, each with what it is: what is said of a group's hand-in to each of
    its members.
    """
    judged = one.graded_as or one.student
    comment = comments.get(one.student)
    asked = [
        each for student in dict.fromkeys((judged, one.student)) for each in requests.of_student(term, name, student)
    ]
    return [
        *([("comment", f"From your teacher: {comment.reason}")] if comment else []),
        *(("explanation", sentence) for sentence in explanations.told(term, name, judged)),
        *(("request", requests.answered(each, most.get(each.question, sum(most.values())))) for each in asked),
    ]


def _page(path: Path, said: Sequence[tuple[str, str]]) -> str:
    """A feedback page, with what the teacher has to say on top."""
    page = path.read_text(encoding="utf-8", errors="replace")
    lines = []
    for what, words in said:
        begins, colon, rest = html.escape(words).replace("\n", "<br>").partition(":")
        lines.append(f'<p class="three-loops-{what}"><strong>{begins}{colon}</strong>{rest}</p>')
    return re.sub(r"<body[^>]*>", lambda body: body[0] + "".join(lines), page, count=1) if lines else page
