"""How a set's questions did, over terms and versions: how many were right, whether a question tells those who know the
rest from those who do not, and which mistake is made most.

Points are the grader's, before anybody's decision; an answer that is missing is a wrong one. Terms and versions are
never thrown together: whoever sat in a stronger class or had an easier version would look like somebody who knows more,
so each person is compared with their own group.

Source:   corrected item-total correlation, and 0.2 and 0.4 as where a question is poor and satisfactory: Kelava and
          Moosbrugger, 2020, as "Discrimination of Questionnaire Items" has it,
          https://search.r-project.org/CRAN/refmans/performance/html/item_discrimination.html
          interval: Fisher's z, 1921, "On the 'probable error' of a coefficient of correlation deduced from a small
          sample", Metron 1
Counted:  tests.classroom.test_items.test_the_formulas_are_those_of_others
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from threeloops import units
from threeloops.classroom.term import lists
from threeloops.drills.engine.bank import DRILLS

POOR = 0.2
FEW = 30  # people: with fewer, an interval is wider than all that it could tell apart
CONFIDENCE_Z = 1.959964  # of 95 %
NEEDED = ("student", "question", "points", "maximum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one person earned, question by question."""

    group: str  # a term, and a version where there are some
    points: Mapping[str, float]
    shares: Mapping[str, float]  # of each question's maximum
    slips: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question over all groups."""

    question: str
    right: Mapping[str, float]  # share of the points that were earned, by group
    people: int
    share: float  # the same over everybody
    discrimination: float | None  # None: nothing varies, in the question or in the rest
    slips: tuple[tuple[str, int], ...]  # the most frequent first

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the discrimination of a larger class would lie, 19 times in 20."""
        groups = len(self.right)
        if self.discrimination is None:
            return None
        return fisher_interval(self.discrimination, self.people - groups + 1)


def discrimination(groups: Iterable[Sequence[tuple[float, float]]]) -> float | None:
    """Correlation of a question's points with those of all other questions, each person compared with their own group.

    r = Σ (x − x̄)(y − ȳ) / √(Σ (x − x̄)² × Σ (y − ȳ)²), with x the question, y the rest, and the means those of the
    person's group. None where one of the two does not vary.

    >>> discrimination([[(0, 1), (1, 3)], [(0, 10), (1, 12)]]), discrimination([[(1, 3), (1, 5)]])
    (1.0, None)
    """
    both = one = other = 0.0
    for pairs in groups:
        mean_x, mean_y = (math.fsum(column) / len(pairs) for column in zip(*pairs, strict=True))
        both += math.fsum((x - mean_x) * (y - mean_y) for x, y in pairs)
        one += math.fsum((x - mean_x) ** 2 for x, _ in pairs)
        other += math.fsum((y - mean_y) ** 2 for _, y in pairs)
    return both / math.sqrt(one * other) if one > 1e-12 and other > 1e-12 else None


def fisher_interval(r: float, people: int) -> tuple[float, float] | None:
    """A correlation's 95 % interval, tanh(artanh r ± 1.96 / √(n − 3)); None for fewer than four people.

    Assumes:  points that vary as a normal distribution does, which points of a question do not: take it as a hint

    >>> low, high = fisher_interval(0.5, 28)
    >>> round(low, 2), round(high, 2)
    (0.16, 0.74)
    """
    if people < 4:
        return None
    if abs(r) >= 1:
        return r, r
    middle, half = math.atanh(r), CONFIDENCE_Z / math.sqrt(people - 3)
    return math.tanh(middle - half), math.tanh(middle + half)


def read(path: Path, group: str, drills: dict[str, str]) -> list[Answers]:
    """A grader's CSV, or any list with student, question, points and maximum, and if there are some, version and slips.
    Which drill a question is goes into `drills`; what has the name of another one's question gets a name of its own.
    A student with an answer that waits for a person is left out.

    Raises:   ValueError, in one sentence, for another file
    """
    headings, numbered = lists.rows(path)
    missing = [name for name in NEEDED if name not in map(lists.heading, headings)]
    if missing:
        raise ValueError(
            f"{path} has no column {missing[0]}; a list of results has {', '.join(NEEDED)}, and may have"
            " version and slips"
        )
    people: dict[tuple[str, str], list[tuple[str, float, float, str]]] = {}
    held = set()
    for line, row in numbered:
        if not row["question"]:
            continue
        who = row["student"], row.get("version", "")
        held |= {who} if row.get("outcome") == "held" else set()
        points, most = _number(path, line, row, "points"), _number(path, line, row, "maximum")
        if not 0 <= points <= most or not most:
            raise ValueError(f"{path}, line {line}: {points:g} of {most:g} points cannot be")
        question, drill = row["question"], row.get("drill", "")
        question = question if drills.setdefault(question, drill) == drill else f"{question}/{drill}"
        drills.setdefault(question, drill)
        people.setdefault(who, []).append((question, points, most, row.get("slips", "")))
    return [
        Answers(
            group=f"{group} {version}".strip(),
            points={question: points for question, points, _, _ in rows},
            shares={question: points / most for question, points, most, _ in rows},
            slips={question: tuple(slips.split()) for question, _, _, slips in rows},
        )
        for (who, version), rows in people.items()
        if (who, version) not in held
    ]


