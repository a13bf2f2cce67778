"""Answers that are letters: read them, and judge columns of options of which one each is right.

>>> read("a and c", (3, 3)), read("A D", (3, 3)).message
(['A', 'C'], "'A D' is not two letters, from A to C.")
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threeloops.drills.engine.judge import Verdict

LETTERS = "ABCDEFGH"
NUMBERS = ("no letters", "one letter", "two letters", "three letters", "four letters", "five letters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One line to choose; `key` names it in the history when it was chosen wrongly."""

    key: str
    text: str
    against: str = ""  # what speaks against it: told to whoever chose it


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One thing to decide, with what is offered for it. The right option is known by its key."""

    name: str  # Loop, Cause, …
    options: tuple[Option, ...]
    right: str
    decides: bool = True  # whether the answer as a whole is wrong when this alone is

    @property
    def letter(self) -> str:
        return LETTERS[[option.key for option in self.options].index(self.right)]

    @property
    def told(self) -> str:
        return next(option.text for option in self.options if option.key == self.right)

    @property
    def lines(self) -> str:
        """The column as it is read."""
        return "\n".join(
            (
                f"{self.name}:",
                *(f"  {letter}  {option.text}" for letter, option in zip(LETTERS, self.options, strict=False)),
            )
        )


def listed(words: Sequence[str], *, last: str = "and") -> str:
    """Words in a row, as they are said.

    >>> listed(["cause", "first look", "fix"]), listed(["A"])
    ('cause, first look and fix', 'A')
    """
    *some, end = words
    return f"{', '.join(some)} {last} {end}" if some else end


def read(written: str, sizes: Sequence[int]) -> list[str] | Verdict:
    """The letters of an answer, one per list of so many options; or why it is none."""
    written_only = re.sub(r"\band\b", " ", written, flags=re.IGNORECASE)
    letters = [letter.upper() for letter in re.findall(r"[A-Za-z]", written_only)]
    strange = re.search(r"[^A-Za-z\s,.;:/&()-]", written)
    if (
        len(letters) != len(sizes)
        or strange
        or any(letter not in LETTERS[:size] for letter, size in zip(letters, sizes, strict=True))
    ):
        most = LETTERS[max(sizes) - 1]
        return Verdict(status="unreadable", message=f"{written!r} is not {NUMBERS[len(sizes)]}, from A to {most}.")
    return letters


def wanted(columns: Sequence[Column]) -> str:
    """How to answer, with an example that says nothing about the answer.

    >>> wanted([Column(name="Fix", options=(Option(key="a", text="more"), Option(key="b", text="less")), right="a")])
    'Answer with one letter.'
    """
    if len(columns) == 1:
        return "Answer with one letter."
    answer = [column.letter for column in columns]
    example = next(letters for letters in ("BCAB"[: len(columns)], "CABC"[: len(columns)]) if list(letters) != answer)
    return (
        f"Answer with {NUMBERS[len(columns)]}, {' then '.join(column.name.lower() for column in columns)}, like"
        f" {' '.join(example)}."
    )


def judged(written: str, columns: Sequence[Column]) -> Verdict:
    """Each column for itself: which are right, and what speaks against what was chosen in the others. The answer as a
    whole is right when every column that decides is; otherwise its share is that of those that are.
    """
    letters = read(written, [len(column.options) for column in columns])
    if isinstance(letters, Verdict):
        return letters
    wrong = {column.name: letter for column, letter in zip(columns, letters, strict=True) if letter != column.letter}
    if not wrong:
        return Verdict(status="right", message="Right.")
    if len(columns) == 1:
        (column,) = columns
        return Verdict(status="slip", message=_not_it(column, letters[0]), slips=_slips(columns, wrong))
    decide = [column for column in columns if column.decides]
    right = [column.name.lower() for column in decide if column.name not in wrong]
    missed = " ".join(_missed(column, wrong[column.name]) for column in columns if column.name in wrong)
    kept = f": {listed(right)}" if right else ""
    if len(right) == len(decide):
        return Verdict(status="right", message=f"Right{kept}. {missed} That alone makes no answer wrong.")
    return Verdict(
        status="slip",
        message=f"{len(right)} of {len(decide)} right{kept}. {missed}",
        slips=_slips(columns, wrong),
        share=len(right) / len(decide),
    )


def _slips(columns: Sequence[Column], wrong: Mapping[str, str]) -> tuple[str, ...]:
    chosen = ((column, LETTERS.index(wrong[column.name])) for column in columns if column.name in wrong)
    return tuple(dict.fromkeys(f"{column.name.lower()}:{column.options[place].key}" for column, place in chosen))


def _not_it(column: Column, letter: str) -> str:
    """Of a single choice: what speaks against it, and which are left."""
    left = [other for other in LETTERS[: len(column.options)] if other != letter]
    against = column.options[LETTERS.index(letter)].against
    remain = f" That leaves {listed(left, last='or')}." if len(left) > 1 else ""
    return f"It is not {letter}. {against}".rstrip() + remain


def _missed(column: Column, letter: str) -> str:
    """Of one choice among several: what speaks against it."""
    return f"{column.name}: it is not {letter}. {column.options[LETTERS.index(letter)].against}".rstrip()
