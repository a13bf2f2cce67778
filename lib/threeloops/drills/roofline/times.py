"""Drills on the time that the roofline leaves: a kernel on the slope, the longer of two clocks, kernels in a row."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import giga, tera
from threeloops.drills.roofline.intensity import SOURCE_PART, SOURCE_ROOFLINE, counted_product, dense, roofs
from threeloops.operations import kernels, roofline
from threeloops.operations.roofline import Work
from threeloops.units import fmt_bytes, fmt_si

TAUGHT = Taught("inner", "Roofline")

SOURCE_SERIAL = f"{SOURCE_ROOFLINE}, kernel by kernel"

# --- a kernel on the slope -----------------------------------------------------------------------

SLOPE_PARTS = ("h100-sxm5", "h200-sxm", "a100-sxm4-80gb", "b200-hgx", "l40s", "mi300x", "rtx-4090")


def _draw_norm(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(SLOPE_PARTS))
    rates = {"peak": part.peak_flops_per_s("fp32"), "memory": part["memory_bytes_per_s"]}
    return drawn(part=part.name, **rates, flops=rng.choice((5, 6, 7, 9, 10, 11, 13, 14)), reads=3, bytes_per_element=4)


def _derive_norm(p: Draw) -> Derivation:
    norm = kernels.elementwise(
        elements=1, flops_per_element=p.flops, inputs=p.reads, bytes_per_element=p.bytes_per_element
    )
    return Derivation(
        value=roofline.attainable_flops_per_s(
            arithmetic_intensity=norm.arithmetic_intensity, peak_flops_per_s=p.peak, memory_bytes_per_s=p.memory
        ),
        formula="the lower of two roofs: the peak, and FLOPs per element / bytes per element × bandwidth",
        substitution=f"min({tera(p.peak)}, {p.flops} / (({p.reads} + 1) × {p.bytes_per_element}) × {tera(p.memory)})",
        source=SOURCE_PART,
    )


def _count_norm(p: Draw) -> float:
    """Walk a row pass by pass, with one clock for memory and one for arithmetic; the slower one decides the rate."""
    width, memory_s, arithmetic_s = 12, 0.0, 0.0
    for _pass in ("mean", "variance", "normalise", "write"):
        for _ in range(width):
            memory_s += p.bytes_per_element / p.memory
    for _ in range(width * p.flops):
        arithmetic_s += 1 / p.peak
    return float(width * p.flops / max(memory_s, arithmetic_s))


NORM = Drill(
    key="roofline-norm-rate",
    taught=TAUGHT,
    title="As fast as it will ever be",
    unit="FLOP/s",
    target_s=90,
    draw=_draw_norm,
    small=lambda rng: drawn(
        part="drawn",
        peak=rng.choice((60, 90)),
        memory=rng.choice((2, 3)),
        flops=rng.choice((6, 7, 9)),
        reads=3,
        bytes_per_element=4,
    ),
    prompt=lambda p: (
        f"A LayerNorm in plain operations reads its {8 * p.bytes_per_element}-bit input three times, for the mean, for"
        f" the variance and to normalise, and writes its output once. It does {p.flops} FLOPs per element. The {p.part}"
        f" calculates {fmt_si(p.peak, 'FLOP/s')} on its CUDA cores and moves {fmt_si(p.memory, 'B/s')}; the tensor is"
        " far too large for any cache. At what rate can this kernel calculate at best?"
    ),
    derive=_derive_norm,
    count=_count_norm,
    prerequisites=("roofline-ridge-point",),
    slips=(
        Slip("peak", lambda p: p.peak)
        | "That is the flat part of the roof. Work out whether this kernel's intensity reaches it.",
        Slip("one-read", lambda p: p.flops / (2 * p.bytes_per_element) * p.memory)
        | "You read the input once. This kernel comes back for it: fusing those passes is what would give you"
        " that rate.",
        Slip("write-forgotten", lambda p: p.flops / (p.reads * p.bytes_per_element) * p.memory)
        | "You counted what is read. Writing uses the same bus.",
        Slip("elements", lambda p: p.flops / (p.reads + 1) * p.memory)
        | "You moved one byte per element. Look at how wide an element is here.",
        Slip("bandwidth", lambda p: p.memory)
        | "That is the bandwidth as it stands. It would be the rate if every byte brought exactly one FLOP's"
        " work.",
    ),
)

# --- the longer of two times ---------------------------------------------------------------------

TIME_PARTS = ("h100-sxm5", "h200-sxm", "a100-sxm4-80gb", "b200-hgx", "mi300x")


def _draw_time(rng: random.Random) -> Draw:
    machine, share = drawn(**dense(rng.choice(TIME_PARTS))), rng.choice((0.35, 0.4, 0.45, 0.5))
    k, n = rng.choice(((2048, 768), (768, 2048), (2048, 1408), (1536, 1024)))
    return drawn(**vars(machine), m=4 * int(share * machine.peak / machine.memory / 4), k=k, n=n, bytes_per_element=2)


def _derive_time(p: Draw) -> Derivation:
    product = kernels.gemm(m=p.m, n=p.n, k=p.k, bytes_per_element=p.bytes_per_element)
    moved = f"({p.m} × {p.k} + {p.k} × {p.n} + {p.m} × {p.n}) × {p.bytes_per_element}"
    return Derivation(
        value=roofline.time(product, peak_flops_per_s=p.peak, memory_bytes_per_s=p.memory).lower_bound_s,
        formula="the longer of two times: 2 × m × k × n / peak, and bytes of inputs, weights and outputs / bandwidth",
        substitution=f"max(2 × {p.m} × {p.k} × {p.n} / {tera(p.peak)}, {moved} / {tera(p.memory)})",
        source=SOURCE_PART,
    )


def _count_time(p: Draw) -> float:
    """Two clocks beside each other, one byte and one FLOP at a time; the work is done when both have stopped."""
    flops, moved_bytes = counted_product(m=p.m, k=p.k, n=p.n)
    memory_s = sum(1 / p.memory for _ in range(moved_bytes))
    arithmetic_s = sum(1 / p.peak for _ in range(flops))
    return float(max(memory_s, arithmetic_s))


def _memory_s(p: Draw, elements: float) -> float:
    """The time if that many elements were moved, arithmetic beside it."""
    return float(max(2 * p.m * p.k * p.n / p.peak, elements * p.bytes_per_element / p.memory))


TIME = Drill(
    key="roofline-time-bound",
    taught=TAUGHT,
    title="Two clocks beside each other",
    unit="s",
    target_s=120,
    draw=_draw_time,
    small=lambda rng: drawn(
        part="drawn",
        peak=rng.choice((400, 600)),
        memory=rng.choice((20, 30)),
        m=rng.choice((3, 5)),
        k=8,
        n=rng.choice((6, 7)),
        bytes_per_element=2,
    ),
    prompt=lambda p: (
        f"A router sends {p.m} tokens, {p.k:,} wide, to one expert, whose first matrix is {p.k:,} × {p.n:,}. Inputs,"
        " weights and outputs are in BF16, each moved once, and arithmetic overlaps perfectly with memory traffic. The"
        f" machine is an {p.part}: {roofs(p)}. How long does the matmul take at least?"
    ),
    derive=_derive_time,
    count=_count_time,
    prerequisites=("roofline-gemm-intensity", "roofline-ridge-point"),
    slips=(
        Slip(
            "added",
            lambda p: (
                2 * p.m * p.k * p.n / p.peak + (p.m * p.k + p.k * p.n + p.m * p.n) * p.bytes_per_element / p.memory
            ),
        )
        | "You added the two times. They run beside each other.",
        Slip("arithmetic-only", lambda p: 2 * p.m * p.k * p.n / p.peak)
        | "You divided the FLOPs by the peak. At this intensity the peak is out of reach.",
        Slip("weights-only", lambda p: _memory_s(p, p.k * p.n))
        | "You moved the weights alone. For a matrix this small, the tokens in and out weigh something too.",
        Slip("weights-per-token", lambda p: _memory_s(p, p.m * (p.k + p.k * p.n + p.n)))
        | "You fetched the weights anew for every token. Sharing them is why tokens are put together.",
        Slip("thirty-two-bit", lambda p: _memory_s(p, 2 * (p.m * p.k + p.k * p.n + p.m * p.n)))
        | "You moved four bytes per element. How wide is BF16?",
    ),
    function=AsFunction(
        takes=("m", "k", "n", "bytes_per_element", "peak", "memory"),
        limit={"m": 16_000, "k": 8_000, "n": 8_000},
        limit_case="a matmul so large that arithmetic takes longer than memory",
    ),
)

# --- kernels in a row ----------------------------------------------------------------------------


def _draw_serial(rng: random.Random) -> Draw:
    """Times of one kernel's memory traffic and of the other's two parts, relative to the first one's arithmetic."""
    machine, seconds = (
        drawn(**dense(rng.choice(("h100-sxm5", "h200-sxm", "a100-sxm4-80gb", "b200-hgx", "mi300x")))),
        rng.choice((4e-4, 6e-4, 9e-4)),
    )
    memory_1, arithmetic_2, memory_2 = rng.choice(
        ((0.5, 0.2, 0.9), (0.5, 0.15, 0.8), (0.4, 0.15, 0.95), (0.6, 0.2, 0.9))
    )
    flops = [float(f"{share * seconds * machine.peak:.2e}") for share in (1, arithmetic_2)]
    moved = [float(f"{share * seconds * machine.memory:.2e}") for share in (memory_1, memory_2)]
    return drawn(**vars(machine), flops_1=flops[0], bytes_1=moved[0], flops_2=flops[1], bytes_2=moved[1])


