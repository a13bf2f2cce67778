"""Traced kernels: one step of training and of decoding under torch's profiler, its kernels added up by cause."""

import re
from collections.abc import Iterable

import torch
from torch.profiler import ProfilerActivity, profile

from threeloops.facts.recorded import Stamp
from threeloops.facts.recorded_cases import Case
from threeloops.facts.recorded_suite import suite
from threeloops.facts.traced_steps import Traced, cause_of
from threeloops.measure import recording
from threeloops.measure.recorded_kernels import call
from threeloops.units import us

KINDS = ("train_eager", "train_compiled", "decode_eager")
SPAN = re.compile(r"[\w.]+#")  # Optimizer.step#AdamW.step
WARM_UP = 3
DIGITS = 9  # nanoseconds


def cases() -> list[Case]:
    """The first case of each of KINDS that a GPU's suite has."""
    every = suite(device="cuda", quick=False)
    return [next(case for case in every if case.kind == kind) for kind in KINDS]


def traced() -> tuple[Stamp, dict[str, dict[str, Traced]]]:
    """A step of each case on this machine's GPU, with its stamp.

    Raises:   ValueError where there is no GPU
    """
    if not torch.cuda.is_available():
        raise ValueError("there is no GPU here whose kernels could be traced; trace on a machine with one")
    return recording.stamp_of(device="cuda"), {case.name: _step(case) for case in cases()}


def _step(case: Case) -> dict[str, Traced]:
    torch.manual_seed(recording.SEED)
    run = call(case, device="cuda")
    for _ in range(WARM_UP):
        run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    events = [one for one in seen.events() or () if one.device_type.name == "CUDA"]
    torch.cuda.empty_cache()
    return by_cause((one.name, one.device_time * us) for one in events)


def by_cause(kernels: Iterable[tuple[str, float]]) -> dict[str, Traced]:
    """Kernels with their seconds, added up; a span that torch draws over several of them is none.

    >>> by_cause([("nvjet_a", 1e-3), ("nvjet_b", 2e-3), ("Optimizer.step#AdamW.step", 4e-3)])
    {'matmuls': Traced(kernels=2, seconds=0.003)}
    """
    found: dict[str, Traced] = {}
    for name, seconds in kernels:
        if SPAN.match(name):
            continue
        number, total = found.get(cause_of(name), Traced(0, 0.0))
        found[cause_of(name)] = Traced(number + 1, round(total + seconds, DIGITS))
    return found