def _number(path: Path, line: int, row: Mapping[str, str], name: str) -> float:
    try:
        value = float(row[name])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{path}, line {line}: {name} {row[name]!r} must be a number of points")
    return value


def analysed(people: Sequence[Answers]) -> list[Item]:
    """Every question, the one that fewest get right first.

    Raises:   ValueError when nobody has answered anything
    """
    if not people:
        raise ValueError("nobody has a graded answer there, so there is nothing to say of the questions")
    order = dict.fromkeys(question for one in people for question in one.points)
    return sorted((_item(question, people) for question in order), key=lambda one: one.share)


def _item(question: str, everybody: Sequence[Answers]) -> Item:
    people = [one for one in everybody if question in one.points]
    groups: dict[str, list[Answers]] = {}
    for one in people:
        groups.setdefault(one.group, []).append(one)
    pairs = [[(one.shares[question], _rest(one, question)) for one in own] for own in groups.values()]
    made = Counter(slip for one in people for slip in one.slips.get(question, ()))
    return Item(
        question=question,
        right={group: math.fsum(one.shares[question] for one in own) / len(own) for group, own in groups.items()},
        people=len(people),
        share=math.fsum(one.shares[question] for one in people) / len(people),
        discrimination=discrimination(pairs),
        slips=tuple(made.most_common()),
    )


def _rest(one: Answers, question: str) -> float:
    return math.fsum(points for other, points in one.points.items() if other != question)


def warnings(item: Item) -> list[str]:
    """What a teacher should look at, a sentence each."""
    found = []
    if item.share in (0.0, 1.0):
        found.append(f"{'everybody' if item.share else 'nobody'} has it right, so it tells nobody apart")
    elif item.discrimination is None:
        found.append("the rest of the points does not vary, so nothing can be said of whom it tells apart")
    elif item.discrimination < POOR:
        interval = item.interval
        maybe = "" if interval and interval[1] < POOR else ", though so few people leave that open"
        against = "; whoever knows the rest gets it wrong: read it again, and its key"
        found.append(
            f"it does not discriminate ({item.discrimination:.2f}, below {POOR:g}){maybe}"
            f"{against if item.discrimination < 0 else ''}"
        )
    return found


def told(name: str, people: Sequence[Answers], drills: Mapping[str, str]) -> str:
    """The analysis as a table with what there is to look at below it; names nobody."""
    items = analysed(people)
    sizes = Counter(one.group for one in people)
    listed = ", ".join(f"{group} {number}" for group, number in sizes.items() if group)
    lines = [f"{name}: {units.counted(len(people), 'student')}{f' ({listed})' if listed else ''}.", ""]
    groups = list(sizes)
    head = ["question", "right", *(groups if len(groups) > 1 else []), "discrimination", "most frequent mistake"]
    rows = [head]
    for one in items:
        shares = [_percent(one.right.get(group)) for group in groups] if len(groups) > 1 else []
        rows.append([one.question, _percent(one.share), *shares, _correlation(one), _mistake(one)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    look = [(one.question, sentence) for one in items for sentence in warnings(one)]
    if look:
        lines += ["", "Look at:"]
        lines += [f"  {question}{_title(question, drills)}: {sentence}." for question, sentence in look]
    lines += ["", *_notes(people, sizes)]
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _correlation(one: Item) -> str:
    if one.discrimination is None:
        return "-"
    interval = one.interval
    return f"{one.discrimination:.2f}" + (f" ({interval[0]:.2f} to {interval[1]:.2f})" if interval else "")


def _mistake(one: Item) -> str:
    return f"{one.slips[0][0]}, {one.slips[0][1]} of {one.people}" if one.slips else "-"


def _title(question: str, drills: Mapping[str, str]) -> str:
    drill = DRILLS.get(drills.get(question, ""))
    return f" ({drill.title})" if drill else ""


def _notes(people: Sequence[Answers], sizes: Mapping[str, int]) -> list[str]:
    notes = [
        "right: share of the points that were earned, a missing answer being none. discrimination: correlation with the"
        " points of all other questions, everybody compared with their own group, and its 95 % interval (Fisher's z)."
    ]
    if len(people) < FEW:
        notes.append(
            f"{units.counted(len(people), 'student')}: few. Below {FEW} an interval holds nearly everything, so read"
            " the mistakes and not the correlations, or add other terms with --with."
        )
    small = [group for group, number in sizes.items() if number < 2]
    if small:
        notes.append(f"A group of one tells nothing of discrimination: {', '.join(small)}.")
    return notes