def _small_serial(rng: random.Random) -> Draw:
    peak, memory = rng.choice((6, 9)), rng.choice((2, 4))
    shares = dict(
        zip(
            ("flops_1", "bytes_1", "flops_2", "bytes_2"),
            (20 * peak, 10 * memory, 4 * peak, rng.choice((16, 18)) * memory),
            strict=True,
        )
    )
    return drawn(part="drawn", peak=peak, memory=memory, **shares)


def _derive_serial(p: Draw) -> Derivation:
    works = (Work(flops=p.flops_1, moved_bytes=p.bytes_1), Work(flops=p.flops_2, moved_bytes=p.bytes_2))
    times = [roofline.time(work, peak_flops_per_s=p.peak, memory_bytes_per_s=p.memory) for work in works]
    printed = [
        f"max({giga(work.flops)} / {tera(p.peak)}, {giga(work.moved_bytes)} / {tera(p.memory)})" for work in works
    ]
    return Derivation(
        value=roofline.serial_time(times).lower_bound_s,
        formula="for each kernel the longer of FLOPs / peak and bytes / bandwidth; then the sum over the kernels",
        substitution=" + ".join(printed),
        source=SOURCE_SERIAL,
    )


def _count_serial(p: Draw) -> float:
    """Second by second: whoever still has work in this kernel does a second's worth; the next kernel starts when both
    have finished.
    """
    seconds = 0
    for flops, moved_bytes in ((p.flops_1, p.bytes_1), (p.flops_2, p.bytes_2)):
        while flops > 0 or moved_bytes > 0:
            flops, moved_bytes, seconds = flops - p.peak, moved_bytes - p.memory, seconds + 1
    return float(seconds)


