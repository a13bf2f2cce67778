"""Small tasks to be written as code: the same fresh draws and limit case as a drill's function, another kind of
answer.

A task is a function with a docstring and a body. Everything else comes from the two: the file that the learner gets
(the body with a gap, or with a mistake in it), and the slips, which are the body with one thing changed.
"""

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from threeloops.drills.engine.drill import Draw, seeded
from threeloops.drills.engine.functions import Asked, Returned, Value, judge_function
from threeloops.drills.engine.judge import Verdict

RUN_IT = 'if __name__ == "__main__":\n    import doctest\n\n    print(doctest.testmod())\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A mistake that people make, as what it changes in the body: pairs of (what is right, what they write)."""

    key: str
    pairs: tuple[tuple[str, str], ...]
    story: str  # points at the mistake; never contains the line that is right


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSlip:
    """A change as judging needs it."""

    key: str
    wrong: Callable[[Draw], Value]
    story: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeTask(Asked):
    """One function to write, to finish or to mend."""

    name: str  # of the function
    task: str  # its key, under which history and terminal know it
    title: str
    loop: str
    section: str  # the chapter part that teaches it
    target_s: int
    head: str  # imports, the signature, the docstring
    body: str  # the rest, as a fluent person would write it
    gap: str  # what stands in its place in the learner's file; empty where a mistake is to be found instead
    draw: Callable[[random.Random], Draw]
    count: Callable[[Draw], Value]  # the same answer, got in another way
    changes: tuple[Change, ...]
    hint: str
    source: str

    @property
    def key(self) -> str:
        return self.task

    @property
    def slips(self) -> Sequence[CodeSlip]:
        return [
            CodeSlip(key=change.key, story=change.story, wrong=functools.partial(self._returns, self.changed(change)))
            for change in self.changes
        ]

    def ordinary(self, rng: random.Random) -> Draw:
        return self.draw(rng)

    def target(self, p: Draw) -> Value:
        return self._returns(self.solution, p)

    def results(self, returned: Sequence[Returned]) -> list[Returned]:
        """What is held against the target, of what came back."""
        return list(returned)

    def verdict(self, draws: Sequence[Draw], returned: Sequence[Returned]) -> Verdict:
        """Right, or which mistake."""
        return judge_function(self, draws, returned)

    @property
    def solution(self) -> str:
        return self.head + self.body

    @property
    def brief(self) -> str:
        """The solution without its docstring, which has been read by then."""
        return self.head[: self.head.index('    """')] + self.body

    def changed(self, change: Change) -> str:
        """The solution with that mistake in it."""
        body = self.body
        for right, wrong in change.pairs:
            body = body.replace(right, wrong)
        return self.head + body

    def shown(self, seed: str) -> str:
        """What is read of the task: the head, or the whole function with one of its mistakes, drawn by seed."""
        return self.head if self.gap else self.changed(seeded("starter", seed, self.task).choice(self.changes))

    def starter(self, seed: str) -> str:
        """The learner's file. Its first line says of which question it is."""
        return f"# {self.task}, question {seed}\n{self.shown(seed)}{self.gap}\n\n{RUN_IT}"

    def ran(self, source: str, p: Draw) -> Returned:
        """What the book's own source gives, as it would come back from the sandbox."""
        return Returned(value=plain(defined(source, self.name)(**self.arguments(p))))

    def _returns(self, source: str, p: Draw) -> Value:
        return self.ran(source, p).value


@functools.cache
def defined(source: str, name: str) -> Callable[..., Any]:
    """The function of that name that one of the book's own sources defines.

    >>> defined("def twice(n):\\n    return 2 * n\\n", "twice")(n=21)
    42
    """
    names: dict[str, Any] = {"__name__": "task"}
    exec(compile(source, name, "exec"), names)
    function: Callable[..., Any] = names[name]
    return function


def plain(value: Any) -> Value:
    """Lists as tuples, so that a returned value can be compared and kept.

    >>> plain([1, [2.0, "F0"]])
    (1, (2.0, 'F0'))
    """
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value
