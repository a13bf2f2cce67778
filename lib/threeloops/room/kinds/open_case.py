"""An open case: a brief, a few figures that any design for it needs, and a rubric for what no figure can judge.

The figures are a table's (`table`): one line, semicolons between, each judged as its drill would judge it. The rubric
stands with the working: whoever has said a design aloud marks it by that, honestly, line by line.
"""

from dataclasses import dataclass, replace

from threeloops.drills.engine.drill import Draw
from threeloops.room.idea import Idea
from threeloops.room.kinds.table import Cell, Table, fill
from threeloops.room.question import Question

TOPIC = "open_cases"
APART, SAME = 0.05, 1e-9  # relative: a mistake that comes too near an answer, and one that here is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table of figures, and what a good design says beside them: one point a line."""

    table: Table
    rubric: tuple[str, ...]


def pose(case: Case, seed: str) -> Question:
    """The case as a question: say the design first, then fill in its figures."""
    asked, points = fill(case.table, seed), len(case.rubric)
    marked = "\n".join(f"  [ ] {line}" for line in case.rubric)
    return replace(
        asked,
        kind="case",
        text=f"An open case: say your design aloud, then give its figures.\n{asked.text}",
        working=f"{asked.working}\n  Mark what you said, a point a line, {points} in all:\n{marked}",
    )


def idea(case: Case) -> Idea:
    """The case as something to be asked."""
    table = case.table
    return Idea(
        key=table.key,
        title=table.title,
        topic=table.topic,
        loop=table.loop,
        section=table.section,
        target_s=table.target_s,
        ask={"case": lambda seed: pose(case, seed)},
        prerequisites=table.prerequisites,
    )


def told_apart(cells: tuple[Cell, ...], p: Draw) -> bool:
    """Whether in these numbers no mistake of any cell comes near its answer without being it (one GPU of one)."""
    for cell in cells:
        q = cell.numbers(p)
        value = cell.drill.derive(q).value
        off = [abs(slip.wrong(q) - value) / value for slip in cell.drill.slips] if value > 0 else [APART]
        if any(SAME < one <= APART for one in off):
            return False
    return True
