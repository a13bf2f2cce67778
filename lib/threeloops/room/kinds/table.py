"""Fill the table: several figures about one thing, in one line with semicolons between. Each cell is judged as the
drill that it belongs to would.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from threeloops.drills.engine.answers_in_text import unheld
from threeloops.drills.engine.drill import Draw, Drill, seeded
from threeloops.drills.engine.judge import Verdict, judge
from threeloops.room import examples
from threeloops.room.idea import Idea, idea_of
from threeloops.room.question import Question, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A figure: a drill's answer to this table's numbers."""

    name: str
    drill: Drill
    numbers: Callable[[Draw], Draw]  # the table's draw as the drill knows it

    def judged(self, p: Draw, written: str) -> Verdict:
        question = self.drill.ask(self.numbers(p))
        # asks again without telling a number
        answer = examples.read(written, self.drill.unit, question=question, whole=bool(self.drill.whole))
        return (
            Verdict(status="unreadable", message=answer)
            if isinstance(answer, str)
            else judge(self.drill, self.numbers(p), written)
        )

    def shown(self, p: Draw) -> str:
        return self.drill.shown(self.drill.derive(self.numbers(p)).value)

    def worked(self, p: Draw) -> str:
        derivation = self.drill.derive(self.numbers(p))
        return f"{derivation.formula} = {derivation.in_numbers}"

    @property
    def wanted(self) -> str:
        return f"like {self._like}, {self.drill.exactness.told.removesuffix(' counts as right')}"

    @property
    def example(self) -> str:
        return self._like.split(" or ")[0]

    @property
    def _like(self) -> str:
        return examples.example(self.drill.unit, self.name, whole=bool(self.drill.whole))


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A decision that follows from the figures: one of a few words."""

    name: str
    words: tuple[str, ...]
    right: Callable[[Draw], str]
    because: str  # how it is decided, without deciding it

    def judged(self, p: Draw, written: str) -> Verdict:
        said = written.strip().lower()
        if said not in self.words:
            return Verdict(status="unreadable", message=f"{written.strip()!r} is none of: {', '.join(self.words)}.")
        if said == self.right(p):
            return Verdict(status="right", message="Right.")
        return Verdict(status="slip", message=self.because, slips=("decision",))

    def shown(self, p: Draw) -> str:
        return self.right(p)

    def worked(self, p: Draw) -> str:
        return self.because

    @property
    def wanted(self) -> str:
        return f"one of: {', '.join(self.words)}"

    @property
    def example(self) -> str:
        return self.words[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Subject):
    """One thing, and what is to be known about it."""

    draw: Callable[[random.Random], Draw]
    prompt: Callable[[Draw], str]
    cells: tuple[Cell | Word, ...]
    source: str


def draw_of(table: Table, seed: str) -> Draw:
    """The table's numbers under this seed: such as do not fill a cell by themselves."""
    return unheld(seeded("table", seed, table.key), table.draw, lambda p: _asked(table, p), of=table.key)


def _asked(table: Table, p: Draw) -> list[tuple[Drill, Draw, str]]:
    text = table.prompt(p)
    return [(cell.drill, cell.numbers(p), text) for cell in table.cells if isinstance(cell, Cell)]


def fill(table: Table, seed: str) -> Question:
    """The table as a question."""
    p = draw_of(table, seed)
    rows = "\n".join(f"  {number}. {cell.name} ({cell.wanted})" for number, cell in enumerate(table.cells, 1))
    example = "; ".join(cell.example for cell in table.cells)
    working = "\n".join(
        f"  {number}. {cell.name}: {cell.shown(p)}. {cell.worked(p)}" for number, cell in enumerate(table.cells, 1)
    )
    return table.as_question(
        kind="table",
        seed=seed,
        text=(
            f"{table.prompt(p)}\nFill the table:\n{rows}\nAnswer in one line, in this order, with semicolons between:"
            f" as in {example}."
        ),
        hints=_hints(table, p),
        judge=lambda written: judged(table, p, written),
        working=f"{working}\n  Source: {table.source}",
    )


def _hints(table: Table, p: Draw) -> tuple[str, str, str]:
    """One cell, then the ways to all of them, then all of them but the last."""
    first, formulas = table.cells[0], [f"{cell.name}: {cell.worked(p)}" for cell in table.cells]
    most = [f"{cell.name}: {cell.shown(p)}" for cell in table.cells[:-1]]
    return f"{first.name}: {first.shown(p)}.", ". ".join(formulas), ". ".join(most)


def judged(table: Table, p: Draw, written: str) -> Verdict:
    """Which cells are right, and what went wrong in the others. Nothing is judged before every cell can be read."""
    parts = [part.strip() for part in written.split(";")]
    if len(parts) != len(table.cells):
        return Verdict(
            status="unreadable",
            message=f"{len(parts)} of {len(table.cells)} cells: put a semicolon between two values.",
        )
    verdicts = [cell.judged(p, part) for cell, part in zip(table.cells, parts, strict=True)]
    named = [
        f"{number}. {cell.name}: {verdict.message}"
        for number, (cell, verdict) in enumerate(zip(table.cells, verdicts, strict=True), 1)
    ]
    unread = [line for line, verdict in zip(named, verdicts, strict=True) if verdict.status == "unreadable"]
    if unread:
        return Verdict(status="unreadable", message=" ".join(unread))
    if all(verdict.right for verdict in verdicts):
        return Verdict(status="right", message=f"Right, all {len(parts)}.")
    slips = tuple(
        f"{cell.name.lower()}:{slip}"
        for cell, verdict in zip(table.cells, verdicts, strict=True)
        for slip in verdict.slips
    )
    share = sum(verdict.right for verdict in verdicts) / len(verdicts)
    return Verdict(status="slip" if slips else "off", message=" ".join(named), slips=slips, share=share)


def idea(table: Table) -> Idea:
    """The table as something to be asked."""
    return idea_of(table, {"table": lambda seed: fill(table, seed)})
