"""Drills on attention that somebody timed: a prompt's and a token's."""

import functools
import random
from itertools import product

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.measured.rows import REPLAYED, TimedCall, chosen, took
from threeloops.dtypes import bytes_per_element
from threeloops.facts.kernel_times import DECODE, PREFILL
from threeloops.operations import attention
from threeloops.operations.roofline import Work
from threeloops.units import fmt_si, us

SOURCE_HALF = "Dao, FlashAttention-2, 2023, arXiv:2307.08691, section 4.1 (half of the square)"
SOURCE_FUSED = "Dao et al., FlashAttention, 2022, arXiv:2205.14135, section 3"

# --- the rate of a prompt's attention --------------------------------------------------------------


@functools.cache
def _prompts() -> tuple[TimedCall, ...]:
    def asked(call: TimedCall) -> bool:
        sizes = call.sizes
        group = sizes["num_heads"] // sizes["num_kv_heads"]
        return call.seconds > 100 * us and sizes["batch"] > 1 and group > 1 and sizes["tokens"] >= 512

    return chosen(PREFILL, "bf16", where=asked)


def _draw_prompt(rng: random.Random) -> Draw:
    call = rng.choice(_prompts())
    return drawn(
        **call.sizes, device=call.device, engine=call.engine, seconds=call.seconds, peak=call.peak, row=call.source
    )


def _small_prompt(rng: random.Random) -> Draw:
    kv_heads = rng.randrange(1, 3)
    return drawn(
        batch=rng.choice((3, 5)),
        num_kv_heads=kv_heads,
        num_heads=kv_heads * rng.choice((2, 3)),
        head_dim=rng.choice((4, 6)),
        tokens=rng.randrange(5, 12),
        seconds=rng.randrange(21, 99) / 10,
        row="drawn in 2026",
    )


def _prompt_rate(p: Draw, causal: str = "half") -> float:
    return float(_attention(p, query_tokens=p.tokens, causal=causal).flops / p.seconds)


def _attention(p: Draw, *, query_tokens: int, causal: str, cache: str = "bf16", num_kv_heads: int = 0) -> Work:
    return attention.attention(
        batch=p.batch,
        num_heads=p.num_heads,
        num_kv_heads=num_kv_heads or p.num_kv_heads,
        head_dim=p.head_dim,
        query_tokens=query_tokens,
        context_tokens=p.tokens,
        causal=causal,
        fused=True,
        bytes_per_element=2,
        kv_bytes_per_element=bytes_per_element(cache),
    )


def _count_prompt(p: Draw) -> float:
    """Every pair of a query and a key that it may see; of a token with itself half."""
    operations = 0.0
    for _, _, query, key in product(range(p.batch), range(p.num_heads), range(p.tokens), range(p.tokens)):
        if key <= query:
            once = sum(2 for _ in range(p.head_dim)) + sum(2 for _ in range(p.head_dim))  # its score, its value
            operations += once / 2 if key == query else once
    return operations / float(p.seconds)


PROMPT = Drill(
    key="measured-prompt-attention",
    taught=Taught("inner", "Fusion and FlashAttention"),
    title="The rate of a prompt's attention",
    unit="FLOP/s",
    target_s=100,
    draw=_draw_prompt,
    small=_small_prompt,
    prompt=lambda p: (
        f"On an {p.device}, {p.engine} ran causal attention, forward, over {p.batch} prompts of {p.tokens:,} tokens in"
        f" BF16: {p.num_heads} query heads, {p.num_kv_heads} KV head{'s' if p.num_kv_heads > 1 else ''},"
        f" {p.head_dim} wide. One call took {took(p.seconds)} ({REPLAYED}). Count the two matmuls, and of each"
        " the half that the causal mask leaves (tokens² / 2), as FlashAttention's tables do. What rate was that?"
    ),
    derive=lambda p: Derivation(
        value=_prompt_rate(p),
        formula="2 matmuls × 2 × prompts × query heads × head dim × tokens² / 2 / time",
        substitution=f"2 × 2 × {p.batch} × {p.num_heads} × {p.head_dim} × {p.tokens}² / 2 / {p.seconds!r}",
        source=f"{SOURCE_HALF}; {p.row}",
    ),
    count=_count_prompt,
    slips=(
        Slip("full-square", lambda p: _prompt_rate(p, "full"))
        | "You counted the whole square. The mask hides half of it, and this kernel skips that half.",
        Slip("kv-heads", lambda p: _prompt_rate(p) * p.num_kv_heads / p.num_heads)
        | "You counted KV heads. They are shared, but each query head has matmuls of its own.",
        Slip("one-product", lambda p: _prompt_rate(p) / 2)
        | "Half of it: either one of the two matmuls is missing, or a multiply-add was counted once.",
        Slip("one-prompt", lambda p: _prompt_rate(p) / p.batch) | "You counted one prompt. The call had more.",
        Slip("backward-too", lambda p: _prompt_rate(p) * 3.5)
        | "You counted a backward pass as well. This is an inference engine's call.",
    ),
)

