"""Drills on totals: dense rates out of a brochure, a power mode, units times clock, memory bandwidth, and the share
that was reached.
"""

import functools
import itertools
import random
from fractions import Fraction

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.driving import datasheet_tops
from threeloops.facts import hardware
from threeloops.inner_loop import peak_rates
from threeloops.units import BITS_PER_BYTE, GFLOP, TFLOP, MHz

TAUGHT = Taught("driving", "Silicon in the car")
SPARSITY = "NVIDIA Jetson AGX Orin data sheet, DS-10662-001, 2024 (sparsity doubles throughput)"
PRUNED = (True, True, False, False)  # of four weights, the two that 2:4 sparsity keeps
OPS = "Count every operation as a FLOP."

# --- dense rate of the GPU -----------------------------------------------------------------------


def _draw_dense(rng: random.Random) -> Draw:
    total = rng.randrange(180, 320)
    return drawn(total=total, dla=round(total * rng.uniform(0.36, 0.43)))


def _count_dense(p: Draw) -> float:
    """Go through the GPU's products in groups of four and count those whose weight is not zero."""
    products = range(p.total - p.dla)
    return sum(1 for place in products if PRUNED[place % 4]) * TFLOP


DENSE = Drill(
    key="soc-dense-gpu",
    taught=TAUGHT,
    title="What the GPU does with dense weights",
    unit="FLOP/s",
    target_s=60,
    draw=_draw_dense,
    small=lambda rng: drawn(total=4 * rng.randrange(45, 80), dla=4 * rng.randrange(16, 30)),
    prompt=lambda p: (
        f"A brochure says {p.total} INT8 TOPS for a chip: GPU and DLAs together, with 2:4 sparse weights. The DLAs have"
        f" {p.dla} of them. Your network has dense weights and runs on the GPU alone. What is the GPU's peak for it?"
        f" {OPS}"
    ),
    derive=lambda p: Derivation(
        value=datasheet_tops.dense_engine_ops_per_s(total_ops_per_s=p.total * TFLOP, others_ops_per_s=p.dla * TFLOP),
        formula="(total − DLAs) / 2: sparsity counts products with pruned zeros",
        substitution=f"({p.total} − {p.dla}) / 2 × 1e12",
        source=SPARSITY,
    ),
    count=_count_dense,
    slips=(
        Slip("sparse", lambda p: (p.total - p.dla) * TFLOP) | "That is with sparse weights. Yours are dense.",
        Slip("with-dla", lambda p: p.total / 2 * TFLOP)
        | "The DLAs are still in it. Your network runs on the GPU alone.",
        Slip("brochure", lambda p: p.total * TFLOP) | "That is the brochure's number, all of it.",
        Slip("dla-whole", lambda p: (p.total / 2 - p.dla) * TFLOP)
        | "You halved the total and then took off the DLAs' sparse figure. Halve both or neither.",
        Slip("the-dlas", lambda p: p.dla / 2 * TFLOP) | "That is what the DLAs do. Asked is the GPU.",
    ),
    function=AsFunction(takes=("total", "dla"), limit={"dla": 0}, limit_case="a chip without DLAs"),
)

# --- power mode ----------------------------------------------------------------------------------


@functools.cache
def _modes() -> dict[str, tuple[int, int]]:
    """Sparse INT8 TOPS of GPU and DLAs, by power mode."""
    orin = hardware.part("jetson-agx-orin-64gb")
    return {
        mode: (
            round(orin.sparse_peak_flops_per_s("int8", engine="gpu", power_mode=mode) / TFLOP),
            round(orin.sparse_peak_flops_per_s("int8", engine="dla", power_mode=mode) / TFLOP),
        )
        for mode in orin.engines["gpu"]
    }


def _draw_mode(rng: random.Random) -> Draw:
    mode = rng.choice(("50w", "30w", "15w"))
    gpu, dla = _modes()[mode]
    return drawn(mode=mode, gpu=gpu, dla=dla, most=_modes()["maxn"][0], gops=rng.randrange(60, 400))


def _count_mode(p: Draw) -> float:
    """Let the GPU work off the frame's operations: of each second's sparse products half are zeros and do nothing."""
    done = Fraction(0)
    for keeps in PRUNED:
        done += Fraction(p.gpu, len(PRUNED)) if keeps else 0
    return float(Fraction(p.gops) / done) * GFLOP / TFLOP


