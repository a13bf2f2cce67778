"""Who teaches, who learns: on one machine an id is the name of an account, and two of them are never one person."""

import re
from collections import Counter
from collections.abc import Sequence

from threeloops.drills.engine.student_draws import plain_id

ACCOUNT = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")  # what Linux and JupyterHub both take for a name


def checked(students: Sequence[str], *, teacher: str) -> list[str]:
    """The students, each once, in order.

    Raises:   ValueError for what is no account's name, and for ids that grading could not tell apart

    >>> checked(["grace.h", "ada"], teacher="kay")
    ['ada', 'grace.h']
    >>> checked(["ada.l", "ada_l"], teacher="kay")
    Traceback (most recent call last):
        ...
    ValueError: the class list has ada.l and ada_l, whose numbers would be the same; give one of them another id
    """
    names = sorted({name.strip() for name in students if name.strip()})
    if not names:
        raise ValueError("the class list names nobody; expected a CSV file with ids in its first column")
    for name in (*names, teacher):
        if not ACCOUNT.fullmatch(name):
            raise ValueError(
                f"{name!r} cannot be the name of an account; expected small letters, digits, dots, - and _, at most 32,"
                " like ada.lovelace"
            )
    if teacher in names:
        raise ValueError(f"{teacher} is the teacher and stands in the class list too; leave one of them out")
    bearers = Counter(map(plain_id, names))
    alike = [name for name in names if bearers[plain_id(name)] > 1]
    if alike:
        raise ValueError(
            f"the class list has {' and '.join(alike[:2])}, whose numbers would be the same; give one of them another"
            " id"
        )
    return names
