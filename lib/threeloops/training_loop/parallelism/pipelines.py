"""Pipelines: what a model cut by depth loses to waiting, and what it sends.

F is the time of one micro-batch's forward pass through one stage, D that of its input gradients, W that of its weight
gradients; a whole backward pass takes D + W. Beware of the letter B: Qi et al. write it for D, DeepSeek for D + W.

>>> few = bubble(schedule="1f1b", pp=4, micro_batches=4, forward_s=1, input_gradient_s=1, weight_gradient_s=1)
>>> few.over_ideal, round(few.share_of_step, 3)
(0.75, 0.429)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-interleaved", "zb-v", "dualpipe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubble:
    """A rank's idle time in a step beside its work: two shares that are often taken for each other."""

    ideal_s: float  # what the rank works
    idle_s: float

    @property
    def step_s(self) -> float:
        return self.ideal_s + self.idle_s

    @property
    def over_ideal(self) -> float:
        """Idle time over working time: what the step takes longer than it need."""
        return self.idle_s / self.ideal_s

    @property
    def share_of_step(self) -> float:
        """Idle time over the whole step: what a clock on the wall sees; the bubble fraction."""
        return self.idle_s / self.step_s


def bubble(
    *,
    schedule: str,
    pp: int,
    micro_batches: int,
    forward_s: float,
    input_gradient_s: float,
    weight_gradient_s: float,
    chunks: int = 1,
    overlapped_s: float | None = None,
) -> Bubble:
    """The idle time of a rank in one step, under a schedule.

    Formula:  idle: GPipe, 1F1B (p-1)(F+D+W); interleaved (p-1)(F+D+W)/v; ZB-H1 (p-1)(F+D-W); ZB-H2 (p-1)(F+D-2W);
              DualPipe (p/2-1)(FB+D-2W); interleaved ZB (p-1)(F+D-W)/v; ZB-V 0 ideal: m(F+D+W), under DualPipe with FB
              instead of F+D+W
    Units:    seconds for one micro-batch through one stage, which is all layers that a rank holds (under DualPipe: in
              one direction); chunks per rank; overlapped_s is FB, a forward and a whole backward pass run into each
              other
    Assumes:  even stages, no time on links. In ZB-H1, ZB-H2 and interleaved ZB a W longer than F counts as F (the
              surplus fills no bubble), and less idle time than none is none; ZB-H2 and ZB-V count from a rank's own
              start to its own end, since the optimiser of one rank does not wait for another's. DualPipe's is exact
              for F = D = W, FB = F+D+W; elsewhere its published schedule, run on a clock, is a little better than its
              published formula
    Raises:   ValueError for an unknown schedule, sizes that the schedule refuses, overlapped_s where there is no
              overlap, or ZB-V with unequal F, D and W: the published 0 is for equal ones, and
              simulate.training_loop.pipeline_schedules plays the others
    Source:   Huang et al., 2019, arXiv:1811.06965 (GPipe); Narayanan et al., 2021, arXiv:2104.04473, section 2.2; Qi
              et al., 2023, arXiv:2401.10241, sections 2 and 6 (ZB-V); torch 2.13, ScheduleInterleavedZeroBubble
              (ZB-H1 in chunks); DeepSeek-AI, 2024, arXiv:2412.19437, table 2
    Counted:  simulate.training_loop.pipeline_schedules.run

    >>> bubble(schedule="zb-h1", pp=4, micro_batches=8, forward_s=1, input_gradient_s=1, weight_gradient_s=1).idle_s
    3
    """
    checks.one_of(SCHEDULES, schedule=schedule)
    checks.count(pp=pp, micro_batches=micro_batches, chunks=chunks)
    checks.positive(forward_s=forward_s, input_gradient_s=input_gradient_s)
    checks.non_negative(weight_gradient_s=weight_gradient_s)
    _check_overlap(schedule, overlapped_s)
    check_schedule(schedule=schedule, pp=pp, micro_batches=micro_batches, chunks=chunks)
    if schedule == "zb-v" and not forward_s == input_gradient_s == weight_gradient_s:
        unequal = (
            f"forward_s={forward_s:g}, input_gradient_s={input_gradient_s:g} and"
            f" weight_gradient_s={weight_gradient_s:g}"
        )
        raise ValueError(
            f"{unequal} must be equal with schedule='zb-v', whose bubble is published for no other; play it with"
            " pipeline_schedules.run"
        )
    whole_s = forward_s + input_gradient_s + weight_gradient_s
    # what one weight gradient fills of the wait that one forward pass causes
    filled_s = min(weight_gradient_s, forward_s)
    if schedule == "dualpipe":
        assert overlapped_s is not None  # _refuse has seen to it
        idle_s = (pp // 2 - 1) * (overlapped_s + input_gradient_s - 2 * weight_gradient_s)
        return Bubble(ideal_s=micro_batches * overlapped_s, idle_s=idle_s)
    per_stage_s = {
        "gpipe": whole_s,
        "1f1b": whole_s,
        "interleaved": whole_s / chunks,
        "zb-h1": forward_s + input_gradient_s - filled_s,
        "zb-h2": max(0, forward_s + input_gradient_s - 2 * filled_s),
        "zb-interleaved": (forward_s + input_gradient_s - filled_s) / chunks,
        "zb-v": 0,
    }[schedule]
    return Bubble(ideal_s=micro_batches * whole_s, idle_s=(pp - 1) * per_stage_s)


def _check_overlap(schedule: str, overlapped_s: float | None) -> None:
    if (schedule == "dualpipe") != (overlapped_s is not None):
        raise ValueError(
            f"overlapped_s={overlapped_s!r} with schedule={schedule!r}: it belongs to 'dualpipe', and only there"
        )
    if overlapped_s is not None:
        checks.positive(overlapped_s=overlapped_s)


def check_schedule(*, schedule: str, pp: int, micro_batches: int, chunks: int) -> None:
    """Refuse sizes for which a schedule is not defined."""
    interleaved = schedule in ("interleaved", "zb-interleaved")
    if schedule == "zb-v" and chunks != 2:
        raise ValueError(
            f"chunks={chunks} with schedule='zb-v': it has 2 per rank, one on the way down the ranks and one on the"
            " way up"
        )
    if schedule != "zb-v" and interleaved != (chunks > 1):
        raise ValueError(
            f"chunks={chunks} with schedule={schedule!r}: interleaving has 2 chunks or more per rank, every other"
            " schedule 1"
        )
    if interleaved:
        checks.divides(part="pp", part_value=pp, whole="micro_batches", whole_value=micro_batches)
    fewest = {"zb-h1": pp, "zb-h2": 2 * pp - 1, "zb-v": 2 * pp - 1, "dualpipe": 2 * pp}.get(schedule, 1)
    if micro_batches < fewest:
        raise ValueError(
            f"micro_batches={micro_batches} must be at least {fewest} for schedule={schedule!r} with pp={pp}"
        )
    if schedule == "dualpipe":
        _even(pp=pp, micro_batches=micro_batches)


def _even(**counts: int) -> None:
    for name, count in counts.items():
        if count % 2:
            raise ValueError(
                f"{name}={count} must be even for schedule='dualpipe', which feeds the pipeline from both ends"
            )


def step_s(*, compute_s: float, pp: int, micro_batches: int, chunks: int = 1) -> float:
    """A step's time from what one rank computes in it, under GPipe, 1F1B or interleaved 1F1B.

    Formula:  compute_s * (1 + (p - 1) / (v * m)); the bubble is added as a share of the work, never as a share of the
              step
    Assumes:  even stages; nothing waits for a link
    Source:   Narayanan et al., 2021, arXiv:2104.04473, sections 2.2.1 and 2.2.2
    Counted:  simulate.training_loop.pipeline_schedules.run

    >>> step_s(compute_s=8, pp=4, micro_batches=12)
    10.0
    """
    checks.positive(compute_s=compute_s)
    checks.count(pp=pp, micro_batches=micro_batches, chunks=chunks)
    return compute_s * (1 + (pp - 1) / (chunks * micro_batches))


def micro_batches_for(*, share_of_step: float, pp: int, chunks: int = 1) -> int:
    """The fewest micro-batches with which the bubble takes no more than a share of the step.

    Formula:  (p - 1) / (v * m + p - 1) <= share, so m >= (p - 1) * (1 - share) / (share * v), rounded up
    Assumes:  GPipe, 1F1B or interleaved 1F1B; even stages. Megatron-LM's first schedule wants a multiple of pp besides
              when it interleaves; Llama 3's does not
    Raises:   ValueError for a share that is not between 0 and 1
    Source:   Narayanan et al., 2021, arXiv:2104.04473, section 2.2 (solved for m)
    Counted:  simulate.training_loop.pipeline_schedules.run

    >>> micro_batches_for(share_of_step=0.1, pp=8), micro_batches_for(share_of_step=0.1, pp=8, chunks=2)
    (63, 32)
    """
    checks.count(pp=pp, chunks=chunks)
    checks.number(share_of_step=share_of_step)
    if not 0 < share_of_step < 1:
        raise ValueError(
            f"share_of_step={share_of_step!r} must lie between 0 and 1; with 2 stages or more, no number of"
            " micro-batches brings the bubble to 0"
        )
    return max(1, math.ceil((pp - 1) * (1 - share_of_step) / (share_of_step * chunks) - 1e-9))


def uneven_step_s(*, forward_s: Sequence[float], backward_s: Sequence[float], micro_batches: int) -> float:
    """A step's time under GPipe when stages differ: the first micro-batch sees all of them, every further one costs
    what the slowest takes.

    Formula:  sum(F) + sum(B) + (m - 1) * (max(F) + max(B)), per stage one F and one B, the whole backward pass
    Assumes:  GPipe; 1F1B needs no longer, if every stage's backward pass is the same multiple of its forward pass
    Raises:   ValueError unless there is one backward time per forward time
    Source:   the longest path through the schedule of Huang et al., 2019, arXiv:1811.06965, figure 2c
    Counted:  simulate.training_loop.pipeline_schedules.run

    >>> uneven_step_s(forward_s=[1, 1, 2], backward_s=[2, 2, 4], micro_batches=10)
    66
    """
    checks.count(micro_batches=micro_batches)
    if not forward_s or len(forward_s) != len(backward_s):
        raise ValueError(
            f"there are {len(forward_s)} forward times and {len(backward_s)} backward times; give one of each per stage"
        )
    for forward, backward in zip(forward_s, backward_s, strict=True):
        checks.non_negative(forward_s=forward, backward_s=backward)
    return sum(forward_s) + sum(backward_s) + (micro_batches - 1) * (max(forward_s) + max(backward_s))


def one_f_one_b_pace_s(*, pass_s: float, pp: int, send_s: float) -> float:
    """Time per micro-batch in the middle of a long 1F1B step whose links take a while: nothing else is under way that
    could hide them.

    Formula:  pass_s + 2 * (p - 1) / p * send_s: a round trip of p passes and 2 * (p - 1) hops, with p micro-batches
              under way (Little's law)
    Units:    pass_s for one micro-batch through one stage, forward and backward; send_s per hop, in either direction
    Assumes:  even stages, many more micro-batches than stages, receives that are waited for; interleaving warms up
              longer and hides the hops
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383; Narayanan et al., 2021,
              arXiv:2104.04473, section 2.2.1 (p in flight)
    Counted:  simulate.training_loop.pipeline_schedules.run

    >>> one_f_one_b_pace_s(pass_s=12, pp=4, send_s=2)
    15.0
    """
    checks.positive(pass_s=pass_s)
    checks.non_negative(send_s=send_s)
    checks.count(pp=pp)
    return pass_s + 2 * (pp - 1) / pp * send_s


def boundary_bytes(*, micro_batch: int, sequence: int, hidden: int, bytes_per_element: float) -> float:
    """What crosses one boundary between stages for one micro-batch in one direction: its activations, or on the way
    back their gradients.

    Formula:  micro_batch * sequence * hidden * bytes_per_element, micro_batch in sequences
    Assumes:  the residual stream alone crosses, whole: with sequence parallelism inside a stage, each of its t ranks
              sends its t-th part
    Source:   Narayanan et al., 2021, arXiv:2104.04473, section 3.2 (b * s * h values per micro-batch between
              consecutive devices)
    Counted:  drills.pipeline.costs.BYTES

    >>> boundary_bytes(micro_batch=1, sequence=4096, hidden=8192, bytes_per_element=2)
    67108864
    """
    checks.count(micro_batch=micro_batch, sequence=sequence, hidden=hidden)
    checks.positive(bytes_per_element=bytes_per_element)
    return micro_batch * sequence * hidden * bytes_per_element


def step_boundary_bytes(*, tensor_bytes: float, pp: int, micro_batches: int, chunks: int = 1) -> float:
    """What all ranks of one pipeline send each other in a step, forward and backward together.

    Formula:  2 * (p * v - 1) * m * tensor_bytes: v chunks per rank make p * v pieces of the model in a row
    Assumes:  consecutive pieces lie on different ranks, as in 1F1B and interleaved 1F1B with two ranks or more (in
              ZB-V the two middle pieces share a rank: it sends twice what 1F1B sends)
    Source:   Narayanan et al., 2021, arXiv:2104.04473, section 2.2.2 (interleaving multiplies communication by v)
    Counted:  simulate.training_loop.pipeline_orders.orders

    >>> (
    ...     step_boundary_bytes(tensor_bytes=1, pp=4, micro_batches=8),
    ...     step_boundary_bytes(tensor_bytes=1, pp=4, micro_batches=8, chunks=2),
    ... )
    (48, 112)
    """
    checks.positive(tensor_bytes=tensor_bytes)
    checks.count(micro_batches=micro_batches, chunks=chunks)
    checks.count(at_least=2, pp=pp)
    return 2 * (pp * chunks - 1) * micro_batches * tensor_bytes


def global_batch(*, micro_batch: int, micro_batches: int, dp: int) -> int:
    """Sequences in one step of the optimiser: pipeline stages do not multiply them.

    Formula:  micro_batch * micro_batches * dp
    Source:   Narayanan et al., 2021, arXiv:2104.04473, section 3 (B = b * m * d)
    Counted:  drills.pipeline.costs.BATCH

    >>> global_batch(micro_batch=2, micro_batches=8, dp=8)
    128
    """
    checks.count(micro_batch=micro_batch, micro_batches=micro_batches, dp=dp)
    return micro_batch * micro_batches * dp
