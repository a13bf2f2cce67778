"""A brochure's total taken apart: what of it is dense, what needs sparse weights, and which engine does it.

>>> from threeloops.facts import hardware
>>> pieces = taken_apart(hardware.part("jetson-agx-orin-64gb"), dtype="int8", power_mode="maxn")
>>> [f"{piece.engine} {piece.dense_ops_per_s / 1e12:g} + {piece.sparse_extra_ops_per_s / 1e12:g}" for piece in pieces]
['gpu 85 + 85', 'dla 52.5 + 52.5']
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.facts.hardware import Part
from threeloops.units import GB, TFLOP

SPARSE_FACTOR = 2  # a rate with 2:4 sparse weights over the dense one


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One engine's part of a total."""

    engine: str
    dense_ops_per_s: float
    sparse_extra_ops_per_s: float  # counted on top when half of the weights are pruned to zero; 0 where none is claimed


def taken_apart(part: Part, *, dtype: str, power_mode: str) -> tuple[Piece, ...]:
    """The pieces of a part's total in one number format and one power mode, engine by engine.

    Formula:  total = sum over engines of dense + (sparse - dense)
    Raises:   ValueError where no engine of the part lists that format in that mode
    Source:   the part's own facts
    Counted:  tests.facts.test_socs.test_the_brochures_total_is_the_sum_of_its_pieces
    """
    pieces = []
    for engine, modes in part.engines.items():
        if power_mode in modes and dtype in modes[power_mode].peaks:
            rates = modes[power_mode]
            dense = rates.peaks[dtype].value
            sparse = rates.sparse_peaks[dtype].value if dtype in rates.sparse_peaks else dense
            pieces.append(Piece(engine=engine, dense_ops_per_s=dense, sparse_extra_ops_per_s=sparse - dense))
    if not pieces:
        raise ValueError(
            f"{part.key} lists no {dtype} in power mode {power_mode!r}; take a format and mode that it has"
        )
    return tuple(pieces)


def dense_engine_ops_per_s(*, total_ops_per_s: float, others_ops_per_s: float) -> float:
    """What one engine does with dense weights, out of a total of all engines with sparse ones.

    Formula:  (total - other engines) / 2: with 2:4 sparsity half of the products have a pruned zero and are not done
    Units:    total_ops_per_s and others_ops_per_s both with sparse weights; others_ops_per_s=0 for an engine alone
    Assumes:  sparsity doubles the rate of every engine in the total
    Raises:   ValueError unless the other engines have less than the total
    Source:   NVIDIA Jetson AGX Orin data sheet, DS-10662-001, 2024 (sparsity doubles throughput)
    Counted:  drills.driving_silicon.totals.DENSE

    >>> dense_engine_ops_per_s(total_ops_per_s=275e12, others_ops_per_s=105e12) / 1e12  # the GPU of an AGX Orin 64GB
    85.0
    """
    checks.positive(total_ops_per_s=total_ops_per_s)
    checks.non_negative(others_ops_per_s=others_ops_per_s)
    if others_ops_per_s >= total_ops_per_s:
        raise ValueError(
            f"others_ops_per_s={others_ops_per_s:g} must be less than total_ops_per_s={total_ops_per_s:g}, which counts"
            " them too"
        )
    return (total_ops_per_s - others_ops_per_s) / SPARSE_FACTOR


def share_of_peak(*, frames_per_s: float, ops_per_frame: float, peak_ops_per_s: float) -> float:
    """How much of a peak rate a measured frame rate is.

    Formula:  frames per second * operations per frame / peak
    Assumes:  a multiply-add is two operations, in the frame and in the peak
    Source:   by definition
    Counted:  drills.driving_silicon.totals.SHARE

    >>> round(share_of_peak(frames_per_s=285, ops_per_frame=143.8e9, peak_ops_per_s=52.5e12), 2)
    0.78
    """
    checks.positive(frames_per_s=frames_per_s, ops_per_frame=ops_per_frame, peak_ops_per_s=peak_ops_per_s)
    return frames_per_s * ops_per_frame / peak_ops_per_s


def energy_per_frame_j(*, power_w: float, frames_per_s: float) -> float:
    """Joules that one frame costs while the part runs at that power.

    Formula:  power / frames per second
    Source:   by definition
    Counted:  drills.driving_silicon.totals.ENERGY

    >>> energy_per_frame_j(power_w=30, frames_per_s=250)
    0.12
    """
    checks.positive(power_w=power_w, frames_per_s=frames_per_s)
    return power_w / frames_per_s


def dense_in_words(part: Part) -> str:
    """The line of a comparison that can be trusted: dense rates by format with how they are known, memory and power;
    a question mark where nobody prints it.

    >>> from threeloops.facts import hardware
    >>> dense_in_words(hardware.part("hailo-8"))
    'core: int8 26 reported; ? GB/s; ? W'
    """
    engine, modes = next(iter(part.engines.items()))
    peaks = next(iter(modes.values())).peaks
    rates = ", ".join(
        f"{dtype} {peaks[dtype].value / TFLOP:g} {peaks[dtype].kind}"
        for dtype in ("int8", "fp8", "fp4")
        if dtype in peaks
    )
    bandwidth, power = (
        f"{part.facts[fact].value / scale:g}" if fact in part.facts else "?"
        for fact, scale in (("memory_bytes_per_s", GB), ("tdp_w", 1))
    )
    return f"{engine}: {rates}; {bandwidth} GB/s; {power} W"
