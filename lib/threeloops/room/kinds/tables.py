"""Tables to fill: a product, a cache, a training run, an all-reduce, a car."""

import random
from dataclasses import replace

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Derivation, Draw, Slip, changed, drawn
from threeloops.drills.engine.phrasing import to_the_byte
from threeloops.drills.engine.searches import wanted
from threeloops.drills.kv_cache.contexts import real_shape
from threeloops.drills.roofline.intensity import SOURCE_GEMM, SOURCE_PART
from threeloops.driving import latency_budget
from threeloops.models.parameters import model_parameters
from threeloops.operations import kernels, roofline
from threeloops.room.kinds.chains.change import value_of
from threeloops.room.kinds.table import Cell, Table, Word, idea
from threeloops.units import billion, fmt_bytes, fmt_percent, fmt_si, hour, kB, ms

YES_NO = ("yes", "no")


def _same(p: Draw) -> Draw:
    return p


# --- a product ----------------------------------------------------------------------------------


def _product(p: Draw) -> roofline.Work:
    return kernels.gemm(m=p.m, n=p.n, k=p.k, bytes_per_element=p.bytes_per_element)


# Two quantities that the drill on the intensity goes through on its way, asked by themselves.
PRODUCT_FLOPS = replace(
    DRILLS["roofline-gemm-intensity"],
    key="table-product-flops",
    unit="FLOP",
    derive=lambda p: Derivation(
        value=_product(p).flops,
        formula="2 × m × k × n",
        substitution=f"2 × {p.m:,} × {p.k:,} × {p.n:,}",
        source=SOURCE_GEMM,
    ),
    slips=(
        Slip("multiply-adds", lambda p: p.m * p.k * p.n) | "A multiply-add is two operations.",
        Slip("one-token", lambda p: 2 * p.k * p.n) | "That is for one token. All of them are multiplied.",
    ),
)
PRODUCT_BYTES = replace(
    DRILLS["roofline-gemm-intensity"],
    key="table-product-bytes",
    unit="B",
    derive=lambda p: Derivation(
        value=_product(p).moved_bytes,
        formula="(m × k + k × n + m × n) × bytes per element",
        substitution=f"({p.m:,} × {p.k:,} + {p.k:,} × {p.n:,} + {p.m:,} × {p.n:,}) × {p.bytes_per_element}",
        source=SOURCE_GEMM,
    ),
    slips=(
        Slip("elements", lambda p: p.m * p.k + p.k * p.n + p.m * p.n) | "Those are elements; each is two bytes.",
        Slip("weights-only", lambda p: p.k * p.n * p.bytes_per_element)
        | "Those are the weights. What goes in and what comes out moves too.",
    ),
)


# With few tokens the result is too small a part of the traffic for its absence to be seen.
INTENSITY = DRILLS["roofline-gemm-intensity"]
INTENSITY = replace(INTENSITY, slips=tuple(slip for slip in INTENSITY.slips if slip.key != "output-forgotten"))


def _draw_product(rng: random.Random) -> Draw:
    """Memory-bound as the drill draws it, or with more tokens compute-bound, but not where twice the bytes would take
    just as long.
    """

    def draw() -> Draw:
        p = DRILLS["roofline-time-bound"].draw(rng)
        p.m = rng.choice((p.m, 8 * p.m + 8))
        return p

    return wanted(draw, lambda p: not 0.9 < 2 * p.peak / p.memory / _product(p).arithmetic_intensity <= 1.1)


def _bound(p: Draw) -> str:
    work = _product(p)
    return "compute" if work.flops / p.peak > work.moved_bytes / p.memory else "memory"


PRODUCT = Table(
    key="table-product",
    title="A matmul, from all sides",
    topic="roofline",
    loop="inner",
    section="Roofline",
    target_s=180,
    draw=_draw_product,
    prompt=lambda p: (
        f"{p.m:,} tokens, {p.k:,} wide, are multiplied by a matrix of {p.k:,} × {p.n:,}. All is in BF16, each matrix is"
        f" moved once, and arithmetic overlaps perfectly with memory traffic. The machine is an {p.part}:"
        f" {fmt_si(p.peak, 'FLOP/s')} dense, {fmt_si(p.memory, 'B/s')}."
    ),
    cells=(
        Cell(name="FLOPs", drill=PRODUCT_FLOPS, numbers=_same),
        Cell(name="Bytes moved", drill=PRODUCT_BYTES, numbers=_same),
        Cell(name="Arithmetic intensity", drill=INTENSITY, numbers=_same),
        Cell(name="Least time", drill=DRILLS["roofline-time-bound"], numbers=_same),
        Word(
            name="Bound by",
            words=("memory", "compute"),
            right=_bound,
            because="Compare the arithmetic intensity with peak / bandwidth.",
        ),
    ),
    source=SOURCE_PART,
    prerequisites=("roofline-gemm-intensity", "roofline-time-bound"),
)