MODE = Drill(
    key="soc-power-mode",
    taught=TAUGHT,
    title="The same chip with less power",
    unit="s",
    target_s=90,
    draw=_draw_mode,
    small=_draw_mode,
    prompt=lambda p: (
        f"NVIDIA lists for Jetson AGX Orin 64GB in its {p.mode[:-1]} W mode {p.gpu} INT8 TOPS on the GPU and {p.dla} on"
        f" the two DLAs, both with sparse weights; in the full-power mode the GPU has {p.most}. A network of {p.gops}"
        f" billion operations per frame, dense INT8, runs on the GPU in the {p.mode[:-1]} W mode. What is the least"
        " time of a frame, if only the arithmetic counts?"
    ),
    derive=lambda p: Derivation(
        value=p.gops * GFLOP / datasheet_tops.dense_engine_ops_per_s(total_ops_per_s=p.gpu * TFLOP, others_ops_per_s=0),
        formula="operations / (sparse rate of the GPU in that mode / 2)",
        substitution=f"{p.gops} × 1e9 / ({p.gpu} / 2 × 1e12)",
        source="NVIDIA, Deep-Learning-Accelerator-SW, README (read 2026)",
    ),
    count=_count_mode,
    prerequisites=("soc-dense-gpu",),
    slips=(
        Slip("sparse", lambda p: p.gops * GFLOP / (p.gpu * TFLOP))
        | "You took the rate for sparse weights. Yours are dense.",
        Slip("with-dla", lambda p: p.gops * GFLOP / ((p.gpu + p.dla) / 2 * TFLOP))
        | "You let the DLAs help. The network runs on the GPU.",
        Slip("full-power", lambda p: p.gops * GFLOP / (p.most / 2 * TFLOP))
        | "That is the full-power mode. In this mode the GPU is slower.",
        Slip("brochure", lambda p: p.gops * GFLOP / ((p.gpu + p.dla) * TFLOP))
        | "You took the whole total of that mode, DLAs and sparsity included.",
    ),
)

# --- units times clock ---------------------------------------------------------------------------


def _count_units(p: Draw) -> float:
    """Tick through a microsecond and count every multiplication and every addition of every unit."""
    counted = 0
    for _tick, _sm, _unit in itertools.product(range(p.mhz), range(p.sms), range(p.units)):
        counted += sum(1 for _fma in range(p.fmas) for _half in ("multiply", "add"))
    return counted * MHz


UNITS = Drill(
    key="soc-peak-from-units",
    taught=TAUGHT,
    title="A peak from its units",
    unit="FLOP/s",
    target_s=75,
    draw=lambda rng: drawn(
        sms=rng.choice((7, 9, 11, 14, 18, 22)),
        units=rng.choice((3, 4, 5)),
        fmas=rng.choice((256, 512)),
        mhz=rng.randrange(900, 1700, 5),
    ),
    small=lambda rng: drawn(
        sms=rng.choice((3, 5)), units=rng.choice((3, 4)), fmas=rng.choice((6, 7)), mhz=rng.randrange(3, 9)
    ),
    prompt=lambda p: (
        f"A chip's GPU has {p.sms} SMs with {p.units} tensor cores each. A tensor core does {p.fmas} INT8 multiply-adds"
        f" per cycle with dense weights, and the clock is {p.mhz} MHz. What is the dense INT8 peak? {OPS}"
    ),
    derive=lambda p: Derivation(
        value=peak_rates.matrix_flops_per_s(
            sms=p.sms, units_per_sm=p.units, fmas_per_cycle=p.fmas, clock_hz=p.mhz * MHz
        ),
        formula="SMs × tensor cores per SM × multiply-adds per cycle × 2 × clock",
        substitution=f"{p.sms} × {p.units} × {p.fmas} × 2 × {p.mhz} × 1e6",
        source="NVIDIA Ampere Architecture In-Depth, 2020",
    ),
    count=_count_units,
    slips=(
        Slip("fma-is-one", lambda p: p.sms * p.units * p.fmas * p.mhz * MHz) | "A multiply-add is two operations.",
        Slip("sparse", lambda p: p.sms * p.units * p.fmas * 4 * p.mhz * MHz)
        | "You doubled for sparse weights, too. Asked is the dense peak.",
        Slip("one-per-sm", lambda p: p.sms * p.fmas * 2 * p.mhz * MHz) | "You counted one tensor core in an SM.",
        Slip("one-sm", lambda p: p.units * p.fmas * 2 * p.mhz * MHz) | "That is a single SM.",
    ),
)

