"""Count: run a pipeline schedule on a clock. A pass starts when its rank is free and its input has come; everything
else follows.

Stages may be uneven, and a result takes a while to reach another rank.

>>> even = Work(forward_s=1, input_gradient_s=1, weight_gradient_s=1)
>>> done = run(schedule="1f1b", pp=4, micro_batches=8, work=even, send_s=0)
>>> done.step_s, done.idle_s, done.peak_alive()
(33.0, (9.0, 9.0, 9.0, 9.0), (4.0, 3.0, 2.0, 1.0))
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from threeloops import checks
from threeloops.simulate.training_loop.pipeline_orders import (
    BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    Slot,
    orders,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds that a rank needs for one micro-batch, through all of the layers that it holds (under DualPipe: of one
    direction).
    """

    forward_s: float
    input_gradient_s: float  # the backward pass without the gradients of the weights
    weight_gradient_s: float
    overlapped_s: float | None = None  # a forward and a whole backward run into each other; DualPipe alone does that

    def __post_init__(self) -> None:
        checks.non_negative(
            forward_s=self.forward_s, input_gradient_s=self.input_gradient_s, weight_gradient_s=self.weight_gradient_s
        )
        if self.overlapped_s is not None:
            checks.non_negative(overlapped_s=self.overlapped_s)


class Timed(NamedTuple):
    """A slot of the schedule, and when it ran."""

    passes: Slot
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What every rank did and when, in the order in which it did it."""

    operations: tuple[tuple[Timed, ...], ...]
    chunks: int

    @property
    def step_s(self) -> float:
        """From the first pass of any rank to the last."""
        return max(slots[-1].end_s for slots in self.operations)

    @property
    def busy_s(self) -> tuple[float, ...]:
        return tuple(sum(slot.end_s - slot.start_s for slot in slots) for slots in self.operations)

    @property
    def idle_s(self) -> tuple[float, ...]:
        """Per rank, what of the step it did not work."""
        return tuple(self.step_s - busy for busy in self.busy_s)

    @property
    def span_s(self) -> tuple[float, ...]:
        """Per rank, from its own first pass to its own last: what a step takes it if the next step may start without
        waiting for all ranks.
        """
        return tuple(slots[-1].end_s - slots[0].start_s for slots in self.operations)

    @property
    def idle_within_s(self) -> tuple[float, ...]:
        """Per rank, the idle time between its own first pass and its own last."""
        return tuple(span - busy for span, busy in zip(self.span_s, self.busy_s, strict=True))

    @property
    def idle_share(self) -> float:
        """The share of all ranks' time in the step in which they did nothing."""
        return sum(self.idle_s) / (len(self.operations) * self.step_s)

    def peak_alive(self, *, after_input_gradient: float = 1.0) -> tuple[float, ...]:
        """Per rank, the most micro-batches that wait for their backward pass, each counted by the share of the rank's
        layers that it has run.

        A micro-batch whose input gradient is done and whose weight gradient is not keeps this share of its
        activations: all of them unless told.
        """
        checks.fraction(after_input_gradient=after_input_gradient)
        change = {BACKWARD: -1.0, INPUT_GRADIENT: after_input_gradient - 1, WEIGHT_GRADIENT: -after_input_gradient}
        peaks = []
        for slots in self.operations:
            alive = peak = 0.0
            for passes, _, _ in slots:
                alive += sum(one.kind == FORWARD for one in passes)
                peak = max(peak, alive)
                alive += sum(change.get(one.kind, 0.0) for one in passes)
            peaks.append(peak / self.chunks)
        return tuple(peaks)


