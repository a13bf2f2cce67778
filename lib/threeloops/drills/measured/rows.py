"""Rows that these drills ask about: calls that others timed, steps that they printed. Read when a question is drawn.

>>> one = timed_calls("matmul", "fp8")[0]
>>> one.part, one.sizes["m"] > 0, took(1.41e-05)
('b200-hgx', True, '14.1 µs')
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from threeloops.drills.engine import catalogued
from threeloops.facts import kernel_times
from threeloops.facts.kernel_times import SIZES
from threeloops.units import ms, us

if TYPE_CHECKING:
    from threeloops.training_loop.parallelism.published_steps import PublishedStep

LATER = ("rtx-pro-6000-server",)  # timed tables that came when questions had their numbers, which stay what they are
REPLAYED = "mean over replays of a CUDA graph, so that launches are hidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedCall:
    """One call on one GPU, as a table keeps it beside its cells."""

    part: str
    device: str
    engine: str
    format: str
    sizes: Mapping[str, int]
    seconds: float
    peak: float  # dense, of the format; 0 for an exchange
    rate: float  # of the memory, or of a link one way
    shortest: float  # what hardly any call of the table is quicker than
    source: str


@functools.cache
def timed_calls(family: str, *formats: str) -> tuple[TimedCall, ...]:
    """Every call of a family that stands by itself in a table, on all parts."""
    return tuple(_calls(family, formats))


def _calls(family: str, formats: tuple[str, ...]) -> list[TimedCall]:
    found = []
    for part in (one for one in kernel_times.timed_parts() if one not in LATER):
        told = kernel_times.kernel_times(part)
        for table in told.tables:
            if table.family != family or table.format not in formats:
                continue
            for sizes, seconds in table.kept_back:
                found.append(
                    TimedCall(
                        part=part,
                        device=told.device,
                        engine=table.engine,
                        format=table.format,
                        sizes=dict(zip(SIZES[family], sizes, strict=True)),
                        seconds=seconds,
                        peak=table.peak_flops_per_s,
                        rate=table.rate_bytes_per_s,
                        shortest=table.shortest_s,
                        source=f"{table.engine} on {told.device}: {told.source} ({told.licence}), read in 2026",
                    )
                )
    return found


def chosen(family: str, *formats: str, where: Callable[[TimedCall], bool]) -> tuple[TimedCall, ...]:
    """Those of them that a question can be asked about."""
    return tuple(call for call in timed_calls(family, *formats) if where(call))


def printed_steps() -> "tuple[PublishedStep, ...]":
    """Every training step that somebody printed. They come with what predicts them, which takes long to load: not
    before a question is drawn.
    """
    from threeloops.training_loop.parallelism.published_steps import published_steps

    return published_steps()


def gpu_name(part: str) -> str:
    """As the driver names it where kernels were timed on it, else the catalogue's name."""
    timed = part in kernel_times.timed_parts()
    return kernel_times.kernel_times(part).device if timed else catalogued.part(part).name


def took(seconds: float) -> str:
    """A measured time with the digits that the table has.

    >>> took(0.0004283), took(0.02567), took(1.471)
    ('428.3 µs', '25.67 ms', '1.471 s')
    """
    if seconds >= 1:
        return f"{seconds:.4g} s"
    return f"{seconds / us:.4g} µs" if seconds < ms else f"{seconds / ms:.4g} ms"
