"""A drill on a served point and the floor below it."""

from itertools import product

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions, tera
from threeloops.drills.measured.rows import took
from threeloops.drills.measured.served import numbers_of, points_where, server
from threeloops.facts.served_points import ServedPoint
from threeloops.models.architecture import Attention
from threeloops.models.parameters import model_parameters
from threeloops.product_loop import decode_floor
from threeloops.product_loop.kv_cache import kv_bytes_per_token
from threeloops.units import fmt_si

SOURCE_FLOOR = "Pope et al., 2022, arXiv:2211.05102, sections 2 and 3"

# --- above its floor -------------------------------------------------------------------------------

DENSE = ("llama-3-8b", "qwen3-32b", "llama-3-70b")
WIDTHS = {"bf16": 2, "fp8": 1}
FREE = 0.85  # of the memory, for weights and caches: beyond it some requests may have waited for a seat


def is_dense(point: ServedPoint) -> bool:
    if point.model not in DENSE or point.format not in WIDTHS or point.tp == 1 or point.requests == 1:
        return False
    p, capacity = drawn(**config_of(point)), catalogued.part(point.part).capacity_bytes()
    return bool(p.parameters * p.width + caches_bytes(p) * 1.5 < FREE * point.tp * capacity)


def config_of(point: ServedPoint) -> dict[str, object]:
    """A point with its model's own numbers."""
    model = catalogued.model(point.model)
    attention = model.groups[0][0].attention
    assert isinstance(attention, Attention)  # of a dense model
    return numbers_of(point) | {
        "parameters": float(f"{model_parameters(model).total:.3g}"),
        "width": WIDTHS[point.format],
        "cache_width": WIDTHS[point.cache],
        "layers": model.num_layers,
        "heads": attention.num_heads,
        "kv_heads": attention.num_kv_heads,
        "head_dim": attention.head_dim,
        "memory": catalogued.part(point.part)["memory_bytes_per_s"],
    }


def caches_bytes(p: Draw, *, heads: int = 0) -> float:
    """Caches of all requests, halfway through their answers."""
    one = kv_bytes_per_token(
        num_layers=p.layers,
        num_kv_heads=heads or p.kv_heads,
        head_dim=p.head_dim,
        bytes_per_element=p.cache_width,
    )
    return float(p.requests * (p.prompt + p.answer / 2) * one)


def _over_floor(p: Draw, *, cached: float | None = None, tp: int = 0, readings: int = 1) -> float:
    floor_s = decode_floor.tensor_parallel_step_s(
        weights_bytes=readings * p.parameters * p.width,
        cache_bytes=caches_bytes(p) if cached is None else cached,
        tp=tp or p.tp,
        memory_bytes_per_s=p.memory,
        all_reduces=0,
        all_reduce_s=0,
    )
    return float(p.tpot_s / floor_s)


def _derive_floor(p: Draw) -> Derivation:
    one = f"2 × {p.layers} × {p.kv_heads} × {p.head_dim} × {p.cache_width}"
    return Derivation(
        value=_over_floor(p),
        formula="TPOT × GPUs × bandwidth / (weights + requests × (prompt + answer / 2) × cache of a token)",
        substitution=(
            f"{p.tpot_s!r} × {p.tp} × {tera(p.memory)} / ({p.parameters!r} × {p.width} + {p.requests} ×"
            f" ({p.prompt} + {p.answer} / 2) × {one})"
        ),
        source=f"{SOURCE_FLOOR}; {p.row}",
    )


def _count_floor(p: Draw) -> float:
    """Byte by byte, out of the memories of all GPUs at once."""
    read = sum(p.width for _ in range(p.parameters))
    for _, _, _, _ in product(range(p.requests), range(p.prompt + p.answer // 2), range(p.layers), range(p.kv_heads)):
        read += sum(p.cache_width for _ in ("key", "value") for _ in range(p.head_dim))
    seconds = read / (sum(p.memory for _ in range(p.tp)))
    return float(p.tpot_s / seconds)


FLOOR = Drill(
    key="measured-over-the-floor",
    taught=Taught("product", "Prefill and decode"),
    title="How far above its floor a server is",
    unit="",
    target_s=200,
    draw=lambda rng: drawn(**config_of(rng.choice(points_where(is_dense)))),
    small=lambda rng: drawn(
        parameters=rng.randrange(2000, 4000),
        width=rng.choice((1, 2)),
        cache_width=rng.choice((1, 2)),
        layers=rng.randrange(2, 5),
        heads=12,
        kv_heads=rng.choice((2, 3, 4)),
        head_dim=rng.choice((3, 4)),
        tp=rng.choice((2, 3)),
        requests=rng.randrange(3, 7),
        prompt=rng.randrange(5, 12),
        answer=2 * rng.randrange(3, 7),
        tpot_s=rng.randrange(20, 60),
        memory=rng.randrange(100, 200),
        row="drawn in 2026",
    ),
    prompt=lambda p: (
        f"{server(p)}. TPOT is {took(p.tpot_s)}. The model has {billions(p.parameters)} parameters, kept in"
        f" {8 * p.width} bits; {p.layers} layers with {p.heads} query heads and {p.kv_heads} KV heads, {p.head_dim}"
        f" wide; keys and values have {8 * p.cache_width} bits. Each GPU has {fmt_si(p.memory, 'B/s')} and holds its"
        " share of weights and caches. The floor of a step reads all weights once and the caches of all requests,"
        " each halfway through its answer. How many times the floor is this TPOT?"
    ),
    derive=_derive_floor,
    count=_count_floor,
    slips=(
        Slip("no-caches", lambda p: _over_floor(p, cached=0))
        | "You read the weights alone. Every request's cache is read in every step as well.",
        Slip("one-gpu", lambda p: _over_floor(p, tp=1))
        | "You read everything through one GPU's memory. All of them read at once.",
        Slip("query-heads", lambda p: _over_floor(p, cached=caches_bytes(p, heads=p.heads)))
        | "You kept keys and values for every query head. Only KV heads are cached.",
        Slip("weights-per-request", lambda p: _over_floor(p, readings=p.requests))
        | "You read the weights for each request. A step reads them once for all.",
        Slip("upside-down", lambda p: 1 / _over_floor(p)) | "That is the floor's share of the TPOT. Turn it over.",
    ),
)

DRILLS = (FLOOR,)