def run(
    *, schedule: str, pp: int, micro_batches: int, chunks: int = 1, work: Work | Sequence[Work], send_s: float
) -> Run:
    """The schedule on a clock: every slot of every rank with its start and end.

    Units:    work of one micro-batch on one rank, or one such per rank; send_s from the end of a pass until its
              result is there on another rank
    Assumes:  sending takes no time from a rank's own work, and links are never full; a chunk takes its equal share of
              its rank's work
    Raises:   ValueError for a schedule that cannot be (see pipeline_orders.orders), one work too many or too few,
              DualPipe without overlapped_s
    """
    checks.non_negative(send_s=send_s)
    plan = orders(schedule=schedule, pp=pp, micro_batches=micro_batches, chunks=chunks)
    works = [work] * pp if isinstance(work, Work) else list(work)
    if len(works) != pp:
        raise ValueError(f"there are {len(works)} works for pp={pp} ranks; give one for all, or one each")
    if schedule == "dualpipe" and any(one.overlapped_s is None for one in works):
        raise ValueError("schedule='dualpipe' needs overlapped_s: what a forward and a backward take together")
    clock = _Clock(
        plan,
        [_durations(one, chunks) for one in works],
        last=pp * chunks - 1,
        micro_batches=micro_batches,
        send_s=send_s,
    )
    return Run(operations=tuple(map(tuple, clock.run())), chunks=chunks)


def _durations(work: Work, chunks: int) -> dict[str, float]:
    whole = work.input_gradient_s + work.weight_gradient_s
    kinds = {
        FORWARD: work.forward_s,
        BACKWARD: whole,
        INPUT_GRADIENT: work.input_gradient_s,
        WEIGHT_GRADIENT: work.weight_gradient_s,
    }
    return {kind: seconds / chunks for kind, seconds in kinds.items()} | {
        "overlapped": (work.overlapped_s or 0) / chunks
    }


class _Clock:
    """Goes round the ranks; each runs until a slot's input is missing, and is called again when that has been
    made.
    """

    def __init__(
        self, plan: list[list[Slot]], durations: list[dict[str, float]], *, last: int, micro_batches: int, send_s: float
    ) -> None:
        self.plan, self.durations, self.last, self.micro_batches, self.send_s = (
            plan,
            durations,
            last,
            micro_batches,
            send_s,
        )
        # Outputs by position and micro-batch, and behind them the gradients of inputs: when each was ready, and on
        # which rank.
        self.gradients = (last + 1) * micro_batches
        self.ready_s: list[float | None] = [None] * (2 * self.gradients)
        self.maker = [-1] * (2 * self.gradients)
        self.waiting: dict[int, int] = {}

    def run(self) -> list[list[Timed]]:
        done: list[list[Timed]] = [[] for _ in self.plan]
        due = deque(range(len(self.plan)))
        while due:
            rank = due.popleft()
            slots, timed, durations = self.plan[rank], done[rank], self.durations[rank]
            free_s = timed[-1].end_s if timed else 0.0
            for place in range(len(timed), len(slots)):
                passes = slots[place]
                start_s = self._start(passes, rank, free_s)
                if start_s is None:
                    break
                free_s = start_s + durations[passes[0].kind if len(passes) == 1 else "overlapped"]
                timed.append(Timed(passes, start_s, free_s))
                self._finish(passes, rank, free_s, due)
        assert all(len(timed) == len(slots) for timed, slots in zip(done, self.plan, strict=True)), (
            "the schedule is stuck"
        )
        return done

    def _start(self, passes: Slot, rank: int, free_s: float) -> float | None:
        """When the slot can start; None, and a note of what is missing, if its input has not been made yet."""
        for kind, micro_batch, position in passes:
            if kind == WEIGHT_GRADIENT or (kind == FORWARD and position == 0):
                continue
            if kind == FORWARD:
                wanted = (position - 1) * self.micro_batches + micro_batch
            elif position == self.last:
                wanted = position * self.micro_batches + micro_batch
            else:
                wanted = self.gradients + (position + 1) * self.micro_batches + micro_batch
            there_s = self.ready_s[wanted]
            if there_s is None:
                self.waiting[wanted] = rank
                return None
            if self.maker[wanted] != rank:
                there_s += self.send_s
            if there_s > free_s:
                free_s = there_s
        return free_s

    def _finish(self, passes: Slot, rank: int, end_s: float, due: deque[int]) -> None:
        for kind, micro_batch, position in passes:
            if kind != WEIGHT_GRADIENT:
                made = position * self.micro_batches + micro_batch + (0 if kind == FORWARD else self.gradients)
                self.ready_s[made], self.maker[made] = end_s, rank
                if made in self.waiting:
                    due.append(self.waiting.pop(made))
