"""A processor core, cycle by cycle: instructions that walk through stages, and operations that wait for the results
they need.

>>> [
...     place.cycle for place in flow(instructions=2, stages=3, width=1) if place.stage == 2
... ]  # when each is in the last stage
[2, 3]
>>> issue([chain(3)], latency_cycles=4, units=1, window=8).cycles  # three operations, each needing the one before
12
"""

from collections.abc import Sequence
from dataclasses import dataclass

# one entry per operation: the earlier operations of the same program whose results it needs
Program = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One instruction in one stage, in one cycle."""

    instruction: int
    stage: int
    cycle: int


def flow(*, instructions: int, stages: int, width: int) -> tuple[Place, ...]:
    """Up to `width` instructions enter in every cycle, and all that are inside move on by one stage."""
    inside: list[list[int]] = [[] for _ in range(stages)]
    waiting, places, cycle = list(range(instructions)), [], 0
    while waiting or any(inside):
        inside = [waiting[:width], *inside[:-1]]
        waiting = waiting[width:]
        places += [
            Place(instruction=number, stage=stage, cycle=cycle) for stage, held in enumerate(inside) for number in held
        ]
        cycle += 1
        if not waiting and not any(inside[:-1]):
            break
    return tuple(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """When every operation of every program was started, and when the last result was there."""

    starts: tuple[tuple[int, ...], ...]
    cycles: int


def issue(programs: Sequence[Program], *, latency_cycles: int, units: int, window: int) -> Issued:
    """Every cycle, up to `units` operations are started whose inputs are ready. A unit takes a new operation every
    cycle, a result takes `latency_cycles`.

    The core looks at the first `window` operations of each program that have not been started: a window of 1 keeps
    the order of the program, a larger one reorders. Several programs are several threads of the same core; they take
    turns at being asked first.
    """
    starts: list[dict[int, int]] = [{} for _ in programs]
    waiting = [list(range(len(program))) for program in programs]
    cycle = 0
    while any(waiting):
        free = units
        for turn in range(len(programs)):
            thread = (turn + cycle) % len(programs)
            for operation in waiting[thread][:window]:
                ready = all(
                    starts[thread].get(need, cycle) + latency_cycles <= cycle for need in programs[thread][operation]
                )
                if free and ready:
                    starts[thread][operation] = cycle
                    free -= 1
            waiting[thread] = [operation for operation in waiting[thread] if operation not in starts[thread]]
        cycle += 1
    last = max(start for thread in starts for start in thread.values())
    return Issued(
        starts=tuple(tuple(thread[number] for number in sorted(thread)) for thread in starts),
        cycles=last + latency_cycles,
    )


def chain(operations: int, *, chains: int = 1) -> Program:
    """Operations dealt in turn to chains: each needs the result of the one before it in its chain. One chain is a
    plain sum.

    >>> chain(4, chains=2)
    [(), (), (0,), (1,)]
    """
    return [(number - chains,) if number >= chains else () for number in range(operations)]


def one_after_another(operations: int, *, chains: int) -> Program:
    """The same chains, but written one whole chain after the other: a core that keeps the order cannot overlap them.

    >>> one_after_another(4, chains=2)
    [(), (0,), (), (2,)]
    """
    length = operations // chains
    return [(number - 1,) if number % length else () for number in range(operations)]
