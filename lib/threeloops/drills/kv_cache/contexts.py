"""Drills on the KV cache: what a context costs in memory.

Numbers are asymmetric on purpose: 5 to 7 query heads per KV head, layers that are no power of two, an 8-bit cache
where half a cache would otherwise look the same. That is what lets a wrong answer say which mistake made it.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model
from threeloops.product_loop import kv_cache
from threeloops.simulate.product_loop import cache_walk

TAUGHT = Taught("product", "KV cache")

SOURCE_GQA = "Ainslie et al., 2023, arXiv:2305.13245 (grouped-query attention)"
SOURCE_PAGED_SECTION_3 = "Kwon et al., 2023, arXiv:2309.06180, section 3 (bytes per token times tokens)"


def bare_model(*groups: tuple[Attention | LatentAttention, int]) -> Model:
    """A model of which only the attention matters: (attention, number of such layers)."""
    mlp = DenseMlp(intermediate=1, gated=False, activation="gelu")
    layers = tuple(
        (Layer(attention=attention, mlp=mlp, norm="rmsnorm", num_norms=2), count) for attention, count in groups
    )
    return Model(name="drawn", hidden=1, vocab=1, groups=layers, tied_head=True, max_context=10_000_000)


def attention(p: Draw) -> Attention:
    """The attention of a draw that has one kind of it."""
    return Attention(num_heads=p.query_heads, num_kv_heads=p.kv_heads, head_dim=p.head_dim)


def per_token_bytes(p: Draw) -> float:
    """What one token of this draw's model leaves behind."""
    return kv_cache.kv_bytes_per_token(
        num_layers=p.layers, num_kv_heads=p.kv_heads, head_dim=p.head_dim, bytes_per_element=p.bytes_per_element
    )


def real_shape(key: str) -> dict[str, object]:
    """What the cache of a catalogued model with one kind of layer depends on, as the numbers of a draw."""
    ((layer, layers),) = catalogued.model(key).groups
    assert isinstance(layer.attention, Attention)
    heads = layer.attention
    return {
        "name": catalogued.model_name(key),
        "layers": layers,
        "query_heads": heads.num_heads,
        "kv_heads": heads.num_kv_heads,
        "head_dim": heads.head_dim,
    }


# --- bytes per token ----------------------------------------------------------------------------


def _draw_per_token(rng: random.Random) -> Draw:
    kv_heads, group = rng.choice((3, 4, 6)), rng.choice((5, 6, 7))
    return drawn(
        layers=rng.choice((22, 26, 28, 34, 36, 42, 46)),
        kv_heads=kv_heads,
        query_heads=kv_heads * group,
        head_dim=rng.choice((80, 96, 112)),
        bytes_per_element=1,
    )


PER_TOKEN = Drill(
    key="kv-bytes-per-token",
    taught=TAUGHT,
    title="What one token leaves behind",
    unit="B",
    capacity=True,
    target_s=60,
    draw=_draw_per_token,
    small=lambda rng: drawn(
        layers=rng.choice((2, 3)),
        kv_heads=2,
        query_heads=2 * rng.choice((5, 7)),
        head_dim=rng.choice((3, 5)),
        bytes_per_element=1,
    ),
    prompt=lambda p: (
        f"A model has {p.layers} layers. In each, attention has {p.query_heads} query heads and {p.kv_heads} KV heads,"
        f" {p.head_dim} wide. Its KV cache is stored in {8 * p.bytes_per_element} bits. How many bytes does one token"
        " of context add?"
    ),
    derive=lambda p: Derivation(
        value=per_token_bytes(p),
        formula="2 (key and value) × layers × KV heads × head dim × bytes per element",
        substitution=f"2 × {p.layers} × {p.kv_heads} × {p.head_dim} × {p.bytes_per_element}",
        source=SOURCE_GQA,
    ),
    count=lambda p: float(
        sum(cache_walk.readable_elements(attention(p), tokens=1) for _ in range(p.layers)) * p.bytes_per_element
    ),
    slips=(
        Slip("query-heads", lambda p: 2 * p.layers * p.query_heads * p.head_dim * p.bytes_per_element)
        | "You counted query heads. Only the KV heads are cached; sharing them among query heads is what"
        " grouped-query attention is for.",
        Slip("keys-or-values", lambda p: p.layers * p.kv_heads * p.head_dim * p.bytes_per_element)
        | "You cached keys or values. Every later token needs both.",
        Slip("one-layer", lambda p: 2 * p.kv_heads * p.head_dim * p.bytes_per_element)
        | "That is one layer. Every layer keeps keys and values of its own.",
        Slip("one-kv-head", lambda p: 2 * p.layers * p.head_dim * p.bytes_per_element)
        | "You counted a single KV head: that would be multi-query attention. This model keeps several.",
        Slip("sixteen-bit", lambda p: 2 * p.layers * p.kv_heads * p.head_dim * 2)
        | "You took 16 bits per element. Read again how this cache is stored.",
        Slip("hidden-size", lambda p: p.layers * p.query_heads * p.head_dim * p.bytes_per_element)
        | "You took the model's whole width, once. Only the KV heads are cached, and of each both key and value.",
    ),
)