def _times(p: Draw) -> tuple[float, float, float, float]:
    """Arithmetic and memory time of the first kernel, then of the second."""
    return p.flops_1 / p.peak, p.bytes_1 / p.memory, p.flops_2 / p.peak, p.bytes_2 / p.memory


SERIAL = Drill(
    key="roofline-kernels-in-a-row",
    taught=TAUGHT,
    title="Two kernels in a row",
    unit="s",
    target_s=120,
    draw=_draw_serial,
    small=_small_serial,
    prompt=lambda p: (
        f"A layer's step runs two kernels. Its projections need {fmt_si(p.flops_1, 'FLOP')} and move"
        f" {fmt_bytes(p.bytes_1, base=10)}; its attention needs {fmt_si(p.flops_2, 'FLOP')} and moves"
        f" {fmt_bytes(p.bytes_2, base=10)}. Attention cannot start before the projections are done; within each kernel,"
        f" arithmetic and memory traffic overlap perfectly. The machine is an {p.part}: {roofs(p)}. How long does the"
        " step take at least?"
    ),
    derive=_derive_serial,
    count=_count_serial,
    prerequisites=("roofline-time-bound",),
    slips=(
        Slip(
            "pooled",
            lambda p: max(p.flops_1 / p.peak + p.flops_2 / p.peak, p.bytes_1 / p.memory + p.bytes_2 / p.memory),
        )
        | "You pooled both kernels' FLOPs and both kernels' bytes. One kernel's arithmetic cannot hide the"
        " traffic of another that waits for it.",
        Slip("arithmetic-only", lambda p: p.flops_1 / p.peak + p.flops_2 / p.peak)
        | "You divided all FLOPs by the peak. One of the two kernels cannot reach it.",
        Slip("all-added", lambda p: sum(_times(p)))
        | "You added everything. Inside a kernel, arithmetic and traffic run beside each other.",
        Slip("longest-kernel", lambda p: max(_times(p)))
        | "You took the longest of the four times. The kernels run one after the other, not side by side.",
        Slip(
            "shorter-of-two",
            lambda p: min(p.flops_1 / p.peak, p.bytes_1 / p.memory) + min(p.flops_2 / p.peak, p.bytes_2 / p.memory),
        )
        | "You took the shorter time of each kernel. It is done when its slower half is done.",
    ),
)

DRILLS = (NORM, TIME, SERIAL)
