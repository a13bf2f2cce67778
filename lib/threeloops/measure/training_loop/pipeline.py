"""Pipeline: a small network cut by depth over real processes, which pass activations and gradients on through gloo
under a schedule.

The numbers are real: every pass is computed, every tensor is sent, and the gradients are compared with those of one
process that holds the whole network. The device is not: each pass is stretched by sleeping to the time that it is
given, as a host does while its GPU works. So four ranks can be watched on a machine with two cores, where four
computing processes would mostly wait for each other.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from threeloops import checks, wall_clock
from threeloops.measure.processes.ranks import run_ranks
from threeloops.simulate.training_loop.pipeline_orders import (
    BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    Pass,
    orders,
)
from threeloops.simulate.training_loop.pipeline_schedules import Run, Timed, Work

WIDTH, ROWS = 64, 16  # of every piece's weight matrix; of a micro-batch
# passes in multiples of pass_s, as for equal matrix products
UNITS = {FORWARD: 1, BACKWARD: 2, INPUT_GRADIENT: 1, WEIGHT_GRADIENT: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One step to be run: a schedule and its sizes."""

    schedule: str
    micro_batches: int
    chunks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RealRun:
    """A step that real ranks did."""

    run: Run
    loss: float
    gradient_difference: float  # the largest of any weight, from those of one process that did it all
    largest_gradient: float


def weight(position: int) -> torch.Tensor:
    """The weights of one piece of the network, the same wherever it lies."""
    made = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(100 + position)) / WIDTH**0.5
    return made.requires_grad_()


def batch(micro_batch: int) -> torch.Tensor:
    return torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(micro_batch))


def _loss(output: torch.Tensor, micro_batches: int) -> torch.Tensor:
    return output.square().mean() / micro_batches


class _Rank:
    """One rank in one step: its pieces, what waits for the way back, and what it has noted."""

    def __init__(self, plan: Plan, pass_s: float) -> None:
        self.plan, self.pass_s = plan, pass_s
        self.rank, self.pp = dist.get_rank(), dist.get_world_size()
        self.last = self.pp * plan.chunks - 1
        self.weights = {position: weight(position) for position in range(self.rank, self.last + 1, self.pp)}
        self.gradients = {position: torch.zeros(WIDTH, WIDTH) for position in self.weights}
        self.kept: dict[tuple[int, int], tuple[torch.Tensor, ...]] = {}
        self.sent: list[tuple[dist.Work, torch.Tensor]] = []
        self.loss = 0.0

    def received(self, one: Pass) -> torch.Tensor | None:
        """What the pass needs from another rank; waits for it."""
        source = one.position + (-1 if one.kind == FORWARD else 1)
        if one.kind == WEIGHT_GRADIENT or not 0 <= source <= self.last:
            return None
        tensor = torch.empty(ROWS, WIDTH)
        dist.recv(tensor, src=source % self.pp, tag=self._tag(one.kind == FORWARD, source, one.micro_batch))
        return tensor

    def send(self, one: Pass, tensor: torch.Tensor) -> None:
        target = one.position + (1 if one.kind == FORWARD else -1)
        if 0 <= target <= self.last:
            tensor = tensor.detach().contiguous()
            work = dist.isend(
                tensor, dst=target % self.pp, tag=self._tag(one.kind == FORWARD, one.position, one.micro_batch)
            )
            assert work is not None
            self.sent.append((work, tensor))  # a tensor must live until it is gone

    def _tag(self, forward: bool, maker: int, micro_batch: int) -> int:
        return (2 * maker + forward) * self.plan.micro_batches + micro_batch

    def compute(self, one: Pass, came: torch.Tensor | None) -> torch.Tensor | None:
        """The pass itself; what is to be sent on."""
        key = one.position, one.micro_batch
        if one.kind == FORWARD:
            entered = (batch(one.micro_batch) if came is None else came).requires_grad_()
            left = torch.tanh(entered @ self.weights[one.position])
            self.kept[key] = entered, left
            return left
        if one.kind == WEIGHT_GRADIENT:
            _, left, gradient = self.kept.pop(key)
            self._add(one, torch.autograd.grad(left, self.weights[one.position], gradient)[0])
            return None
        entered, left = self.kept.pop(key)
        gradient = came if came is not None else self._gradient_of_loss(left)
        if one.kind == INPUT_GRADIENT:
            self.kept[key] = entered, left, gradient
            return torch.autograd.grad(left, entered, gradient, retain_graph=True)[0]
        to_input, to_weight = torch.autograd.grad(left, (entered, self.weights[one.position]), gradient)
        self._add(one, to_weight)
        return to_input

    def _gradient_of_loss(self, output: torch.Tensor) -> torch.Tensor:
        output = output.detach().requires_grad_()
        loss = _loss(output, self.plan.micro_batches)
        self.loss += float(loss.detach())
        return torch.autograd.grad(loss, output)[0]

    def _add(self, one: Pass, gradient: torch.Tensor) -> None:
        self.gradients[one.position] += gradient

    def step(self) -> list[Timed]:
        done = []
        for slot in orders(
            schedule=self.plan.schedule, pp=self.pp, micro_batches=self.plan.micro_batches, chunks=self.plan.chunks
        )[self.rank]:
            (one,) = slot
            came = self.received(one)
            start_s = time.monotonic()
            made = self.compute(one, came)
            wall_clock.pause(start_s + self.pass_s * UNITS[one.kind] / self.plan.chunks - time.monotonic())
            done.append(Timed(slot, start_s, time.monotonic()))
            if made is not None:
                self.send(one, made)
        for work, _ in self.sent:
            work.wait()
        return done


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """What a real step's passes took besides the device's time; means over all passes of a run."""

    # a pass that waited for another rank: from the end of the pass that made its input to its own start, less
    # between_s
    hop_s: float
    between_s: float  # a pass whose input was there: from the rank's last end to its own start
    late_s: float  # how much longer than the device's time a pass lasted
    # the device's time with between_s and late_s added to every pass: what the simulator needs, with hop_s, to tell
    # the step
    work: Work


