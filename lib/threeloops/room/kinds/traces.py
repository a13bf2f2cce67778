"""Read the trace: a timeline of a training job with one known illness, as rows of characters that any terminal shows.

The job is played by simulate.ill_jobs; which answer is right is worked out from the trace itself, by the reader of
`threeloops trace`, in the form that a profiler would have written.
"""

import functools
import random
from collections.abc import Iterable

from threeloops.drills.engine.drill import seeded
from threeloops.inner_loop import trace as names
from threeloops.inner_loop.profiled.rank_account import rank_account
from threeloops.inner_loop.profiled.rank_record import recorded
from threeloops.inner_loop.profiled.trace_suspects import KERNELS
from threeloops.inner_loop.profiled.written_trace import chrome_events
from threeloops.inner_loop.trace import Interval, Trace
from threeloops.inner_loop.trace_diagnosis import FIRST_TRY
from threeloops.inner_loop.trace_gauges import Gauges
from threeloops.room.idea import idea_of
from threeloops.room.letters import Column, Option, judged, wanted
from threeloops.room.question import Question, Subject
from threeloops.simulate.inner_loop import ill_jobs
from threeloops.units import GB, fmt_percent, fmt_seconds

HEALTHY, NOTHING = "healthy", "busy nearly all the time, and memory is not full"
COLUMNS = 68  # characters that a step is wide: with its name, no more than a terminal of 80 shows
OFFERED = 4  # causes, and fixes, to choose from
LOOPS = {
    "inner": "inner: one GPU, and what feeds it",
    "training": "training: the GPUs among each other",
    HEALTHY: "neither: it runs as it should",
}
CAUSES = {
    "starved loader": "workers prepare batches more slowly than the GPU uses them up",
    "hidden syncs": "the program keeps reading values off the GPU and lets it run dry each time",
    "launch-bound": "kernels are so short that the CPU cannot ask for them fast enough",
    "memory-bound": "kernels run nearly all the time, but wait for memory",
    "exposed communication": "gradients travel while no GPU computes",
    "exposed copies": "batches are copied while the GPU waits for them",
    "memory leak": "every step keeps memory that it should have given back",
    HEALTHY: "nothing to speak of",
}
FIXES = {ill: FIRST_TRY[ill] for ill in CAUSES if ill != HEALTHY} | {
    HEALTHY: "leave it; a faster step needs less work, not less waiting"
}
SOURCE = (
    "Meta, Holistic Trace Analysis, 2023 (temporal and idle-time breakdown); the job is simulated, see"
    " threeloops.simulate.inner_loop.training_timeline"
)
SECTION, TARGET_S = "Profiling", 120.0
LETTER = {"launch": "l", names.BATCH_WAIT: "w", names.SYNC: "s", names.QUEUE_FULL: "q"}


def diagnosed(window: Trace) -> tuple[str, Gauges, str]:
    """What a trace suffers from, why, and its gauges: by the reader that a profiler's own file goes through.

    Assumes:  a job of which no pause and no counter is suspected first is healthy: the first suspect computes
    """
    read = rank_account(recorded(chrome_events(window), name="case.json"), rank=0)
    first = read.suspects[0] if read.suspects and read.suspects[0].of != KERNELS else None
    return (first.illness, read.gauges, first.because) if first else (HEALTHY, read.gauges, NOTHING)


def loop_of(ill: str) -> str:
    return HEALTHY if ill == HEALTHY else "training" if ill == "exposed communication" else "inner"


def simulated_case(kind: str, seed: str) -> int:
    """The number of a case of this kind: `threeloops trace --simulated` writes it by this seed."""
    return seeded("trace", seed, kind).randrange(1_000_000_000)


def window_of(kind: str, seed: str) -> Trace:
    """Four steps of a job of this kind."""
    return ill_jobs.trace(kind, seed=simulated_case(kind, seed))