# --- memory bandwidth ----------------------------------------------------------------------------


def _draw_bus(rng: random.Random) -> Draw:
    return drawn(bits=rng.choice((96, 128, 192, 256, 384)), mhz=rng.randrange(2100, 4400, 7))


def _count_bus(p: Draw) -> float:
    """Tick through a microsecond; a pin carries a bit when the clock rises and another when it falls."""
    per_pin = sum(1 for _tick in range(p.mhz) for _edge in ("rising", "falling"))
    return sum(per_pin for _pin in range(p.bits)) / BITS_PER_BYTE * MHz


BUS = Drill(
    key="soc-memory-bandwidth",
    taught=TAUGHT,
    title="A bandwidth from its pins",
    unit="B/s",
    target_s=60,
    draw=_draw_bus,
    small=_draw_bus,
    prompt=lambda p: (
        f"A module's LPDDR5 memory is {p.bits} bits wide. The data sheet gives a memory clock of {p.mhz} MHz; data move"
        " on both edges of the clock. What is the memory bandwidth?"
    ),
    derive=lambda p: Derivation(
        value=peak_rates.bus_bytes_per_s(bus_bits=p.bits, bits_per_s_per_pin=2 * p.mhz * MHz),
        formula="width × clock × 2 / 8",
        substitution=f"{p.bits} × {p.mhz} × 1e6 × 2 / 8",
        source="NVIDIA Jetson AGX Orin data sheet, DS-10662-001, 2024 (256 bits, 3200 MHz, 204.8 GB/s)",
    ),
    count=_count_bus,
    slips=(
        Slip("one-edge", lambda p: p.bits * p.mhz * MHz / BITS_PER_BYTE)
        | "You moved data once per cycle. They move on both edges.",
        Slip("bits", lambda p: p.bits * p.mhz * MHz * 2) | "Those are bits per second. Asked are bytes.",
        Slip("four-times", lambda p: p.bits * p.mhz * MHz * 4 / BITS_PER_BYTE)
        | "You doubled twice. A clock has two edges.",
        Slip("one-channel", lambda p: 32 * p.mhz * MHz * 2 / BITS_PER_BYTE)
        | "That is one channel of 32 bits. The bus is wider.",
    ),
)

# --- share of the peak ---------------------------------------------------------------------------


def _draw_share(rng: random.Random) -> Draw:
    height, width = rng.choice(((512, 960), (544, 960), (704, 1280), (720, 1280), (768, 1280), (640, 1152)))
    return drawn(
        gmacs=rng.randrange(180, 420) / 100,
        height=height,
        width=width,
        per_dla=rng.randrange(40, 70),
        reached=rng.randrange(52, 88) / 100,
        side=224,
    )


def _frames(p: Draw) -> float:
    """The measured rate that the question gives, a round number."""
    ops: float = 2 * p.gmacs * GFLOP * p.height * p.width / p.side**2
    return float(f"{p.reached * p.per_dla * TFLOP / ops:.4g}")


def _count_share(p: Draw) -> float:
    """Add up a second: every frame, its pixels in tiles of the published size, its multiplications and additions; and
    what both DLAs could have done without zeros.
    """
    tiles = Fraction(p.height * p.width, p.side**2)
    done = Fraction(0)
    for _half in ("multiply", "add"):
        done += Fraction(str(_frames(p))) * tiles * Fraction(str(p.gmacs))
    could = sum(Fraction(p.per_dla, 4) for _dla in range(2) for keeps in PRUNED if keeps)
    return float(done * GFLOP / (could * TFLOP))


