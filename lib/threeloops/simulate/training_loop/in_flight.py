"""Count: run a pipeline schedule tick by tick and watch how many forward results wait on every stage.

In one tick each stage runs one forward or one backward pass of one chunk, if its input has arrived by then. The
schedules are told by their rules, as their papers tell them; how many micro-batches that keeps alive comes out of the
run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

FORWARD, BACKWARD = "forward", "backward"
Pass = tuple[int, int]  # chunk, micro-batch


@dataclass
class _Stage:
    """One stage's two queues, in the order the schedule prescribes, and what it has done."""

    forwards: list[Pass]
    backwards: list[Pass]
    done: list[str] = field(default_factory=list)
    alive: int = 0
    peak: int = 0


def peak_alive(*, schedule: str, pp: int, micro_batches: int, chunks: int = 1) -> tuple[int, ...]:
    """Per stage, the largest number of (chunk, micro-batch) pairs that have run forward and not yet backward.

    >>> peak_alive(schedule="1f1b", pp=4, micro_batches=9)
    (4, 3, 2, 1)
    """
    stages = [
        _Stage(_passes(pp, micro_batches, range(chunks)), _passes(pp, micro_batches, range(chunks)[::-1]))
        for _ in range(pp)
    ]
    finished: set[tuple[str, int, int]] = set()  # direction, position along all chunks, micro-batch
    while any(stage.backwards for stage in stages):
        # Every stage decides on what was finished before this tick.
        moves = [
            _RULES[schedule](stages, place, _ready(stages[place], place, finished, pp=pp, chunks=chunks))
            for place in range(pp)
        ]
        assert any(moves), "the schedule is stuck"
        for place, direction in enumerate(moves):
            if direction:
                finished.add(_run(stages[place], place, direction, pp=pp))
    return tuple(stage.peak for stage in stages)


def _passes(pp: int, micro_batches: int, chunks: range) -> list[Pass]:
    """Groups of pp micro-batches go through one chunk together, then through the next."""
    groups = [range(start, min(start + pp, micro_batches)) for start in range(0, micro_batches, pp)]
    return [(chunk, micro_batch) for group in groups for chunk in chunks for micro_batch in group]


def _ready(stage: _Stage, place: int, finished: set[tuple[str, int, int]], *, pp: int, chunks: int) -> set[str]:
    """The directions whose next pass has its input."""
    ready = set()
    if stage.forwards:
        chunk, micro_batch = stage.forwards[0]
        position = chunk * pp + place
        if position == 0 or (FORWARD, position - 1, micro_batch) in finished:
            ready.add(FORWARD)
    if stage.backwards:
        chunk, micro_batch = stage.backwards[0]
        position = chunk * pp + place
        gradient = (
            (FORWARD, position, micro_batch) if position == pp * chunks - 1 else (BACKWARD, position + 1, micro_batch)
        )
        if gradient in finished:
            ready.add(BACKWARD)
    return ready


def _run(stage: _Stage, place: int, direction: str, *, pp: int) -> tuple[str, int, int]:
    chunk, micro_batch = (stage.forwards if direction == FORWARD else stage.backwards).pop(0)
    stage.done.append(direction)
    stage.alive += 1 if direction == FORWARD else -1
    stage.peak = max(stage.peak, stage.alive)
    return direction, chunk * pp + place, micro_batch


def _gpipe(stages: list[_Stage], place: int, ready: set[str]) -> str | None:
    """All forward passes, then all backward passes."""
    wanted = FORWARD if stages[place].forwards else BACKWARD
    return wanted if wanted in ready else None


def _one_forward_one_backward(stages: list[_Stage], place: int, ready: set[str]) -> str | None:
    """Forward until the first micro-batch has come to the last stage; from then on, one backward after every
    forward.
    """
    stage = stages[place]
    warm_up = not stages[-1].done
    wanted = FORWARD if warm_up or (stage.forwards and stage.done[-1] == BACKWARD) else BACKWARD
    return wanted if wanted in ready else None


def _interleaved(stages: list[_Stage], place: int, ready: set[str]) -> str | None:
    """Backward whenever a gradient has come; otherwise forward, so that no stage is ever idle by choice."""
    return BACKWARD if BACKWARD in ready else FORWARD if FORWARD in ready else None


_RULES: dict[str, Callable[[list[_Stage], int, set[str]], str | None]] = {
    "gpipe": _gpipe,
    "1f1b": _one_forward_one_backward,
    "interleaved": _interleaved,
}
