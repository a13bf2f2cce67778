"""Kernels to write for the machine of `benches.threads`: judged by what they leave in memory, by races, and by what the
machine counted against the bounds that the task states.

The counts come from the process that runs the learner's code: at home one can only cheat oneself. What is graded asks
no kernels.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from threeloops.drills.engine.code_task import CodeTask, defined, plain
from threeloops.drills.engine.drill import Draw
from threeloops.drills.engine.functions import Returned, Value, judge_function
from threeloops.drills.engine.judge import Verdict
from threeloops.simulate.inner_loop.benches import threads

MACHINE = threads.__name__
COUNTERS = (*threads.SUMS, *threads.MOST)
RACE, READS = "race", "reads "
FOREIGN = "gave something that the machine does not give"
TOLD = {
    "most_sectors": "One request of a warp touches {got} sectors of global memory; at most {most}.",
    "most_turns": "One request of shared memory takes {got} turns of a bank; at most {most}.",
    "load_sectors": "It loads {got} sectors; at most {most}.",
    "store_sectors": "It writes {got} sectors; at most {most}.",
    "atomics": "It makes {got} atomic requests to global memory; at most {most}.",
    "barriers": "It meets at {got} barriers; at most {most}.",
    "shared_requests": "It makes {got} requests to shared memory; at most {most}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A count that may not be passed, and the mistake that passes it."""

    key: str  # of the task's change
    counter: str  # of TOLD, or "reads " and an array's name
    most: Callable[[Draw], int]

    def passed(self, p: Draw, counts: dict[str, int]) -> str:
        """What is too much, in a sentence; empty where nothing is."""
        got, most = counts.get(self.counter.removeprefix(READS), 0), self.most(p)
        if got <= most:
            return ""
        if self.counter in TOLD:
            return TOLD[self.counter].format(got=f"{got:,}", most=f"{most:,}")
        name = self.counter.removeprefix(READS)
        return f"Its threads load {got:,} numbers of {name}, which has {len(getattr(p, name)):,}; at most {most:,}."


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTask(CodeTask):
    """One kernel to write. It is called with `takes`, of which `blocks` and `threads` are the machine's."""

    result: str  # the array that is looked at afterwards
    bounds: tuple[Bound, ...]

    @property
    def given(self) -> str:
        try:
            source = inspect.getsource(threads)
        except OSError:  # on a page the library is compiled, and there to be imported
            return ""
        return (
            "import sys, types\n"
            f"sys.modules[{MACHINE!r}] = types.ModuleType({MACHINE!r})\n"
            f"exec(compile({source!r}, 'machine', 'exec'), vars(sys.modules[{MACHINE!r}]))\n"
        )

    @property
    def trial(self) -> str:
        return f"from {MACHINE} import tried as _tried\n{self.name} = _tried({self.name}, {self.result!r})\n"

    def ran(self, source: str, p: Draw) -> Returned:
        """What a kernel of the book's own gives, as it comes back from the sandbox."""
        return Returned(value=plain(threads.tried(defined(source, self.name), self.result)(**self.arguments(p))))

    def results(self, returned: Sequence[Returned]) -> list[Returned]:
        return [_read(one)[0] for one in returned]

    def verdict(self, draws: Sequence[Draw], returned: Sequence[Returned]) -> Verdict:
        read = [_read(one) for one in returned]
        judged = judge_function(self, draws, [result for result, _ in read])
        if judged.status in ("unanswered", "failed", "slip"):
            return judged
        if races := max(counts["races"] for _, counts in read):
            return self._slip(RACE, f"{races} words were touched by two warps with no barrier between, one writing.")
        if not judged.right:
            return judged
        for bound in self.bounds:
            for p, (_, counts) in zip(draws, read, strict=True):
                if told := bound.passed(p, counts):
                    return self._slip(bound.key, told)
        return judged

    def _slip(self, key: str, counted: str) -> Verdict:
        story = {change.key: change.story for change in self.changes}.get(key, "A barrier is missing.")
        return Verdict(status="slip", message=f"{story} {counted}", slips=(key,))

    def _returns(self, source: str, p: Draw) -> Value:
        result = _read(self.ran(source, p))[0]
        if result.problem:
            raise ValueError(result.problem)
        return result.value


def _read(one: Returned) -> tuple[Returned, dict[str, int]]:
    """What came back of the machine: the result alone, and the counts by name."""
    nothing = dict.fromkeys(COUNTERS, 0)
    if one.problem or one.unwritten:
        return one, nothing
    match one.value:
        case ("refused", str(why)):
            return Returned(problem=f"asks what the machine refuses: {why}"), nothing
        case (tuple(result), tuple(counts), tuple(reads)) if len(counts) == len(COUNTERS):
            named = [*zip(COUNTERS, counts, strict=True), *(pair for pair in reads if isinstance(pair, tuple))]
            try:
                found = {str(name): int(str(number)) for name, number in named}
            except ValueError:
                return Returned(problem=FOREIGN), nothing
            return Returned(value=result), found
    return Returned(problem=FOREIGN), nothing
