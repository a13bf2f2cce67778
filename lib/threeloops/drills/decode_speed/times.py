"""Drills on the time of one request: reading the prompt, one step of decoding, the last token, and what an ITL
allows.
"""

import random
from fractions import Fraction
from typing import Any

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import giga, tera
from threeloops.product_loop import serving
from threeloops.simulate.product_loop import decoding
from threeloops.units import MB, TFLOP, billion, fmt_bytes, ms

TAUGHT = Taught("product", "Prefill and decode")
POPE = "Pope et al., 2022, arXiv:2211.05102, section 2 (prefill and decode)"
TB = 1e12

# --- reading the prompt --------------------------------------------------------------------------


def _draw_prefill(rng: random.Random) -> Draw:
    billions = rng.choice((7.2, 8.0, 13.0, 14.8, 32.5, 70.6))
    return drawn(
        tokens=rng.randrange(2600, 9800, 100),
        billions=billions,
        peak=rng.choice((312, 989.4, 1979)) * TFLOP,
        utilisation=rng.choice((0.35, 0.4, 0.45)),
    )


def _prefill(p: Draw, **changes: Any) -> float:
    values = {
        "tokens": p.tokens,
        "flops_per_token": 2 * p.billions * billion,
        "peak_flops_per_s": p.peak,
        "utilisation": p.utilisation,
    }
    return serving.prefill_s(**(values | changes))


def _count_prefill(p: Draw) -> float:
    """One token after the other meets every parameter in a multiplication and an addition."""
    operations = sum(2 for _token in range(p.tokens) for _parameter in range(round(p.billions * billion)))
    return float(operations / (p.peak * p.utilisation))


PREFILL = Drill(
    key="serving-prefill",
    taught=TAUGHT,
    title="How long the prompt takes",
    unit="s",
    target_s=90,
    draw=_draw_prefill,
    small=lambda rng: drawn(
        tokens=rng.randrange(3, 9),
        billions=rng.choice((2e-9, 3e-9)),
        peak=rng.choice((100.0, 200.0)),
        utilisation=rng.choice((0.25, 0.5)),
    ),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters reads a prompt of {p.tokens:,} tokens. The GPU's peak is"
        f" {p.peak / TFLOP:,g} TFLOP/s, and matmuls reach {100 * p.utilisation:g} % of it. Leave attention's"
        " own matmuls out. How long does the prompt take?"
    ),
    derive=lambda p: Derivation(
        value=_prefill(p),
        formula="2 × parameters × tokens / (peak × share reached)",
        substitution=f"2 × {giga(p.billions * billion)} × {p.tokens:,} / ({tera(p.peak)} × {p.utilisation})",
        source=POPE,
    ),
    count=_count_prefill,
    slips=(
        Slip("no-two", lambda p: _prefill(p) / 2)
        | "You counted one operation per parameter and token. A multiplication and an addition are two.",
        Slip("at-peak", lambda p: _prefill(p, utilisation=1))
        | "You ran at the data sheet's peak. The question says what share of it is reached.",
        Slip("one-token", lambda p: _prefill(p, tokens=1)) | "That is one token. The whole prompt is read.",
        Slip("training", lambda p: 3 * _prefill(p)) | "You counted a backward pass. Nothing is learnt here.",
        Slip("share-multiplied", lambda p: _prefill(p) * p.utilisation**2)
        | "You multiplied by the share reached. A slower machine takes longer, not shorter.",
    ),
)

# --- one step of decoding ------------------------------------------------------------------------


def _draw_decode(rng: random.Random) -> Draw:
    billions, bandwidth = rng.choice(((7.2, 2.0), (8.0, 3.35), (9.4, 3.35), (14.8, 4.8)))
    # a long conversation: 11 to 17 % of the weights
    per_request = round(2 * billions * rng.randrange(11, 18)) * 10_000_000
    return drawn(billions=billions, bandwidth=bandwidth * TB, batch=rng.randrange(13, 19), per_request=per_request)


def _decode(p: Draw, *, weights: float = 2.0, batch: int | None = None, per_request: float | None = None) -> float:
    """Seconds of a step, bound by bandwidth in every draw; `weights` is bytes per parameter."""
    size = p.per_request if per_request is None else per_request
    return float((weights * p.billions * billion + (p.batch if batch is None else batch) * size) / p.bandwidth)


def _count_decode(p: Draw) -> float:
    """Read the weights, then every request's cache, byte by byte."""
    read = sum(2 for _parameter in range(round(p.billions * billion)))
    for _request in range(p.batch):
        read += sum(1 for _byte in range(p.per_request))
    return float(read / p.bandwidth)


