"""Drills on the time of a launch: the last wave, and what a clock around copies and kernel has measured."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.gpu_kernels.launches import SOURCE_OCCUPANCY
from threeloops.inner_loop import occupancy, scaling
from threeloops.simulate.inner_loop import block_scheduler
from threeloops.units import GB, ms, us

TAUGHT = Taught("inner", "The programming model")

# --- time of a grid in waves ---------------------------------------------------------------------


def _draw_waves(rng: random.Random) -> Draw:
    sms, resident = rng.choice((108, 132, 148)), rng.choice((3, 5))
    return drawn(
        sms=sms,
        resident=resident,
        blocks=round(sms * resident * rng.choice((2.2, 3.3, 4.4, 5.4))),
        block_us=rng.randrange(31, 91, 4),
    )


def _small_waves(rng: random.Random) -> Draw:
    sms, resident = rng.choice((4, 5)), rng.choice((2, 3))
    return drawn(
        sms=sms, resident=resident, blocks=round(sms * resident * rng.choice((2.3, 3.4))), block_us=rng.choice((35, 55))
    )


def _waves_s(p: Draw, waves: float) -> float:
    return float(waves * p.block_us * us)


def _derive_waves(p: Draw) -> Derivation:
    count = occupancy.waves(grid_blocks=p.blocks, num_sms=p.sms, blocks_per_sm=p.resident).count
    return Derivation(
        value=_waves_s(p, count),
        formula="ceil(blocks / (SMs × resident blocks)) × time of a block",
        substitution=f"ceil({p.blocks} / ({p.sms} × {p.resident})) × {p.block_us}e-6",
        source=SOURCE_OCCUPANCY,
    )


def _count_waves(p: Draw) -> float:
    placed = block_scheduler.play(num_sms=p.sms, blocks_per_sm=p.resident, durations_s=[p.block_us * us] * p.blocks)
    return max(block.end_s for block in placed)


WAVES = Drill(
    key="gpu-waves",
    taught=TAUGHT,
    title="The last wave",
    unit="s",
    target_s=75,
    draw=_draw_waves,
    small=_small_waves,
    prompt=lambda p: (
        f"A grid of {p.blocks:,} equal blocks runs on a card with {p.sms} SMs, each of which holds {p.resident} blocks"
        f" of this kernel at a time. A block takes {p.block_us} µs, whatever runs beside it. How long does the grid"
        " take?"
    ),
    derive=_derive_waves,
    count=_count_waves,
    slips=(
        Slip("poured", lambda p: _waves_s(p, p.blocks / (p.sms * p.resident)))
        | "You poured the blocks like water. The last wave takes as long as a full one.",
        Slip("full-waves", lambda p: _waves_s(p, p.blocks // (p.sms * p.resident)))
        | "You counted the full waves. Who runs what is left over?",
        Slip("one-resident", lambda p: _waves_s(p, -(-p.blocks // p.sms)))
        | "You put one block on each SM. Several are resident at a time.",
        Slip("one-sm", lambda p: _waves_s(p, -(-p.blocks // p.resident))) | "You used a single SM. The card has many.",
        Slip("one-wave", lambda p: _waves_s(p, 1)) | "You ran all blocks at once. There is no room for so many.",
    ),
    function=AsFunction(
        takes=("sms", "resident", "blocks", "block_us"),
        limit=lambda p: {"blocks": 3 * p.sms * p.resident},
        limit_case="a grid that fills its last wave exactly",
    ),
)

# --- a clock around copies and kernel ------------------------------------------------------------


def _copy_s(p: Draw, matrices: float = 3, bytes_per_element: int = 4) -> float:
    return float(matrices * p.size**2 * bytes_per_element / (p.bus * GB))


def _clock_s(p: Draw) -> float:
    """What the clock shows, with four digits: the copies, and a kernel that takes a drawn share of their time."""
    return float(f"{(1 + p.share) * _copy_s(p):.3e}")


def _count_clock(p: Draw) -> float:
    left_s = _clock_s(p)
    for _ in ("first operand in", "second operand in", "result out"):
        for _ in range(p.size):  # row by row
            left_s -= p.size * 4 / (p.bus * GB)
    return left_s


CLOCK = Drill(
    key="gpu-clock-around-copies",
    taught=TAUGHT,
    title="What the clock measured",
    unit="s",
    target_s=120,
    draw=lambda rng: drawn(
        size=rng.randrange(3000, 5600, 200), bus=rng.choice((6, 8)), share=rng.choice((0.45, 0.5, 0.8))
    ),
    small=lambda rng: drawn(size=rng.choice((300, 400)), bus=rng.choice((6, 8)), share=rng.choice((0.5, 0.8))),
    prompt=lambda p: (
        f"An engineer times a matmul of two fp32 matrices of {p.size:,} by {p.size:,} on a GPU, from before the"
        f" operands are copied to the card until the result is back: {_clock_s(p) / ms:.4g} ms. The copies run one"
        f" after another at {p.bus} GB/s, and nothing overlaps. How long did the kernel take?"
    ),
    derive=lambda p: Derivation(
        value=scaling.changed_calls_s(whole_s=_clock_s(p), num_calls=3, before_s=_copy_s(p, 1), after_s=0.0),
        formula="time on the clock − 3 matrices × N² × 4 bytes / bus bandwidth",
        substitution=f"{round(_clock_s(p) / us)}e-6 − 3 × {p.size}² × 4 / {p.bus}e9",
        source=(
            "CUDA C++ Best Practices Guide 12.9, 2025, chapter 9 (timing) and 10.1 (transfers between host and device)"
        ),
    ),
    count=_count_clock,
    slips=(
        Slip("everything", _clock_s) | "You took the whole time for the kernel. The clock also saw copies.",
        Slip("only-in", lambda p: _clock_s(p) - _copy_s(p, 2))
        | "You left the result on the card. It was copied back within the time.",
        Slip("one-operand", lambda p: _clock_s(p) - _copy_s(p, 1))
        | "You copied one matrix. A matmul reads two and writes one.",
        Slip("copies", _copy_s) | "That is the time of the copies. The question was about the rest.",
    ),
)

DRILLS = (WAVES, CLOCK)