def delays(run: Run, *, pass_s: float) -> Delays:
    """The delays of a measured run that the schedule does not model: between passes, and within them.

    Units:    pass_s as it was given to `measured`
    """
    timed = [(one, slot) for rank in run.operations for slot in rank for one in slot.passes]
    ended = {
        (one.kind == FORWARD, one.position, one.micro_batch): slot.end_s
        for one, slot in timed
        if one.kind != WEIGHT_GRADIENT
    }
    waits: list[float] = []
    turns = [0.0]
    for rank in run.operations:
        free_s = 0.0
        for slot in rank:
            (one,) = slot.passes
            source = one.position + {FORWARD: -1, WEIGHT_GRADIENT: run.chunks * len(run.operations)}.get(one.kind, 1)
            # nothing comes from beyond the ends of the model
            came_s = ended.get((one.kind == FORWARD, source, one.micro_batch), 0.0)
            (waits if came_s > free_s else turns).append(slot.start_s - max(came_s, free_s))
            free_s = slot.end_s
    late = [slot.end_s - slot.start_s - pass_s * UNITS[one.kind] / run.chunks for one, slot in timed]
    between_s, late_s = sum(turns) / len(turns), sum(late) / len(late)
    added_s = (between_s + late_s) * run.chunks
    split = any(one.kind == WEIGHT_GRADIENT for one, _ in timed)
    work = Work(
        forward_s=pass_s + added_s,
        input_gradient_s=pass_s + added_s,
        weight_gradient_s=pass_s + (added_s if split else 0.0),
    )
    return Delays(
        hop_s=max(0.0, sum(waits) / max(1, len(waits)) - between_s), between_s=between_s, late_s=late_s, work=work
    )


def run_plans(plans: Sequence[Plan], pass_s: float) -> list[tuple[list[Timed], float, dict[int, torch.Tensor]]]:
    """On a rank: every plan once, after a short one that opens the connections."""
    _Rank(Plan(schedule="gpipe", micro_batches=2), 0.0).step()
    results = []
    for plan in plans:
        rank = _Rank(plan, pass_s)
        dist.barrier()
        results.append((rank.step(), rank.loss, rank.gradients))
    return results


def alone(*, pieces: int, micro_batches: int) -> dict[int, torch.Tensor]:
    """The gradients of the same step in one process, one micro-batch after another."""
    weights = [weight(position) for position in range(pieces)]
    for micro_batch in range(micro_batches):
        stream = batch(micro_batch)
        for matrix in weights:
            stream = torch.tanh(stream @ matrix)
        _loss(stream, micro_batches).backward()
    return {position: matrix.grad for position, matrix in enumerate(weights) if matrix.grad is not None}


def measured(plans: Sequence[Plan], *, pp: int, pass_s: float, timeout_s: float = 60.0) -> list[RealRun]:
    """Every plan run once by pp real ranks, with what each rank did and when on the clock that they share.

    Units:    pass_s is the device's time for one forward pass through a rank's layers; a whole backward pass takes
              twice that, each half of it once
    Assumes:  one clock for all processes of the machine, as on Linux and macOS
    Raises:   ValueError for a schedule without an order here (DualPipe overlaps passes, which a sleeping device
              cannot); RankError as run_ranks does
    """
    checks.count(at_least=2, pp=pp)
    checks.non_negative(pass_s=pass_s)
    for plan in plans:
        checks.one_of(("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2"), schedule=plan.schedule)
        orders(schedule=plan.schedule, pp=pp, micro_batches=plan.micro_batches, chunks=plan.chunks)
    ranks = run_ranks(run_plans, tuple(plans), pass_s, ranks=pp, timeout_s=timeout_s)
    return [_real_run(plan, pp, [rank[place] for rank in ranks]) for place, plan in enumerate(plans)]


def _real_run(plan: Plan, pp: int, ranks: Sequence[tuple[list[Timed], float, dict[int, torch.Tensor]]]) -> RealRun:
    begin_s = min(timed[0].start_s for timed, _, _ in ranks)
    shifted = tuple(
        tuple(Timed(slot.passes, slot.start_s - begin_s, slot.end_s - begin_s) for slot in timed)
        for timed, _, _ in ranks
    )
    expected = alone(pieces=pp * plan.chunks, micro_batches=plan.micro_batches)
    got = {position: gradient for _, _, gradients in ranks for position, gradient in gradients.items()}
    return RealRun(
        run=Run(operations=shifted, chunks=plan.chunks),
        loss=sum(loss for _, loss, _ in ranks),
        gradient_difference=max(float((got[position] - expected[position]).abs().max()) for position in expected),
        largest_gradient=max(float(gradient.abs().max()) for gradient in expected.values()),
    )
