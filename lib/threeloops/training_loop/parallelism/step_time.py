"""Step time: what a training step on many GPUs is made of, and the three figures that are read from it: tokens/s/GPU,
MFU, days.

>>> step = StepTime(compute_s=8.0, overlappable_s=5.0, exposed_s=0.5, bubble_s=1.0, overhead_s=0.25)
>>> step.total_s, round(step.shares["bubble"], 3)
(9.75, 0.103)

Source: Narayanan et al., 2021, arXiv:2104.04473, sections 2.2 and 3 (bubble, communication); Li et al., PyTorch
        Distributed, VLDB 2020, arXiv:2006.15704
(overlap); Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1 (MFU)
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.models import utilisation


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """One step of one GPU, in seconds by what it waits for."""

    compute_s: float  # kernels, recomputation included
    # communication that may run beside them, until the last of it is done, counted from the start of the step
    overlappable_s: float
    exposed_s: float  # communication that everything waits for
    bubble_s: float  # idle in a pipeline
    # optimiser, launches, loading, checkpoints: what is paid per step and neither computes the model nor sends
    overhead_s: float

    def __post_init__(self) -> None:
        checks.positive(compute_s=self.compute_s)
        checks.non_negative(
            overlappable_s=self.overlappable_s,
            exposed_s=self.exposed_s,
            bubble_s=self.bubble_s,
            overhead_s=self.overhead_s,
        )

    @property
    def total_s(self) -> float:
        """Seconds of the step.

        Formula:  max(compute_s, overlappable_s) + exposed_s + bubble_s + overhead_s
        Assumes:  computing and overlapped communication do not slow each other down
        """
        return max(self.compute_s, self.overlappable_s) + self.exposed_s + self.bubble_s + self.overhead_s

    @property
    def shares(self) -> dict[str, float]:
        """The step by cause; of the overlapped communication only what sticks out."""
        parts = {
            "compute": self.compute_s,
            "communication": max(0.0, self.overlappable_s - self.compute_s) + self.exposed_s,
            "bubble": self.bubble_s,
            "overhead": self.overhead_s,
        }
        return {name: seconds / self.total_s for name, seconds in parts.items()}


def data_parallel_step(
    *, forward_s: float, backward_s: float, send_s: float, buckets: int, overhead_s: float
) -> StepTime:
    """A data-parallel step whose gradients leave in equal buckets, each as soon as it is complete, while the backward
    pass goes on.

    Formula:  compute forward + backward; overlappable forward + backward / buckets + send * (buckets - 1) / buckets;
              exposed send / buckets
    Units:    send_s for all buckets together, with what each of them costs in latency
    Assumes:  buckets complete at equal distances; one at a time on the link; the last one has nothing left to hide
              behind
    Source:   Li et al., PyTorch Distributed, VLDB 2020, arXiv:2006.15704, section 3.2.3
    Counted:  simulate.training_loop.overlapped_step.play

    >>> data_parallel_step(forward_s=1.0, backward_s=2.0, send_s=1.0, buckets=4, overhead_s=0.0).total_s
    3.25
    """
    checks.positive(forward_s=forward_s, backward_s=backward_s)
    checks.non_negative(send_s=send_s)
    checks.count(buckets=buckets)
    return StepTime(
        compute_s=forward_s + backward_s,
        overlappable_s=forward_s + backward_s / buckets + send_s * (buckets - 1) / buckets,
        exposed_s=send_s / buckets,
        bubble_s=0.0,
        overhead_s=overhead_s,
    )


def bucketed_s(*, slices_s: Sequence[float], sends_s: Sequence[float]) -> float:
    """Seconds from the start of the backward pass until the last of unequal buckets has been sent.

    Formula:  the largest, over buckets i, of: all slices up to i, and all sends from i on
    Units:    slices_s: the backward pass in the pieces that complete one bucket each; sends_s: the time of each
              bucket on the link
    Assumes:  one bucket at a time on the link, in order; a send and a kernel do not slow each other down
    Counted:  simulate.training_loop.overlapped_step.play

    >>> bucketed_s(slices_s=[1.0, 1.0, 1.0], sends_s=[2.0, 0.5, 0.25])
    3.75
    """
    if not slices_s or len(slices_s) != len(sends_s):
        raise ValueError(
            f"there are {len(slices_s)} slices and {len(sends_s)} sends; give one send per slice, and at least one"
        )
    for part, send in zip(slices_s, sends_s, strict=True):
        checks.non_negative(slice_s=part, send_s=send)
    ready = list(itertools.accumulate(slices_s))
    left = list(itertools.accumulate(reversed(sends_s)))[::-1]
    return max(at + rest for at, rest in zip(ready, left, strict=True))


def tokens_per_gpu_s(*, tokens: float, step_s: float, num_gpus: int) -> float:
    """Tokens per second and GPU: the unit of progress, and the only one that can be compared across numbers of GPUs.

    Formula:  tokens / (step_s * num_gpus)
    Units:    tokens of the whole step: global batch times sequence
    Counted:  drills.step_time.parts.ASSEMBLED

    >>> tokens_per_gpu_s(tokens=4096 * 1024, step_s=8.0, num_gpus=512)
    1024.0
    """
    checks.positive(tokens=tokens, step_s=step_s)
    checks.count(num_gpus=num_gpus)
    return tokens / (step_s * num_gpus)


def mfu_of_tokens(*, flops_per_token: float, tokens_per_gpu_s: float, peak_flops_per_s: float) -> float:
    """MFU from tokens per second; `utilisation.mfu` takes the rate in FLOP/s.

    Formula:  flops_per_token * tokens_per_gpu_s / peak_flops_per_s
    Units:    flops_per_token of a training step without recomputation (SixNCorrections.total), whatever convention it
              follows; dense peak
    Source:   Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1
    Measured: tests.training_loop.test_step_time.test_nvidias_days_and_its_mfu

    >>> round(mfu_of_tokens(flops_per_token=6 * 70e9, tokens_per_gpu_s=1000, peak_flops_per_s=989.4e12), 3)
    0.424
    """
    checks.positive(flops_per_token=flops_per_token, tokens_per_gpu_s=tokens_per_gpu_s)
    return utilisation.mfu(model_flops_per_s=flops_per_token * tokens_per_gpu_s, peak_flops_per_s=peak_flops_per_s)


def training_s(*, tokens: float, tokens_per_gpu_s: float, num_gpus: int) -> float:
    """Seconds to train on so many tokens, if nothing stops the run.

    Formula:  tokens / (tokens_per_gpu_s * num_gpus)
    Assumes:  the throughput holds at this number of GPUs; failures are another factor (training_goodput)
    Counted:  drills.step_time.progress.DAYS

    >>> round(
    ...     training_s(tokens=1e13, tokens_per_gpu_s=1524, num_gpus=1024) / 86400, 1
    ... )  # NVIDIA prints 74 days for Llama 3 70B
    74.2
    """
    checks.positive(tokens=tokens, tokens_per_gpu_s=tokens_per_gpu_s)
    checks.count(num_gpus=num_gpus)
    return tokens / (tokens_per_gpu_s * num_gpus)


def relative_efficiency(*, few: int, few_s: float, many: int, many_s: float) -> float:
    """The share of perfect scaling between two runs of the same job: GPU-seconds before over GPU-seconds after.

    Formula:  few * few_s / (many * many_s)
    Assumes:  the same work in both, done to the same end
    Counted:  drills.step_time.parts.EFFICIENCY

    >>> round(relative_efficiency(few=1, few_s=840, many=256, many_s=25), 3)
    0.131
    """
    checks.count(few=few, many=many)
    checks.positive(few_s=few_s, many_s=many_s)
    return few * few_s / (many * many_s)
