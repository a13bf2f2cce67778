"""Drills on quantised models: the scales' share, what a model weighs, how many GPUs that takes, and what it wins in
decoding.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import giga
from threeloops.product_loop import compression
from threeloops.product_loop.compression import Groups
from threeloops.simulate.product_loop import narrow_weights
from threeloops.units import GB, billion

TAUGHT = Taught("product", "Compression")
GPTQ = "Frantar et al., GPTQ, 2023, arXiv:2210.17323, section 5 (groups, and a scale and zero point for each)"
SCALE_BITS = 16
TB = 1e12


def _groups(p: Draw, **changes: int) -> Groups:
    return Groups(
        **({"element_bits": p.bits, "group": p.group, "scale_bits": SCALE_BITS, "zero_bits": p.bits} | changes)
    )


def _packed_bits(p: Draw, weights: int) -> int:
    """Bits of so many weights, really packed in groups with a scale and a zero point each."""
    values = [0.25 * (place % 7) - 0.6 for place in range(weights)]
    return len(narrow_weights.packed_groups(values, bits=p.bits, group=p.group, symmetric=False))


# --- bits per weight ----------------------------------------------------------------------------


def _draw_bits(rng: random.Random) -> Draw:
    """Groups so small, in so few bits, that nothing about the scales may be forgotten."""
    return drawn(bits=rng.choice((2, 3, 4)), group=rng.choice((16, 24, 32)), wide=rng.randrange(16, 28))


def _average(p: Draw, bits: float) -> float:
    return float(bits * (1 - p.wide / 100) + 16 * p.wide / 100)


def _count_bits(p: Draw) -> float:
    """A hundred groups, of which so many stay wide."""
    bits = 0
    for group in range(100):
        bits += p.group * 16 if group < p.wide else _packed_bits(p, p.group)
    return float(bits / (100 * p.group))


BITS = Drill(
    key="compression-bits-per-weight",
    taught=TAUGHT,
    title="The four bits that are not four",
    unit="",
    target_s=90,
    draw=_draw_bits,
    small=lambda rng: drawn(bits=rng.choice((2, 3, 4)), group=16, wide=rng.choice((10, 20))),
    prompt=lambda p: (
        f"Weights are rounded to {p.bits} bits in groups of {p.group}; every group stores a scale of {SCALE_BITS} bits"
        f" and a zero point of {p.bits} bits. Embeddings, head and norms, {p.wide} % of all parameters, stay in BF16."
        " How many bits does a parameter of the model take on average?"
    ),
    derive=lambda p: Derivation(
        value=_average(p, _groups(p).bits_per_weight),
        formula="(bits + (scale bits + zero-point bits) / group) × narrow share + 16 × wide share",
        substitution=f"({p.bits} + ({SCALE_BITS} + {p.bits}) / {p.group}) × (1 − {p.wide} / 100) + 16 × {p.wide} / 100",
        source=GPTQ,
    ),
    count=_count_bits,
    slips=(
        Slip("no-scales", lambda p: _average(p, p.bits))
        | "You stored neither scales nor zero points. Without them a kernel cannot read the weights.",
        Slip("all-narrow", lambda p: _groups(p).bits_per_weight)
        | "You rounded everything. A part of the model stays wide.",
        Slip("scale-per-weight", lambda p: _average(p, p.bits + SCALE_BITS + p.bits))
        | "You gave every weight a scale of its own. A group shares one.",
        Slip("shares-swapped", lambda p: _groups(p).bits_per_weight * p.wide / 100 + 16 * (1 - p.wide / 100))
        | "You swapped the shares. Most of the model is narrow.",
    ),
)

# --- what it weighs ------------------------------------------------------------------------------


def _model(
    p: Draw, *, narrow: float | None = None, wide: float | None = None, wide_bits: int = 16, **changes: int
) -> float:
    return compression.mixed_bytes(
        quantised_weights=round((p.narrow if narrow is None else narrow) * p.unit),
        wide_weights=round((p.wide if wide is None else wide) * p.unit),
        groups=_groups(p, **changes),
        wide_bits=wide_bits,
    )


MODEL = Drill(
    key="compression-model-bytes",
    taught=TAUGHT,
    title="What the download says",
    unit="B",
    target_s=100,
    draw=lambda rng: drawn(
        narrow=rng.randrange(26, 57, 2), wide=rng.choice((6, 7, 8, 9)), bits=4, group=rng.choice((24, 32)), unit=billion
    ),
    small=lambda rng: drawn(
        narrow=rng.choice((192, 288)), wide=rng.choice((40, 50)), bits=4, group=rng.choice((24, 32)), unit=1
    ),
    prompt=lambda p: (
        f"A model has {p.narrow}{_billion(p)} weights in its layers and {p.wide}{_billion(p)} in embeddings and head."
        f" The layers are rounded to {p.bits} bits in groups of {p.group}, each with a scale of {SCALE_BITS} bits and a"
        f" zero point of {p.bits}; the rest stays in 16 bits. How large is the file?"
    ),
    derive=lambda p: Derivation(
        value=_model(p),
        formula="narrow weights × (bits + (scale bits + zero-point bits) / group) / 8 + wide weights × 2",
        substitution=(
            f"{p.narrow} × {p.unit} × ({p.bits} + ({SCALE_BITS} + {p.bits}) / {p.group}) / 8 + {p.wide} × {p.unit} × 2"
        ),
        source=GPTQ,
    ),
    count=lambda p: (_packed_bits(p, p.narrow) + sum(16 for _weight in range(p.wide))) / 8,
    prerequisites=("compression-bits-per-weight",),
    slips=(
        Slip("no-scales", lambda p: p.narrow * p.unit * p.bits / 8 + 2 * p.wide * p.unit)
        | "You stored neither scales nor zero points. Without them a kernel cannot read the weights.",
        Slip("head-narrow", lambda p: _model(p, narrow=p.narrow + p.wide, wide=0))
        | "You rounded embeddings and head, too. They stay wide.",
        Slip("no-head", lambda p: _model(p, wide=0)) | "You left out embeddings and head.",
        Slip("bits-as-bytes", lambda p: 8 * _model(p)) | "Those are bits.",
        Slip("not-rounded", lambda p: 2.0 * (p.narrow + p.wide) * p.unit)
        | "That is the model before it was quantised.",
    ),
)


def _billion(p: Draw) -> str:
    return " billion" if p.unit == billion else ""


# --- how many GPUs ------------------------------------------------------------------------------


def _gpus(p: Draw, *, bits: float | None = None, kept: int | None = None) -> float:
    """GPUs, rounded up, for weights of so many bits beside what is kept for caches."""
    each = _groups(p).bits_per_weight if bits is None else bits
    room = (p.memory - (p.kept if kept is None else kept)) * p.unit
    return float(-(-p.billions * p.unit * each / 8 // room))


def _count_gpus(p: Draw) -> float:
    """Pack the weights; fill one GPU after the other byte by byte, up to what is kept free."""
    left, gpus = -(-_packed_bits(p, p.billions) // 8), 0
    while left > 0:
        gpus += 1
        left -= p.memory - p.kept
    return float(gpus)


GPUS = Drill(
    key="compression-fewest-gpus",
    taught=TAUGHT,
    title="How many cards it still takes",
    unit="",
    whole="up",
    target_s=110,
    draw=lambda rng: drawn(
        billions=rng.randrange(610, 1210, 10),
        bits=4,
        group=rng.choice((16, 24)),
        memory=24,
        kept=rng.choice((11, 12, 13)),
        unit=billion,
    ),
    small=lambda rng: drawn(
        billions=rng.randrange(912, 1300, 48),
        bits=4,
        group=rng.choice((16, 24)),
        memory=rng.choice((30, 40)),
        kept=rng.choice((11, 13)),
        unit=1,
    ),
    prompt=lambda p: (
        f"A model of {p.billions} billion parameters is rounded to {p.bits} bits in groups of {p.group}, each with a"
        f" scale of {SCALE_BITS} bits and a zero point of {p.bits}. It shall run on a room full of older cards of"
        f" {p.memory} GB, {p.kept} GB of each being kept for KV caches and the rest. How many cards does it take at"
        " least?"
    ),
    derive=lambda p: Derivation(
        value=_gpus(p),
        formula="⌈parameters × bits per weight / 8 / (memory − what is kept)⌉",
        substitution=(
            f"ceil({p.billions} × ({p.bits} + ({SCALE_BITS} + {p.bits}) / {p.group}) / 8 / ({p.memory} − {p.kept}) −"
            " 0.000000001)"
        ),
        source=GPTQ,
    ),
    count=_count_gpus,
    prerequisites=("compression-bits-per-weight",),
    slips=(
        Slip("no-scales", lambda p: _gpus(p, bits=p.bits))
        | "You stored neither scales nor zero points. They take room as well.",
        Slip("weights-only", lambda p: _gpus(p, kept=0))
        | "You filled the cards with weights. A part of each is kept for caches.",
        Slip("not-rounded", lambda p: _gpus(p, bits=16)) | "You loaded the model in 16 bits.",
        Slip("one-byte", lambda p: _gpus(p, bits=8)) | "You gave a weight one byte. It has fewer bits.",
    ),
)

# --- what decoding wins --------------------------------------------------------------------------


def _draw_faster(rng: random.Random) -> Draw:
    billions, bandwidth = rng.choice(((7.2, 2.0), (8.0, 3.35), (14.8, 3.35), (32.5, 4.8)))
    cache = round(2 * billions * rng.randrange(18, 40) / 10) / 10  # GB: 18 to 39 % of the weights
    return drawn(billions=billions, bandwidth=bandwidth * TB, cache=cache * GB, bits=4, group=rng.choice((16, 32)))


def _step_s(p: Draw, bits: float, *, cache: bool = True) -> float:
    return float((p.billions * billion * bits / 8 + (p.cache if cache else 0)) / p.bandwidth)


def _derive_faster(p: Draw) -> Derivation:
    weights = p.billions * billion
    return Derivation(
        value=compression.step_speedup(
            weights_bytes=2 * weights,
            narrow_bytes=weights * _groups(p).bits_per_weight / 8,
            cache_bytes=p.cache,
            tokens=8,
            flops_per_token=2 * weights,
            memory_bytes_per_s=p.bandwidth,
            peak_flops_per_s=200 * p.bandwidth,
        ),
        formula="(16-bit weights + caches) / (narrow weights with scales + caches)",
        substitution=(
            f"({giga(weights)} × 2 + {p.cache:.0f}) / ({giga(weights)} × ({p.bits} + ({SCALE_BITS} + {p.bits}) /"
            f" {p.group}) / 8 + {p.cache:.0f})"
        ),
        source=f"{GPTQ}: generation is faster because less is moved",
    )


def _count_faster(p: Draw) -> float:
    """Read both files and the caches byte by byte."""
    parameters = round(p.billions * billion)
    wide = sum(2 for _parameter in range(parameters)) + p.cache
    return float(wide / (_packed_bits(p, parameters) / 8 + p.cache))


FASTER = Drill(
    key="compression-decode-speedup",
    taught=TAUGHT,
    title="What four bits win in decoding",
    unit="",
    target_s=120,
    draw=_draw_faster,
    small=lambda rng: drawn(
        billions=rng.choice((320e-9, 640e-9)),
        bandwidth=100.0,
        cache=rng.choice((200, 240)),
        bits=4,
        group=rng.choice((16, 32)),
    ),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters decodes for 8 requests whose KV caches take"
        f" {p.cache / GB:g} GB together; memory, at {p.bandwidth / TB:g} TB/s, sets the pace. Its 16-bit weights are"
        f" replaced by {p.bits} bits in groups of {p.group}, each with a scale of {SCALE_BITS} bits and a zero point of"
        f" {p.bits}; the caches stay as they are, and widening the weights on the chip costs nothing. How many times"
        " faster does a step become?"
    ),
    derive=_derive_faster,
    count=_count_faster,
    prerequisites=("serving-decode-step", "compression-bits-per-weight"),
    slips=(
        Slip(
            "weights-only", lambda p: _step_s(p, 16, cache=False) / _step_s(p, _groups(p).bits_per_weight, cache=False)
        )
        | "You compared the weights alone. The caches are read in every step, and are as large as before.",
        Slip("no-scales", lambda p: _step_s(p, 16) / _step_s(p, p.bits))
        | "You read neither scales nor zero points. They come from memory with the weights.",
        Slip("sixteen-over-four", lambda p: 16 / p.bits) | "You divided bits by bits. What else is read in a step?",
        Slip("prefill", lambda p: 1.0) | "That holds where arithmetic sets the pace. Here memory does.",
    ),
)

DRILLS = (BITS, MODEL, GPUS, FASTER)