DECODE = Drill(
    key="serving-decode-step",
    taught=TAUGHT,
    title="One token for every request in the batch",
    unit="s",
    target_s=100,
    draw=_draw_decode,
    small=lambda rng: drawn(
        billions=rng.choice((3e-9, 5e-9)), bandwidth=10.0, batch=rng.choice((3, 4)), per_request=rng.choice((7, 9))
    ),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters, kept in 16 bits, decodes for {p.batch} requests at once;"
        f" each has a KV cache of {fmt_bytes(p.per_request, base=10)}. Memory delivers {p.bandwidth / TB:g} TB/s,"
        " and arithmetic takes less time than reading. How long does one step take at least?"
    ),
    derive=lambda p: Derivation(
        value=serving.decode_step_s(
            weights_bytes=2 * p.billions * billion,
            cache_bytes=p.batch * p.per_request,
            batch=p.batch,
            flops_per_token=2 * p.billions * billion,
            memory_bytes_per_s=p.bandwidth,
            peak_flops_per_s=2 * p.batch * p.bandwidth,
        ),
        formula="(parameters × bytes each + requests × cache of each) / bandwidth",
        substitution=f"({giga(p.billions * billion)} × 2 + {p.batch} × {p.per_request:.0f}) / {tera(p.bandwidth)}",
        source=POPE,
    ),
    count=_count_decode,
    slips=(
        Slip("weights-only", lambda p: _decode(p, batch=0))
        | "You read the weights only. Every request's cache is read in every step, too.",
        Slip("cache-only", lambda p: _decode(p, weights=0))
        | "You read the caches only. The weights come from memory in every step.",
        Slip("weights-per-request", lambda p: _decode(p, weights=2 * p.batch))
        | "You read the weights once per request. The whole batch shares one reading.",
        Slip("one-cache", lambda p: _decode(p, batch=1)) | "You read the cache of one request. Each has its own.",
        Slip("one-byte", lambda p: _decode(p, weights=1)) | "You gave a parameter one byte. 16 bits are two.",
    ),
)

# --- from the first token to the last ------------------------------------------------------------


def _draw_request(rng: random.Random) -> Draw:
    return drawn(ttft_ms=rng.randrange(350, 510, 10), itl_ms=rng.randrange(40, 60), tokens=rng.randrange(23, 38))


def _request(p: Draw, **changes: Any) -> float:
    return serving.request_s(
        **({"ttft_s": p.ttft_ms * ms, "itl_s": p.itl_ms * ms, "output_tokens": p.tokens} | changes)
    )


REQUEST = Drill(
    key="serving-request-time",
    taught=TAUGHT,
    title="When the last token comes",
    unit="s",
    target_s=60,
    tolerance=0.01,
    draw=_draw_request,
    small=_draw_request,
    prompt=lambda p: (
        f"A function call of {p.tokens} tokens is generated. TTFT is {p.ttft_ms} ms, ITL {p.itl_ms} ms, and the call"
        " can be made when its last token is there. How long after the request?"
    ),
    derive=lambda p: Derivation(
        value=_request(p),
        formula="TTFT + (tokens − 1) × ITL",
        substitution=f"({p.ttft_ms} + ({p.tokens} − 1) × {p.itl_ms}) / 1000",
        source=POPE,
    ),
    count=lambda p: float(
        decoding.arrival_times(
            ttft_s=Fraction(p.ttft_ms, 1000), itl_s=Fraction(p.itl_ms, 1000), output_tokens=p.tokens
        )[-1]
    ),
    slips=(
        Slip("no-ttft", lambda p: (p.tokens - 1) * p.itl_ms * ms)
        | "You began to count at the first token. It had to be waited for.",
        Slip("first-counted-slow", lambda p: p.tokens * p.ttft_ms * ms)
        | "You waited TTFT for every token. The prompt is read once.",
        Slip("itl-only-once", lambda p: (p.ttft_ms + p.itl_ms) * ms)
        | "You waited for the second token. There are more.",
        Slip("ttft-only", lambda p: p.ttft_ms * ms) | "That is when the first token comes, not the last.",
    ),
    near=(
        Slip("one-gap-too-many", lambda p: (p.ttft_ms + p.tokens * p.itl_ms) * ms)
        | "You waited ITL for every token. The first one comes with TTFT; gaps are between tokens.",
    ),
)

# --- targets that have to fit together -----------------------------------------------------------


def _most(p: Draw, **changes: float) -> int:
    return serving.most_output_tokens(
        **({"deadline_s": p.deadline_ms * ms, "ttft_s": p.ttft_ms * ms, "itl_s": p.itl_ms * ms} | changes)
    )


