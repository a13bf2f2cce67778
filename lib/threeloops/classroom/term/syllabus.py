"""The book over a number of weeks: every part once, what a part needs before it, and the weeks about equally long. The
minutes are those of the parts' own headings, and what a part needs is what its card links to.
"""

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from threeloops import checks, contents, units
from threeloops.classroom.questions import questions
from threeloops.contents import Place
from threeloops.drills.engine.bank import DRILLS

NEEDS = re.compile(r"\*\*You need\*\*(?P<needs>.*?)(?:\*\*You get\*\*|\*\*Previous|<br>\s*\n> \*\*)", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?P<chapter>[\w.]*)#(?P<part>[0-9A-Z]+)-[^)]*\)")
ASIDE = re.compile(r"\([A-Z][^()]*\)")  # a whole sentence in brackets: it explains a word and asks for nothing
SHORT = re.compile(r"\*\*Short way\*\* (?P<minutes>\d+) min")
SET = re.compile(r"\.\./drills/(?P<name>\w+)/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A part in its place."""

    place: Place
    minutes: int
    sets: tuple[str, ...]  # drill sets that are ready to be worked after it

    @property
    def key(self) -> str:
        return f"{self.place.chapter}.{self.place.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Week:
    """What is read in one week."""

    number: int
    steps: tuple[Step, ...]

    @property
    def minutes(self) -> int:
        return sum(step.minutes for step in self.steps)


def needs(place: Place) -> list[str]:
    """Keys ("1.2") of the parts that a card asks for.

    >>> [needs(place) for place in contents.places(contents.book_root()) if place.title == "The programming model"]
    [['1.2']]
    """
    said = NEEDS.search(place.card)
    if not said:
        return []
    marked = LINK.sub(lambda link: f"⟦{link['chapter'].split('_')[0] or place.chapter}.{link['part']}⟧", said["needs"])
    return list(dict.fromkeys(re.findall(r"⟦([^⟧]+)⟧", ASIDE.sub("", marked))))


def ordered(places: Sequence[Place]) -> list[Place]:
    """Reading order, foundations first, and nothing before what it needs.

    Raises:   ValueError when two parts need each other, or one that is not there
    """
    by_key = {f"{place.chapter}.{place.number}": place for place in places}
    first = sorted(by_key, key=lambda key: (by_key[key].chapter, not by_key[key].number.startswith("F")))
    done: dict[str, Place] = {}

    def take(key: str, way: tuple[str, ...]) -> None:
        if key in way:
            raise ValueError(f"parts need each other in a ring: {' → '.join((*way, key))}")
        if key not in by_key:
            raise ValueError(f"part {way[-1]} needs a part {key}, which the book does not have")
        if key not in done:
            for needed in needs(by_key[key]):
                take(needed, (*way, key))
            done[key] = by_key[key]

    for key in first:
        take(key, ())
    return list(done.values())


def steps(root: Path, *, short: bool) -> list[Step]:
    """All parts in order; a drill set goes with the last of the parts that send readers there."""
    places = ordered(contents.places(root))
    last = {name["name"]: place for place in places for name in SET.finditer(place.card)}
    return [
        Step(
            place=place,
            minutes=_short(place) if short else place.minutes,
            sets=tuple(name for name, at in last.items() if at is place and (root / "drills" / name).is_dir()),
        )
        for place in places
    ]


def _short(place: Place) -> int:
    said = SHORT.search(place.card)
    if not said:
        raise ValueError(f"the card of part {place.chapter}.{place.number} does not say how long its short way is")
    return int(said["minutes"])


def weeks(parts: Sequence[Step], number: int) -> list[Week]:
    """The parts in their order, cut so that the longest week is as short as it can be; of such cuts the one whose
    weeks differ least.

    Raises:   ValueError for more weeks than parts
    """
    checks.count(weeks=number)
    if number > len(parts):
        raise ValueError(f"weeks={number} is more than the book's {len(parts)} parts; choose fewer")
    until = [0, *itertools.accumulate(step.minutes for step in parts)]
    best: dict[tuple[int, int], tuple[int, int, int]] = {(0, 0): (0, 0, 0)}  # longest, sum of squares, last cut
    for week in range(1, number + 1):
        for end in range(week, len(parts) - (number - week) + 1):
            best[week, end] = min(
                (
                    max(best[week - 1, cut][0], until[end] - until[cut]),
                    best[week - 1, cut][1] + (until[end] - until[cut]) ** 2,
                    cut,
                )
                for cut in range(week - 1, end)
                if (week - 1, cut) in best
            )
    cuts, end = [len(parts)], len(parts)
    for week in range(number, 0, -1):
        end = best[week, end][2]
        cuts.append(end)
    spans = itertools.pairwise(reversed(cuts))
    return [Week(number=week, steps=tuple(parts[a:b])) for week, (a, b) in enumerate(spans, start=1)]


def told(planned: Sequence[Week], minutes_of_set: Mapping[str, int]) -> str:
    """The syllabus in Markdown, which is plain text too."""
    total = sum(week.minutes for week in planned)
    rows = [
        f"# Three Loops in {units.counted(len(planned), 'week')}",
        "",
        f"{_hours(total)} of reading, {_hours(total / len(planned))} a week. Drill sets come on top: how long somebody"
        " fluent takes stands beside each, and whoever learns takes several times as long.",
    ]
    for week in planned:
        rows += ["", f"## Week {week.number} · {_hours(week.minutes)}", ""]
        for step in week.steps:
            where = f"chapter {step.place.chapter}, part {step.place.number}"
            rows.append(f"- {step.place.title} ({where}), {step.minutes} min")
        sets = [name for step in week.steps for name in step.sets]
        if sets:
            rows.append("- **Drills:** " + ", ".join(f"{name} ({minutes_of_set[name]} min)" for name in sets))
    return "\n".join(rows) + "\n"


def minutes_of_sets(root: Path) -> dict[str, int]:
    """What a fluent person needs for each drill set: the target times of its questions."""
    return {
        path.stem: math.ceil(
            sum(DRILLS[one.drill].target_s for one in questions(json.loads(path.read_text(encoding="utf-8"))))
            / units.minute
        )
        for path in sorted(root.glob("drills/*/*.ipynb"))
        if path.stem == path.parent.name
    }


def _hours(minutes: float) -> str:
    """
    >>> _hours(230)
    '3 h 50 min'
    """
    hours, rest = divmod(round(minutes), units.hour // units.minute)
    return f"{hours} h {rest:02d} min" if hours else f"{rest} min"
