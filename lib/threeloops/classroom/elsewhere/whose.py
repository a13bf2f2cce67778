"""Whose hand-in it is: the roster's student for a person whom a platform names by e-mail address, number and name."""

from collections.abc import Iterable, Mapping, Sequence

from threeloops.classroom.term.matching import spellings
from threeloops.classroom.term.people import Person
from threeloops.drills.engine.student_draws import plain_id

FIELDS = ("student", "name", "email", "id_number", "sis_user_id", "sis_login_id")  # of the roster, packed


def packed(people: Iterable[Person]) -> list[dict[str, str]]:
    """What of the roster is needed to know a student again."""
    return [{field: getattr(one, field) for field in FIELDS} for one in people]


def find(user: Mapping[str, object], people: Sequence[Person]) -> str:
    """The id that a platform's user has on the roster: by e-mail address, by student number (`sid`), and of those whose
    address the roster does not hold, by what stands before the @ where that is an id or a login, and last by name; the
    first of these that fits exactly one. A name is what a user says, so it tells nobody whose address is known.

    Raises:   ValueError, in one sentence, when no student fits

    >>> people = [Person(student="ada01", name="Ada Lovelace", email="ada@x.edu"), Person(student="s2", name="Grace H")]
    >>> find({"email": "ADA@x.edu"}, people), find({"email": "g@x", "name": "H, Grace"}, people)
    ('ada01', 's2')
    """
    email, sid = (str(user.get(field) or "").strip().casefold() for field in ("email", "sid"))
    name = plain_id(str(user.get("name") or "")).replace("-", "")
    others = [one for one in people if not one.email]
    ways = [
        [one for one in people if email and email in _known(one, "email", "sis_login_id", "student")],
        [one for one in people if sid and sid in _known(one, "id_number", "sis_user_id", "student")],
        [one for one in others if "@" in email and email.partition("@")[0] in _known(one, "sis_login_id", "student")],
        [one for one in others if name and name in spellings(one)],
    ]
    for fits in ways:
        if len(fits) == 1:
            return fits[0].student
    raise ValueError(
        f"nobody on this course's class list is known by {email or 'the e-mail address that is missing here'}; tell"
        " your teacher, who can add you"
    )


def _known(one: Person, *fields: str) -> set[str]:
    return {str(getattr(one, field)).casefold() for field in fields if getattr(one, field)}


def of_group(users: Sequence[Mapping[str, object]], people: Sequence[Person], says: str) -> str:
    """Whose numbers a hand-in is judged by: its one user's, or of a group the one whose id the notebook says.

    Raises:   ValueError, in one sentence, when no student is named, or the notebook says none of a group's ids
    """
    if not users:
        raise ValueError("the platform does not say who handed this in; tell your teacher")
    ids = [find(user, people) for user in users]
    if len(ids) == 1:
        return ids[0]
    own = [one for one in ids if plain_id(one) == says]
    if not own:
        raise ValueError(
            f"this was handed in for {' and '.join(ids)}, and the notebook's first code cell says {says or 'nobody'!r}:"
            " write one of these ids there and answer with that one's numbers"
        )
    return own[0]