MOST = Drill(
    key="serving-tokens-before-deadline",
    taught=TAUGHT,
    title="Three promises, one answer length",
    unit="token",
    whole="down",
    target_s=75,
    draw=lambda rng: drawn(
        deadline_ms=rng.randrange(5000, 9000, 100), ttft_ms=rng.randrange(900, 1500, 50), itl_ms=rng.randrange(24, 46)
    ),
    small=lambda rng: drawn(
        deadline_ms=rng.randrange(2000, 2400, 10), ttft_ms=rng.randrange(900, 1000, 10), itl_ms=rng.randrange(24, 46)
    ),
    prompt=lambda p: (
        f"Sales has promised: first token within {p.ttft_ms} ms, {p.itl_ms} ms between tokens, and whole answers within"
        f" {p.deadline_ms * ms:g} s. A server keeps the first two exactly. How many tokens may an answer have at most"
        " to keep the third?"
    ),
    derive=lambda p: Derivation(
        value=_most(p),
        formula="⌊(deadline − TTFT) / ITL⌋ + 1: the first token comes with TTFT",
        substitution=f"floor(({p.deadline_ms} − {p.ttft_ms}) / {p.itl_ms}) + 1",
        source="NVIDIA, NIM LLM benchmarking guide, 2024 (TTFT, ITL and end-to-end latency defined)",
    ),
    count=lambda p: decoding.tokens_by(
        Fraction(p.deadline_ms, 1000), ttft_s=Fraction(p.ttft_ms, 1000), itl_s=Fraction(p.itl_ms, 1000)
    ),
    slips=(
        Slip("no-ttft", lambda p: _most(p, ttft_s=0)) | "You started at once. The first token has to be waited for.",
        Slip("ttft-per-token", lambda p: p.deadline_ms // p.ttft_ms)
        | "You waited TTFT for every token. After the first they come at ITL.",
        Slip("per-second", lambda p: 1 / (p.itl_ms * ms))
        | "That is how many come in a second. How many seconds are there?",
        Slip("ttft-twice", lambda p: _most(p, ttft_s=2 * p.ttft_ms * ms)) | "You took TTFT off twice.",
    ),
    function=AsFunction(
        takes=("deadline_ms", "ttft_ms", "itl_ms"),
        limit={"deadline_ms": 900, "ttft_ms": 900},
        limit_case="a deadline at which the first token just comes",
    ),
)

# --- a batch for an ITL --------------------------------------------------------------------------


def _draw_batch(rng: random.Random) -> Draw:
    billions = rng.choice((7.2, 8.0, 9.4))
    return drawn(
        billions=billions,
        bandwidth=rng.choice((3.35, 4.8)) * TB,
        per_request=rng.randrange(40, 70) * 10e6,
        itl_ms=rng.randrange(18, 30),
    )


def _batch(p: Draw, *, weights: float = 2.0) -> float:
    """Requests that fit beside weights of so many bytes per parameter (0: none are read)."""
    return float((p.itl_ms * ms * p.bandwidth - weights * p.billions * billion) // p.per_request)


BATCH = Drill(
    key="serving-batch-for-itl",
    taught=TAUGHT,
    title="How many share a step",
    unit="",
    whole="down",
    target_s=110,
    draw=_draw_batch,
    small=lambda rng: drawn(
        billions=rng.choice((30e-9, 40e-9)),
        bandwidth=rng.choice((9000.0, 11000.0)),
        per_request=rng.choice((5, 7)),
        itl_ms=rng.choice((20, 30)),
    ),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters in 16 bits decodes on a GPU with {p.bandwidth / TB:g}"
        f" TB/s. Every request has a KV cache of {p.per_request / MB:,.0f} MB, and there is memory enough. As far as"
        f" reading goes, how many requests can share a step of at most {p.itl_ms} ms?"
    ),
    derive=lambda p: Derivation(
        value=serving.largest_batch_within_itl(
            itl_s=p.itl_ms * ms,
            weights_bytes=2 * p.billions * billion,
            cache_bytes_per_request=p.per_request,
            memory_bytes_per_s=p.bandwidth,
        ),
        formula="⌊(ITL × bandwidth − weights) / cache per request⌋",
        substitution=(
            f"floor(({p.itl_ms} / 1000 × {tera(p.bandwidth)} − {giga(p.billions * billion)} × 2) / {p.per_request:.0f})"
        ),
        source=POPE,
    ),
    count=lambda p: decoding.most_together(
        step_s=p.itl_ms * ms,
        weights_bytes=round(2 * p.billions * billion),
        cache_bytes=p.per_request,
        bytes_per_s=round(p.bandwidth),
    ),
    prerequisites=("serving-decode-step",),
    slips=(
        Slip("no-weights", lambda p: _batch(p, weights=0))
        | "You gave the whole step to the caches. The weights are read first.",
        Slip("weights-each", lambda p: p.itl_ms * ms * p.bandwidth // (2 * p.billions * billion + p.per_request))
        | "You read the weights for every request. A step reads them once for all.",
        Slip("one-byte", lambda p: _batch(p, weights=1)) | "You gave a parameter one byte. 16 bits are two.",
        Slip("four-bytes", lambda p: _batch(p, weights=4)) | "You gave a parameter four bytes. 16 bits are two.",
    ),
)

DRILLS = (PREFILL, DECODE, REQUEST, MOST, BATCH)