# --- the share of its roof that a token's attention reaches -----------------------------------------


@functools.cache
def _tokens() -> tuple[TimedCall, ...]:
    def asked(call: TimedCall) -> bool:
        sizes = call.sizes
        shared = sizes["num_heads"] > sizes["num_kv_heads"]
        return call.seconds > 25 * us and sizes["batch"] > 1 and shared and sizes["tokens"] >= 128

    return chosen(DECODE, "bf16", "fp8", where=asked)


def _draw_token(rng: random.Random) -> Draw:
    call = rng.choice(_tokens())
    return drawn(
        **call.sizes,
        cache=call.format,
        device=call.device,
        engine=call.engine,
        seconds=call.seconds,
        memory=call.rate,
        row=call.source,
    )


def _small_token(rng: random.Random) -> Draw:
    kv_heads = rng.randrange(1, 4)
    return drawn(
        batch=rng.choice((3, 5)),
        num_kv_heads=kv_heads,
        num_heads=kv_heads * rng.choice((3, 5)),
        head_dim=rng.choice((4, 6)),
        tokens=rng.randrange(15, 32),
        cache=rng.choice(("bf16", "fp8")),
        seconds=rng.randrange(21, 99) / 10,
        memory=5000,
        row="drawn in 2026",
    )


def _token_share(p: Draw, **changed: object) -> float:
    settings = {"cache": p.cache} | changed
    moved = _attention(p, query_tokens=1, causal="full", **settings).moved_bytes
    return float(moved / p.memory / p.seconds)


def _other(cache: str) -> str:
    return "fp8" if cache == "bf16" else "bf16"


def _derive_token(p: Draw) -> Derivation:
    cached = f"2 × {p.num_kv_heads} × {p.tokens} × {p.head_dim} × {bytes_per_element(p.cache):g}"
    return Derivation(
        value=_token_share(p),
        formula="requests × (keys and values + a query and an output per query head) / bandwidth / time",
        substitution=(
            f"{p.batch} × ({cached} + 2 × {p.num_heads} × {p.head_dim} × 2) / {float(p.memory)!r} / {p.seconds!r}"
        ),
        source=f"{SOURCE_FUSED}; {p.row}",
    )


def _count_token(p: Draw) -> float:
    """Element by element: what is read and written, each place once."""
    moved = 0.0
    for _ in range(p.batch):
        for _, _, _ in product(range(p.num_kv_heads), range(p.tokens), range(p.head_dim)):
            moved += bytes_per_element(p.cache)  # of a key
            moved += bytes_per_element(p.cache)  # of a value
        for _, _ in product(range(p.num_heads), range(p.head_dim)):
            moved += 2 + 2  # of a query, and of what comes out
    return float(moved / p.memory / p.seconds)


TOKEN = Drill(
    key="measured-token-attention",
    taught=Taught("product", "Prefill and decode"),
    title="The roof of one more token's attention",
    unit="",
    target_s=110,
    draw=_draw_token,
    small=_small_token,
    prompt=lambda p: (
        f"On an {p.device} with {fmt_si(p.memory, 'B/s')}, {p.engine} ran decode attention: one new token for each of"
        f" {p.batch} requests, over KV caches of {p.tokens:,} tokens in {p.cache.upper()}. {p.num_heads} query heads,"
        f" {p.num_kv_heads} KV head{'s' if p.num_kv_heads > 1 else ''}, {p.head_dim} wide; queries and outputs have 2"
        f" bytes an element. One call of one layer took {took(p.seconds)} ({REPLAYED}). Memory binds. What share of"
        " its roof did it reach?"
    ),
    derive=_derive_token,
    count=_count_token,
    wanted=lambda p: _token_share(p) < 1,
    slips=(
        Slip("query-heads", lambda p: _token_share(p, num_kv_heads=p.num_heads))
        | "You gave every query head a cache of its own. A group of them reads one KV head.",
        Slip("other-width", lambda p: _token_share(p, cache=_other(p.cache)))
        | "You gave the cache the width of another format. How many bytes has an element of this one?",
        Slip(
            "keys-or-values",
            lambda p: (
                (_token_share(p) * p.seconds * p.memory - 2 * 2 * p.batch * p.num_heads * p.head_dim)
                / (2 * p.memory * p.seconds)
            ),
        )
        | "You read keys or values. A token needs both.",
        Slip("one-request", lambda p: _token_share(p) / p.batch)
        | "You read the cache of one request. No request shares another's.",
        Slip("upside-down", lambda p: 1 / _token_share(p))
        | "That is how many times longer it took than its roof. Turn it over.",
    ),
)

DRILLS = (PROMPT, TOKEN)