# --- whole requests ------------------------------------------------------------------------------


def _draw_requests(rng: random.Random) -> Draw:
    lengths = {"prompt": rng.choice((1900, 2600, 3100)), "generated": rng.choice((500, 700, 900))}
    return drawn(
        **real_shape(rng.choice(("qwen2.5-7b", "mixtral-8x22b"))),
        **lengths,
        requests=rng.choice((12, 17, 23)),
        bytes_per_element=2,
    )


def _small_requests(rng: random.Random) -> Draw:
    shape = {"layers": rng.choice((3, 4)), "query_heads": 10, "kv_heads": 2, "head_dim": 3, "bytes_per_element": 2}
    return drawn(**shape, prompt=rng.choice((5, 7)), generated=rng.choice((2, 3)), requests=rng.choice((5, 6)))


def _count_requests(p: Draw) -> float:
    read_again = [*range(p.prompt), *range(p.generated)]
    kept = [
        cache_walk.readable_elements(attention(p), tokens=len(read_again))
        for _ in range(p.requests)
        for _ in range(p.layers)
    ]
    return float(sum(kept) * p.bytes_per_element)


REQUESTS = Drill(
    key="kv-whole-requests",
    taught=TAUGHT,
    title="A batch at the end of its answers",
    unit="B",
    capacity=True,
    target_s=90,
    draw=_draw_requests,
    small=_small_requests,
    prompt=lambda p: (
        f"{p.name} has {p.layers} layers with {p.query_heads} query heads and {p.kv_heads} KV heads, {p.head_dim} wide;"
        f" its KV cache is kept in 16 bits. A batch of {p.requests} requests is running. Each came with a prompt of"
        f" {p.prompt:,} tokens and has generated {p.generated} more. How large is the cache of the batch now?"
    ),
    derive=lambda p: Derivation(
        value=p.requests * (p.prompt + p.generated) * per_token_bytes(p),
        formula=(
            "requests × (prompt + generated) × 2 (key and value) × layers × KV heads × head dim × bytes per element"
        ),
        substitution=(
            f"{p.requests} × ({p.prompt} + {p.generated}) × 2 × {p.layers} × {p.kv_heads} × {p.head_dim} ×"
            f" {p.bytes_per_element}"
        ),
        source=SOURCE_PAGED_SECTION_3,
    ),
    count=_count_requests,
    prerequisites=("kv-bytes-per-token",),
    slips=(
        Slip(
            "prompt-only",
            lambda p: p.requests * p.prompt * 2 * p.layers * p.kv_heads * p.head_dim * p.bytes_per_element,
        )
        | "You cached the prompts alone. What the model has written, it has to read again too.",
        Slip(
            "generated-only",
            lambda p: p.requests * p.generated * 2 * p.layers * p.kv_heads * p.head_dim * p.bytes_per_element,
        )
        | "You cached the answers alone. The next token attends to the prompt as well.",
        Slip(
            "one-request",
            lambda p: (p.prompt + p.generated) * 2 * p.layers * p.kv_heads * p.head_dim * p.bytes_per_element,
        )
        | "That is one request. Weights are shared by a batch; caches are not.",
        Slip(
            "keys-or-values",
            lambda p: p.requests * (p.prompt + p.generated) * p.layers * p.kv_heads * p.head_dim * p.bytes_per_element,
        )
        | "You cached keys or values. Every later token needs both.",
        Slip(
            "query-heads",
            lambda p: (
                p.requests * (p.prompt + p.generated) * 2 * p.layers * p.query_heads * p.head_dim * p.bytes_per_element
            ),
        )
        | "You counted query heads. Several of them read the same cached key and value.",
        Slip(
            "one-layer",
            lambda p: p.requests * (p.prompt + p.generated) * 2 * p.kv_heads * p.head_dim * p.bytes_per_element,
        )
        | "That is one layer. Every layer keeps keys and values of its own.",
    ),
)

DRILLS = (PER_TOKEN, REQUESTS)