SHARE = Drill(
    key="soc-share-of-peak",
    taught=TAUGHT,
    title="How much of the peak was reached",
    unit="",
    target_s=140,
    draw=_draw_share,
    small=_draw_share,
    prompt=lambda p: (
        f"A convolutional backbone is published with {p.gmacs:g} billion multiply-adds at {p.side} × {p.side}. On"
        f" images of {p.width} × {p.height} two DLAs together reach {_frames(p):g} images/s with dense INT8 weights."
        f" The data sheet gives {p.per_dla} TOPS for each DLA, sparse. Which share of the dense peak of both is that?"
    ),
    derive=lambda p: Derivation(
        value=datasheet_tops.share_of_peak(
            frames_per_s=_frames(p),
            ops_per_frame=2 * p.gmacs * GFLOP * p.height * p.width / p.side**2,
            peak_ops_per_s=p.per_dla * TFLOP,
        ),
        formula="images/s × 2 × multiply-adds × (pixels / published pixels) / (2 DLAs × sparse rate / 2)",
        substitution=(
            f"{_frames(p)} × 2 × {p.gmacs} × 1e9 × ({p.height} × {p.width} / {p.side}²) / (2 × {p.per_dla} / 2 × 1e12)"
        ),
        source="NVIDIA, Deep-Learning-Accelerator-SW, README (read 2026)",
    ),
    count=_count_share,
    slips=(
        Slip("half", lambda p: _share(p) / 2)
        | "Half: either a multiply-add counts as two operations, or the peak is still the sparse one.",
        Slip("not-scaled", lambda p: _share(p) * p.side**2 / (p.height * p.width))
        | "You took the multiply-adds of the published size. They grow with the pixels.",
        Slip("by-the-side", lambda p: _share(p) * p.side / p.width)
        | "You scaled one side only. Pixels grow with both.",
        Slip("both-halves", lambda p: _share(p) / 4)
        | "Twice half: a multiply-add is two operations, and the peak was the sparse one.",
        Slip("one-dla", lambda p: 2 * _share(p)) | "You divided by one DLA. Two of them made these images.",
    ),
)


def _share(p: Draw) -> float:
    return SHARE.derive(p).value


# --- energy --------------------------------------------------------------------------------------


def _draw_energy(rng: random.Random) -> Draw:
    high, low = rng.choice(((60, 30), (60, 25), (45, 20), (50, 20), (40, 18)))
    fast = rng.randrange(180, 320)
    return drawn(high=high, low=low, fast=fast, slow=round(fast * rng.uniform(0.77, 0.9)))


def _count_energy(p: Draw) -> float:
    """Burn a kilojoule in each mode and compare how many frames come of it."""
    frames = [Fraction(1, watts) * rate for watts, rate in ((p.low, p.slow), (p.high, p.fast))]
    return float(frames[0] / frames[1])


ENERGY = Drill(
    key="soc-energy-of-a-frame",
    taught=TAUGHT,
    title="What a frame costs in joules",
    unit="",
    target_s=75,
    draw=_draw_energy,
    small=_draw_energy,
    prompt=lambda p: (
        f"In a mode of {p.high} W a module makes {p.fast} frames/s, in a mode of {p.low} W {p.slow}. Take the mode's"
        " power as what it draws. How many times the energy does a frame cost in the first mode, over the second?"
    ),
    derive=lambda p: Derivation(
        value=datasheet_tops.energy_per_frame_j(power_w=p.high, frames_per_s=p.fast)
        / datasheet_tops.energy_per_frame_j(power_w=p.low, frames_per_s=p.slow),
        formula="(power / frames/s) in the first mode / (power / frames/s) in the second",
        substitution=f"({p.high} / {p.fast}) / ({p.low} / {p.slow})",
        source="NVIDIA, Deep-Learning-Accelerator-SW, README (read 2026)",
    ),
    count=_count_energy,
    slips=(
        Slip("power-only", lambda p: p.high / p.low) | "That is the ratio of powers. The first mode is also faster.",
        Slip("times-the-rate", lambda p: (p.high * p.fast) / (p.low * p.slow))
        | "You multiplied by the rate. A faster frame takes less energy at the same power, not more.",
        Slip("inverted", lambda p: (p.low / p.slow) / (p.high / p.fast)) | "The other way round.",
        Slip("rate-only", lambda p: p.fast / p.slow) | "That is how much faster the first mode is. Where is the power?",
    ),
)

DRILLS = (DENSE, MODE, UNITS, BUS, SHARE, ENERGY)
