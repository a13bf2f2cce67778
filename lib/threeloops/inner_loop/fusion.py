"""Fusion: what a chain of operations moves as separate kernels, and what it moves as one.

A separate kernel reads its inputs from memory and writes its output there, because the next kernel can find it
nowhere else. One kernel for the whole chain reads what comes from outside, writes what somebody outside needs, and
keeps the rest in registers.

>>> chain = [Operation("sum", ("x", "bias")), Operation("hidden", ("sum",)), Operation("out", ("hidden", "x"))]
>>> sizes = {"x": 4000, "bias": 40, "sum": 4000, "hidden": 4000, "out": 4000}
>>> separate_bytes(chain, sizes=sizes), fused_bytes(chain, sizes=sizes, needed=("out",))
(28040, 8040)
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: the name of what it makes, and the names of what it reads."""

    output: str
    inputs: tuple[str, ...]


def separate_bytes(steps: Sequence[Operation], *, sizes: Mapping[str, float]) -> float:
    """Bytes that the steps move as a kernel each.

    Formula:  sum over steps of inputs and output
    Units:    sizes in bytes, by tensor
    Assumes:  nothing stays in a cache from one kernel to the next; no step reads a tensor twice
    Raises:   ValueError for a step that reads or makes a tensor without a size
    Source:   by definition: every kernel reads its inputs and writes its output
    Counted:  simulate.inner_loop.fused_steps.separate_kernels
    """
    _sized(steps, sizes)
    return sum(sizes[name] for step in steps for name in (*step.inputs, step.output))


def fused_bytes(steps: Sequence[Operation], *, sizes: Mapping[str, float], needed: Collection[str]) -> float:
    """Bytes that the steps move as one kernel; `needed` are the results that somebody outside will read.

    Formula:  tensors that no step makes, once each, plus the needed ones
    Assumes:  the steps can run on one piece after the other, and what a piece needs fits into registers or shared
              memory
    Raises:   ValueError for a needed tensor that no step makes
    Source:   by definition: every tensor crosses the memory once
    Counted:  simulate.inner_loop.fused_steps.one_kernel
    """
    _sized(steps, sizes)
    made = {step.output for step in steps}
    for name in needed:
        checks.one_of(made, needed=name)
    outside = {name for step in steps for name in step.inputs} - made
    return sum(sizes[name] for name in (*outside, *needed))


def _sized(steps: Iterable[Operation], sizes: Mapping[str, float]) -> None:
    for step in steps:
        for name in (*step.inputs, step.output):
            checks.one_of(sizes, tensor=name)
            checks.positive(**{f"sizes[{name!r}]": sizes[name]})
