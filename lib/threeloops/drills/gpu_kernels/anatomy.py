"""Drills on what a GPU is made of: peaks from parts, near memories against the far one, and the same kernel on the
next card.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.inner_loop import peak_rates
from threeloops.operations import roofline
from threeloops.units import GB, TFLOP, GHz, MHz

TAUGHT = Taught("inner", "The GPU")

SOURCE_PARTS = "NVIDIA Ampere Architecture In-Depth, 2020 (units per SM, multiply-adds per unit and clock)"
SOURCE_BANKS = "CUDA C++ Best Practices Guide 12.9, 2025, 10.2.3.1 (32 banks, 32 bits per cycle each)"
SOURCE_ROOFLINE = "Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785"

# --- peak of the tensor cores from parts ---------------------------------------------------------


def _peak(p: Draw, factor: float = 1) -> float:
    return factor * peak_rates.matrix_flops_per_s(
        sms=p.sms, units_per_sm=p.units, fmas_per_cycle=p.fmas, clock_hz=p.clock_mhz * MHz
    )


def _count_peak(p: Draw) -> float:
    flops = 0
    for _cycle in range(round(p.clock_mhz * MHz)):  # one second of a very slow chip
        for _sm in range(p.sms):
            for _unit in range(p.units):
                for _fma in range(p.fmas):
                    flops += 1  # the multiplication
                    flops += 1  # the addition
    return float(flops)


PEAK = Drill(
    key="gpu-peak-from-parts",
    taught=TAUGHT,
    title="A peak from its parts",
    unit="FLOP/s",
    target_s=60,
    draw=lambda rng: drawn(
        sms=rng.randrange(60, 180, 6),
        units=rng.choice((4, 8)),
        fmas=rng.choice((128, 256, 512)),
        clock_mhz=rng.randrange(1230, 1980, 30),
    ),
    small=lambda rng: drawn(
        sms=rng.choice((3, 5)),
        units=rng.choice((3, 4)),
        fmas=rng.choice((6, 8)),
        clock_mhz=rng.choice((0.00001, 0.00002)),
    ),
    prompt=lambda p: (
        f"A chip has {p.sms} SMs with {p.units} tensor cores each. A tensor core does {p.fmas} multiply-adds of 16-bit"
        f" numbers per cycle, and the clock runs at {p.clock_mhz:,} MHz. What is the chip's dense 16-bit peak?"
    ),
    derive=lambda p: Derivation(
        value=_peak(p),
        formula="SMs × tensor cores per SM × multiply-adds per cycle × 2 FLOPs × clock",
        substitution=f"{p.sms} × {p.units} × {p.fmas} × 2 × {p.clock_mhz}e6",
        source=SOURCE_PARTS,
    ),
    count=_count_peak,
    slips=(
        Slip("fma-is-one", lambda p: _peak(p, 1 / 2))
        | "You counted a multiply-add as one operation. Peaks count the multiplication and the addition.",
        Slip("sparse", lambda p: _peak(p, 2))
        | "You doubled once more, which is the figure with sparsity. The question asked for the dense one.",
        Slip("one-unit", lambda p: _peak(p, 1 / p.units)) | "You gave each SM a single tensor core. It has several.",
        Slip("one-sm", lambda p: _peak(p, 1 / p.sms)) | "That is the peak of one SM. The chip has many.",
        Slip("warp", lambda p: _peak(p, 32))
        | "You multiplied by the 32 lanes of a warp. A tensor core works for the warp as a whole.",
    ),
)

# --- shared memory against device memory ---------------------------------------------------------


def _banks(p: Draw, factor: float = 1) -> float:
    return float(factor * peak_rates.shared_bytes_per_s(sms=p.sms, clock_hz=p.clock_mhz * MHz) / (p.gb * GB))


def _count_banks(p: Draw) -> float:
    per_cycle = 0
    for _sm in range(p.sms):
        for _bank in range(32):
            for _bit in range(32):
                per_cycle += 1
    # to deliver what the banks deliver in one second
    seconds_of_device_memory = per_cycle / 8 * p.clock_mhz * MHz / (p.gb * GB)
    return float(seconds_of_device_memory)


BANKS = Drill(
    key="gpu-shared-over-device",
    taught=TAUGHT,
    title="The desks and the warehouse",
    unit="",
    target_s=75,
    draw=lambda rng: drawn(
        sms=rng.randrange(60, 180, 6),
        clock_mhz=rng.randrange(1230, 1980, 30),
        gb=rng.choice((700, 900, 1300, 1700, 2300)),
    ),
    small=lambda rng: drawn(sms=rng.choice((3, 5)), clock_mhz=rng.choice((7, 9)), gb=rng.choice((0.5, 0.25))),
    prompt=lambda p: (
        f"A card has {p.sms} SMs at {p.clock_mhz:,} MHz. Each SM's shared memory has 32 banks, and a bank delivers 32"
        f" bits per cycle. The card's device memory delivers {p.gb:,g} GB/s. How many times that do all shared memories"
        " together deliver?"
    ),
    derive=lambda p: Derivation(
        value=_banks(p),
        formula="SMs × 32 banks × 4 bytes × clock / bandwidth of the device memory",
        substitution=f"{p.sms} × 32 × 4 × {p.clock_mhz}e6 / {p.gb}e9",
        source=SOURCE_BANKS,
    ),
    count=_count_banks,
    slips=(
        Slip("bits", lambda p: _banks(p, 8)) | "You took bits for bytes.",
        Slip("one-sm", lambda p: _banks(p, 1 / p.sms))
        | "That is one shared memory. Every SM has its own, and they work at the same time.",
        Slip("one-bank", lambda p: _banks(p, 1 / 32))
        | "You let one bank answer at a time. All 32 do, if no two lanes want the same one.",
        Slip("one-byte", lambda p: _banks(p, 1 / 4)) | "You let a bank deliver one byte. It delivers 32 bits.",
        Slip("both-ways", lambda p: _banks(p, 2))
        | "You counted reading and writing at once. A bank does one of them in a cycle.",
    ),
)

# --- one kernel, two cards -----------------------------------------------------------------------


def _draw_flip(rng: random.Random) -> Draw:
    """Compute-bound on the old card, memory-bound on the new one."""
    old_tflops, old_gb = rng.randrange(90, 330, 20), rng.choice((1000, 1300, 1700))
    faster, wider = rng.choice((2.8, 3.1, 3.4)), rng.choice((1.2, 1.3))
    old_ridge = old_tflops * TFLOP / (old_gb * GB)
    intensity = round(old_ridge * rng.choice((1.24, 1.36, 1.48)))
    return drawn(
        old_tflops=old_tflops,
        old_gb=old_gb,
        new_tflops=round(old_tflops * faster),
        new_gb=round(old_gb * wider),
        intensity=intensity,
    )


def _reached(p: Draw, tflops: float, gb: float) -> float:
    return float(min(tflops * TFLOP, p.intensity * gb * GB))


def _derive_flip(p: Draw) -> Derivation:
    old, new = (
        roofline.time(
            roofline.Work(flops=p.intensity * TFLOP, moved_bytes=TFLOP),
            peak_flops_per_s=peak * TFLOP,
            memory_bytes_per_s=gb * GB,
        ).lower_bound_s
        for peak, gb in ((p.old_tflops, p.old_gb), (p.new_tflops, p.new_gb))
    )
    return Derivation(
        value=old / new,
        formula="min(new peak, intensity × new bandwidth) / min(old peak, intensity × old bandwidth)",
        substitution=(
            f"min({p.new_tflops}e12, {p.intensity} × {p.new_gb}e9) / min({p.old_tflops}e12, {p.intensity} ×"
            f" {p.old_gb}e9)"
        ),
        source=SOURCE_ROOFLINE,
    )


def _count_flip(p: Draw) -> float:
    """The same work on both cards, nanosecond by nanosecond: each ends when its operations and its bytes are both
    done.
    """

    def nanoseconds(tflops: int, gb: int) -> int:
        flops_left, bytes_left, passed = p.intensity * work_bytes, work_bytes, 0
        while flops_left > 0 or bytes_left > 0:
            flops_left -= tflops * TFLOP // GHz  # in a nanosecond
            bytes_left -= gb * GB // GHz
            passed += 1
        return passed

    work_bytes = 42_000  # a whole number of nanoseconds on every small card
    return nanoseconds(p.old_tflops, p.old_gb) / nanoseconds(p.new_tflops, p.new_gb)


FLIP = Drill(
    key="gpu-flip-across-cards",
    taught=TAUGHT,
    title="The same kernel on the next card",
    unit="",
    target_s=120,
    draw=_draw_flip,
    small=lambda rng: drawn(
        old_tflops=rng.choice((6, 7)),
        old_gb=2000,
        new_tflops=rng.choice((20, 22)),
        new_gb=3000,
        intensity=rng.choice((4, 5)),
    ),
    prompt=lambda p: (
        f"A kernel does {p.intensity} FLOP/B and runs as fast as the roofline allows. It moves from a card with"
        f" {p.old_tflops} TFLOP/s and {p.old_gb:,} GB/s to one with {p.new_tflops} TFLOP/s and {p.new_gb:,} GB/s. How"
        " many times faster does it get?"
    ),
    derive=_derive_flip,
    count=_count_flip,
    slips=(
        Slip("peaks", lambda p: p.new_tflops / p.old_tflops)
        | "You compared the peaks. Does the new card's memory keep up with its own?",
        Slip("bandwidths", lambda p: p.new_gb / p.old_gb)
        | "You compared the bandwidths. Was it waiting for memory on the old card?",
        Slip("ridge", lambda p: p.new_tflops / p.old_tflops * p.old_gb / p.new_gb)
        | "You divided one ratio by the other: that is how the ridge point moved, not how much faster the"
        " kernel is.",
        Slip("upside-down", lambda p: _reached(p, p.old_tflops, p.old_gb) / _reached(p, p.new_tflops, p.new_gb))
        | "You divided the other way round: the new card is the faster one.",
    ),
)


DRILLS = (PEAK, BANKS, FLIP)