def picture(window: Trace) -> str:
    """One step of a trace as rows of characters, and what was read over all of them."""
    _, read, _ = diagnosed(window)
    steps = window.of(names.STEP)
    step = steps[1]
    rows = [names.LOADER, names.HOST, names.COMPUTE, names.COPY, names.COMMUNICATION]
    cells = [
        (step.start_s + n * step.length_s / COLUMNS, step.start_s + (n + 1) * step.length_s / COLUMNS)
        for n in range(COLUMNS)
    ]
    drawn = [
        f"  {row:8}{''.join(_character(inside, row, *cell) for cell, inside in _by_cell(window.of(row), cells))}"
        for row in rows
    ]
    lows = [min(r.value for r in window.read(names.ALLOCATED) if one.start_s <= r.at_s < one.end_s) for one in steps]
    return "\n".join(
        (
            f"One step, {fmt_seconds(step.length_s)}, from left to right:",
            *drawn,
            (
                "  # busy, + partly, . not. CPU: l asks for kernels, w waits for a batch, s waits for the GPU, q its"
                " queue of kernels is full."
            ),
            (
                f"Over {len(steps)} steps: GPU busy {fmt_percent(read.busy)} of the time, kernels of"
                f" {fmt_seconds(read.median_kernel_s)} (median), {read.num_syncs} times waited for the GPU. Memory bus"
                f" {fmt_percent(read.memory_bus or 0)}, tensor cores {fmt_percent(read.tensor_cores or 0)}."
            ),
            f"Least memory allocated in each step: {', '.join(f'{low / GB:.2f}' for low in lows)} GB.",
        )
    )


def _by_cell(
    intervals: Iterable[Interval], cells: list[tuple[float, float]]
) -> Iterable[tuple[tuple[float, float], list[Interval]]]:
    found = list(intervals)
    return (
        (cell, [interval for interval in found if interval.start_s < cell[1] and interval.end_s > cell[0]])
        for cell in cells
    )


def _character(inside: list[Interval], row: str, start_s: float, end_s: float) -> str:
    """What most of a cell's time went to."""
    seconds: dict[str, float] = {}
    for interval in inside:
        letter = LETTER.get(interval.name, "#") if row == names.HOST else "#"
        seconds[letter] = seconds.get(letter, 0.0) + interval.cut(start_s, end_s).length_s
    if not seconds:
        return "."
    letter, share = max(seconds.items(), key=lambda item: item[1])
    share /= end_s - start_s
    if row == names.HOST:
        return letter if sum(seconds.values()) >= (end_s - start_s) / 4 else "."
    return "#" if share >= 0.75 else "+" if share >= 0.25 else "."


def columns(ill: str, rng: random.Random) -> tuple[Column, ...]:
    """Loop, cause and fix, each with its options; the others are other jobs' illnesses."""
    causes, fixes = (_offered(ill, table, rng) for table in (CAUSES, FIXES))
    loops = tuple(Option(key=key, text=text) for key, text in LOOPS.items())
    return (
        Column(name="Loop", options=loops, right=loop_of(ill)),
        Column(name="Cause", options=causes, right=ill),
        Column(name="First fix", options=fixes, right=ill),
    )


def _offered(ill: str, table: dict[str, str], rng: random.Random) -> tuple[Option, ...]:
    keys = [ill, *rng.sample([other for other in table if other != ill], OFFERED - 1)]
    return tuple(Option(key=key, text=table[key]) for key in rng.sample(keys, OFFERED))


def read_the_trace(kind: str, seed: str) -> Question:
    """A job of this kind: which loop, which cause, which fix?"""
    window = window_of(kind, seed)
    ill, read, because = diagnosed(window)
    offered = columns(ill, seeded("trace options", seed, kind))
    text = (
        f"A training job on several GPUs; a profiler watched one of them.\n{picture(window)}\nWhat is wrong, if"
        " anything?\n" + "\n".join(column.lines for column in offered) + f"\n{wanted(offered)}"
    )
    return _subject(kind).as_question(
        kind="trace",
        seed=seed,
        text=text,
        hints=(
            f"The GPU is idle {fmt_percent(read.idle)} of the time. What runs in the other rows meanwhile?",
            f"The gauges say: {because}.",
            f"The cause: {CAUSES[ill]}.",
        ),
        judge=lambda written: judged(written, offered),
        working=(
            f"  {ill}: {because}.\n  First: {FIXES[ill]}.\n  Answer: {' '.join(column.letter for column in offered)}\n"
            f'  For a viewer: threeloops trace case.json.gz --simulated "{kind}" --seed {simulated_case(kind, seed)}\n'
            f"  Source: {SOURCE}"
        ),
    )


def key_of(kind: str) -> str:
    return f"trace-{kind.replace(' ', '-')}"


def _subject(kind: str) -> Subject:
    return Subject(
        key=key_of(kind),
        title="Read the trace",  # the same for all: a title must not tell
        topic="profiling",
        loop=loop_of(kind) if kind != HEALTHY else "inner",
        section=SECTION,
        target_s=TARGET_S,
        prerequisites=("profiling-idle-share",),
    )


IDEAS = tuple(idea_of(_subject(kind), {"trace": functools.partial(read_the_trace, kind)}) for kind in ill_jobs.KINDS)