# --- a cache -------------------------------------------------------------------------------------

CACHES = (("llama-3-8b", "h100-sxm5"), ("llama-3-8b", "l40s"), ("qwen2.5-7b", "l40s"), ("mixtral-8x7b", "h200-sxm"))


def _draw_cache(rng: random.Random) -> Draw:
    model, card = rng.choice(CACHES)
    p = drawn(
        **real_shape(model),
        weights_bytes=2 * model_parameters(catalogued.model(model)).total,
        bytes_per_element=2,
        card=catalogued.part(card).name,
        memory_bytes=catalogued.part(card)["usable_bytes"],
        share=0.9,
        tokens=rng.randrange(3000, 7000, 200),
        generated=0,
    )
    fit = int(value_of("kv-largest-batch", p))
    p.requests = rng.choice((fit - fit // 3, fit + fit // 3 + 2))
    p.prompt = p.tokens
    return p


def _per_token(p: Draw) -> Draw:
    """One token of one request."""
    return changed(p, prompt=1, generated=0, requests=1)


CACHE_TOKEN = replace(
    DRILLS["kv-whole-requests"],
    slips=tuple(
        s for s in DRILLS["kv-whole-requests"].slips if s.key in ("keys-or-values", "query-heads", "one-layer")
    ),
)
CACHE_BATCH = replace(
    DRILLS["kv-whole-requests"],
    slips=tuple(s for s in DRILLS["kv-whole-requests"].slips if s.key not in ("prompt-only", "generated-only")),
)

CACHE = Table(
    key="table-cache",
    title="A cache, from token to batch",
    topic="kv_cache",
    loop="product",
    section="KV cache",
    target_s=180,
    draw=_draw_cache,
    prompt=lambda p: (
        f"{p.name} has {p.layers} layers, {p.query_heads} query heads and {p.kv_heads} KV heads, {p.head_dim} wide."
        f" Weights take {to_the_byte(p.weights_bytes)}; weights and cache are in 16 bits. On an {p.card} the"
        f" driver reports {to_the_byte(p.memory_bytes)}, of which the engine may use {fmt_percent(p.share)}."
        f" {p.requests} requests of {p.tokens:,} tokens each want to run at once."
    ),
    cells=(
        Cell(name="Cache of one token", drill=CACHE_TOKEN, numbers=_per_token),
        Cell(name="Cache of all requests", drill=CACHE_BATCH, numbers=_same),
        Cell(name="Whole requests that fit", drill=DRILLS["kv-largest-batch"], numbers=_same),
        Word(
            name="Do all fit",
            words=YES_NO,
            right=lambda p: YES_NO[p.requests > value_of("kv-largest-batch", p)],
            because="Compare the requests that want to run with those that fit.",
        ),
    ),
    source="Kwon et al., 2023, arXiv:2309.06180, section 3; Ainslie et al., 2023, arXiv:2305.13245",
    prerequisites=("kv-whole-requests", "kv-largest-batch"),
)

# --- a training run ------------------------------------------------------------------------------


def _draw_states(rng: random.Random) -> Draw:
    part = catalogued.part(rng.choice(("a100-sxm4-80gb", "h100-sxm5")))
    parameters, dp = rng.choice(
        ((2, 12), (3, 12), (7, 10), (9, 12), (14, 10), (20, 12), (23, 24), (30, 24), (52, 20), (45, 12), (40, 10))
    )
    p = drawn(
        name=f"A model of {parameters} billion parameters",
        parameters=parameters * billion,
        dp=dp,
        card=part.name,
        memory_bytes=part["usable_bytes"],
    )
    return p


def _stages(p: Draw) -> dict[str, float]:
    return {
        "none": value_of("memory-model-states", changed(p, dp=1)),
        "2": value_of("memory-zero-2", p),
        "3": 16 * p.parameters / p.dp,
    }


def _first_stage(p: Draw) -> str:
    """The least sharding that leaves a third of the card for everything else."""
    fits = [stage for stage, needed in _stages(p).items() if needed <= p.memory_bytes * 2 / 3]
    return fits[0] if fits else "not at all"


STATES = Table(
    key="table-model-states",
    title="Model states, stage by stage",
    topic="training_memory",
    loop="training",
    section="Training memory",
    target_s=150,
    draw=_draw_states,
    prompt=lambda p: (
        f"{p.name} trains on {p.dp} GPUs of the type {p.card} ({fmt_bytes(p.memory_bytes, base=10)}) with fp16 weights"
        " and gradients and fp32 Adam with a master copy. Model states may take two thirds of a GPU's memory."
    ),
    cells=(
        Cell(
            name="Model states per GPU, unsharded",
            drill=DRILLS["memory-model-states"],
            numbers=lambda p: changed(p, dp=1),
        ),
        Cell(name="Per GPU under ZeRO stage 2", drill=DRILLS["memory-zero-2"], numbers=_same),
        Word(
            name="Least stage that fits",
            words=("none", "2", "3", "not at all"),
            right=_first_stage,
            because=(
                "At stage 3 all 16 bytes per parameter are divided. Compare each stage with two thirds of the memory."
            ),
        ),
    ),
    source="Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 5",
    prerequisites=("memory-model-states", "memory-zero-2"),
)

# --- an all-reduce -------------------------------------------------------------------------------


def _draw_ring(rng: random.Random) -> Draw:
    p = DRILLS["ring-time"].draw(rng)
    p.backward_ms = round(value_of("ring-time", p) / ms * rng.choice((0.6, 0.75, 1.4, 1.8)))
    return p


RING = Table(
    key="table-all-reduce",
    title="An all-reduce, from all sides",
    topic="all_reduce",
    loop="training",
    section="Data parallelism and all-reduce",
    target_s=150,
    draw=_draw_ring,
    prompt=lambda p: (
        f"{p.ranks} GPUs add up {fmt_bytes(p.size, base=10)} of gradients each by a ring all-reduce, every GPU over"
        f" {p.link} at {fmt_si(p.rate, 'B/s')} one way; latency is negligible. The backward pass takes {p.backward_ms}"
        " ms, and at best all of it can be used for sending."
    ),
    cells=(
        Cell(name="Sent by all GPUs together", drill=DRILLS["ring-bytes-on-the-wire"], numbers=_same),
        Cell(name="Time of the all-reduce", drill=DRILLS["ring-time"], numbers=_same),
        Word(
            name="Can it hide behind the backward pass",
            words=YES_NO,
            right=lambda p: YES_NO[value_of("ring-time", p) > p.backward_ms * ms],
            because="Compare the two times.",
        ),
    ),
    source="Patarasuk and Yuan, JPDC 69(2), 2009, doi:10.1016/j.jpdc.2008.09.002",
    prerequisites=("ring-time", "ring-bytes-on-the-wire"),
)

# --- a car ---------------------------------------------------------------------------------------


def _draw_car(rng: random.Random) -> Draw:
    p = drawn(
        rate=rng.choice((10, 12, 15, 20)),
        latency_ms=rng.randrange(100, 220, 10),
        actuators_ms=rng.choice((300, 350, 400)),
        braking=rng.choice((4.5, 5.0, 5.5)),
    )
    p.sight_m = rng.choice((60, 80, 100, 120))
    possible = _fastest_kmh(p)
    p.kmh = 5 * round(possible * rng.choice((0.7, 0.8, 1.25, 1.35)) / 5)
    return p


def _reaction_ms(p: Draw) -> float:
    return float(value_of("latency-oldest-picture", p) / ms + p.actuators_ms)


def _fastest_kmh(p: Draw) -> float:
    metres = latency_budget.highest_speed_m_per_s(
        sight_m=p.sight_m, reaction_s=_reaction_ms(p) * ms, deceleration_m_per_s2=p.braking
    )
    return float(metres * hour / kB)


def _stop(p: Draw) -> Draw:
    return drawn(kmh=p.kmh, braking=p.braking, reaction_ms=_reaction_ms(p))


CAR = Table(
    key="table-stopping",
    title="From picture to standstill",
    topic="latency_budget",
    loop="driving",
    section="A car that must answer in time",
    target_s=180,
    draw=_draw_car,
    prompt=lambda p: (
        f"A car drives at {p.kmh} km/h. Its camera takes {p.rate} pictures per second; a command follows {p.latency_ms}"
        f" ms after its picture, and the brakes bite {p.actuators_ms} ms after the command. Then the car slows by"
        f" {p.braking} m/s². An obstacle appears {p.sight_m} m ahead, just after a picture."
    ),
    cells=(
        Cell(
            name="From the obstacle's appearance to the command", drill=DRILLS["latency-oldest-picture"], numbers=_same
        ),
        Cell(name="Distance until it stands", drill=DRILLS["latency-stopping-distance"], numbers=_stop),
        Word(
            name="Does it stop in time",
            words=YES_NO,
            right=lambda p: YES_NO[value_of("latency-stopping-distance", _stop(p)) > p.sight_m],
            because="Compare the distance until it stands with the distance to the obstacle.",
        ),
    ),
    source=(
        "AASHTO, A Policy on Geometric Design of Highways and Streets, 7th ed., 2018, section 3.2.2; Kopetz, Real-Time"
        " Systems, 2nd ed., 2011, chapter 5"
    ),
    prerequisites=("latency-oldest-picture", "latency-stopping-distance"),
)

TABLES = (PRODUCT, CACHE, STATES, RING, CAR)
IDEAS = tuple(map(idea, TABLES))
