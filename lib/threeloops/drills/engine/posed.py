"""Whose numbers a question is asked with: drawn from the course code, the student's id and the drill, the same at
home and at grading.

>>> plain_id("  Ada Lovelace "), plain_id("ada-lovelace")
('ada-lovelace', 'ada-lovelace')
"""

import re
import textwrap
import unicodedata

from threeloops.drills.engine.drill import Draw, Drill, seeded

HOME_COURSE = "home"  # the course code of whoever reads alone
HOME_STUDENT = "reader"
# On a class's hub the server says who the student is and in which course; at home nobody sets these.
STUDENT_VARIABLE, COURSE_VARIABLE = "THREELOOPS_STUDENT", "THREELOOPS_COURSE"
PAGE_WIDTH = 96  # characters


def plain_id(written: object) -> str:
    """An id or course code as it is compared: case, spaces and punctuation make no other person. Empty for what is no
    text.

    >>> plain_id("Zoë_42"), plain_id(None), plain_id("../..")
    ('zoë-42', '', '')
    """
    if not isinstance(written, str):
        return ""
    return re.sub(r"[\W_]+", "-", unicodedata.normalize("NFKC", written).casefold()).strip("-")[:60]


def posed(drill: Drill, *, course: str, student: str) -> Draw:
    """The draw of one student in one course."""
    return drill.draw(seeded("posed", plain_id(course), plain_id(student), drill.key))


def question(drill: Drill, *, course: str, student: str) -> str:
    """The question as that student reads it."""
    return wrapped(drill.ask(posed(drill, course=course, student=student)))


def wrapped(text: str) -> str:
    """Lines no longer than a page is wide: not everything that shows a notebook's output wraps it."""
    return "\n".join(
        textwrap.fill(line, PAGE_WIDTH, subsequent_indent=" " * (len(line) - len(line.lstrip())))
        for line in text.splitlines()
    )
