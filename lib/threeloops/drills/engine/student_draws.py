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
_MARK = re.compile(r"\s*(?:(?:-|\[ \]|[A-Z]\.|\d{1,2}\.)\s+|\S.{0,15}?\s{2,})?")


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


def wrapped(text: str, width: int = PAGE_WIDTH) -> str:
    """Lines no longer than a page is wide, those of a list below their first word: not everything that shows text
    wraps it.

    >>> print(wrapped("Choose:\\n  A  more micro-batches per step\\n  B  fewer stages", width=24))
    Choose:
      A  more micro-batches
         per step
      B  fewer stages
    """
    return "\n".join(
        textwrap.fill(
            line, width, subsequent_indent=" " * _hanging(line), break_long_words=False, break_on_hyphens=False
        )
        for line in text.splitlines()
    )


def _hanging(line: str) -> int:
    """How far the second line of a wrapped one is indented: below the first word after "A  ", "2. ", "- "."""
    mark = _MARK.match(line)
    return mark.end() if mark else 0
