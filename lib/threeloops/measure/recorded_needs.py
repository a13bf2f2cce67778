"""Recorded needs: what a case asks of a machine, and the reason in words where it has none.

>>> needs_gpu("cpu", "a kernel in CUDA C++")
Traceback (most recent call last):
threeloops.measure.recorded_needs.Skipped: a kernel in CUDA C++, which needs a GPU
"""

import importlib.util
from collections.abc import Callable

import torch

DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "tf32": torch.float32,
}

Call = Callable[[], object]


class Skipped(Exception):
    """This machine does not run the case; the message says why."""


def needs_gpu(device: str, what: str) -> None:
    """Skip on a CPU what only a GPU does."""
    if device == "cpu":
        raise Skipped(f"{what}, which needs a GPU")


def needs_triton(device: str) -> None:
    if device == "cpu":
        raise Skipped("a Triton kernel; compiled, Triton needs a GPU")
    if importlib.util.find_spec("triton") is None:
        raise Skipped("a Triton kernel; Triton is not installed here")


def needs_graphs(device: str) -> None:
    if device == "cpu":
        raise Skipped("a CUDA graph; a CPU has no launches to save")


def graph(work: Call) -> Call:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # once outside the graph: libraries set themselves up on first use
        work()
    torch.cuda.current_stream().wait_stream(side)
    kept = torch.cuda.CUDAGraph()
    with torch.cuda.graph(kept):
        work()

    def replay(held: Call = work) -> None:  # what the graph reads and writes lives as long as it does
        kept.replay()

    return replay
