"""Drills on batches: what they make in a second, what is wasted when they are held together, and who gets a slot that
comes free.
"""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import giga, tera
from threeloops.product_loop import batching, serving
from threeloops.simulate.product_loop import decoding
from threeloops.units import billion, fmt_bytes

TAUGHT = Taught("product", "Batching")
POPE = "Pope et al., 2022, arXiv:2211.05102, section 2 (prefill and decode)"
ORCA = "Yu et al., Orca, OSDI 2022, section 3 (requests that finish early, iteration-level scheduling)"
TB = 1e12

# --- tokens in a second --------------------------------------------------------------------------


def _draw_rate(rng: random.Random) -> Draw:
    billions, bandwidth = rng.choice(((7.2, 2.0), (8.0, 3.35), (9.4, 3.35), (14.8, 4.8)))
    per_request = round(2 * billions * rng.randrange(55, 80) / 10) * 10_000_000  # 5.5 to 8 % of the weights
    return drawn(billions=billions, bandwidth=bandwidth * TB, batch=rng.randrange(21, 37), per_request=per_request)


def _step(p: Draw, *, weights: float = 2.0, batch: int | None = None) -> float:
    """Seconds of a step that reads so many bytes per parameter and so many caches."""
    return float((weights * p.billions * billion + (p.batch if batch is None else batch) * p.per_request) / p.bandwidth)


def _derive_rate(p: Draw) -> Derivation:
    step = serving.decode_step_s(
        weights_bytes=2 * p.billions * billion,
        cache_bytes=p.batch * p.per_request,
        batch=p.batch,
        flops_per_token=2 * p.billions * billion,
        memory_bytes_per_s=p.bandwidth,
        peak_flops_per_s=2 * p.batch * p.bandwidth,
    )
    return Derivation(
        value=p.batch / step,
        formula="requests × bandwidth / (weights + requests × cache of each)",
        substitution=(
            f"{p.batch} × {tera(p.bandwidth)} / ({giga(p.billions * billion)} × 2 + {p.batch} × {p.per_request})"
        ),
        source=POPE,
    )


def _count_rate(p: Draw) -> float:
    """One token for everybody whenever everything has been read."""
    read = sum(2 for _parameter in range(round(p.billions * billion)))
    tokens = 0
    for _request in range(p.batch):
        read += p.per_request
        tokens += 1
    return float(tokens / (read / p.bandwidth))


RATE = Drill(
    key="serving-batch-throughput",
    taught=TAUGHT,
    title="What the whole batch makes",
    unit="token/s",
    target_s=110,
    draw=_draw_rate,
    small=lambda rng: drawn(
        billions=rng.choice((30e-9, 50e-9)), bandwidth=700.0, batch=rng.choice((5, 6)), per_request=rng.choice((7, 9))
    ),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters in 16 bits decodes for {p.batch} requests at once, each"
        f" with a KV cache of {fmt_bytes(p.per_request, base=10)}. Memory delivers {p.bandwidth / TB:g} TB/s, and"
        " reading takes longer than arithmetic. How many tokens does the GPU make in a second, all requests together?"
    ),
    derive=_derive_rate,
    count=_count_rate,
    prerequisites=("serving-decode-step",),
    slips=(
        Slip("one-request", lambda p: 1 / _step(p))
        | "That is what one request gets. The batch makes a token for each of them.",
        Slip("no-caches", lambda p: p.batch / _step(p, batch=0))
        | "You read the weights only. Every request's cache is read in every step, too.",
        Slip("one-cache", lambda p: p.batch / _step(p, batch=1))
        | "You read the cache of one request. Each has its own.",
        Slip("one-byte", lambda p: p.batch / _step(p, weights=1)) | "You gave a parameter one byte. 16 bits are two.",
    ),
)

# --- held together -------------------------------------------------------------------------------


def _draw_held(rng: random.Random) -> Draw:
    longest = rng.randrange(800, 1000, 20)
    return drawn(
        outputs=[rng.randrange(40, 100, 10), longest, rng.randrange(110, 170, 10), rng.randrange(180, 280, 10)]
    )


def _derive_held(p: Draw) -> Derivation:
    made = " + ".join(str(tokens) for tokens in p.outputs)
    return Derivation(
        value=1 - sum(p.outputs) / batching.static_batch_tokens_paid(p.outputs),
        formula="1 − tokens made / (requests × longest answer)",
        substitution=f"1 − ({made}) / ({len(p.outputs)} × {max(p.outputs)})",
        source=ORCA,
    )


def _count_held(p: Draw) -> float:
    _, paid = decoding.held_batches(p.outputs, slots=len(p.outputs))
    return (paid - sum(1 for tokens in p.outputs for _token in range(tokens))) / paid


HELD = Drill(
    key="serving-static-waste",
    taught=TAUGHT,
    title="Waiting for the longest answer",
    unit="",
    target_s=75,
    draw=_draw_held,
    small=lambda rng: drawn(
        outputs=[rng.randrange(2, 5), rng.randrange(20, 26), rng.randrange(5, 8), rng.randrange(8, 11)]
    ),
    prompt=lambda p: (
        "A server decodes four requests as one batch and takes the next four only when all are done. The answers turn"
        f" out to have {p.outputs[0]}, {p.outputs[1]}, {p.outputs[2]} and {p.outputs[3]} tokens. In every step each"
        " request holds one slot. What share of the slots makes no token?"
    ),
    derive=_derive_held,
    count=_count_held,
    slips=(
        Slip("used-share", lambda p: sum(p.outputs) / (len(p.outputs) * max(p.outputs)))
        | "That is the share that makes a token. The question is about the rest.",
        Slip("against-the-made", lambda p: len(p.outputs) * max(p.outputs) / sum(p.outputs) - 1)
        | "You compared the waste with what was made. A share of all slots is asked for.",
        Slip("shortest", lambda p: 1 - min(p.outputs) / max(p.outputs))
        | "That is the slot of the shortest answer alone. The others wait less.",
        Slip("one-left-out", lambda p: (sum(p.outputs) - max(p.outputs)) / (len(p.outputs) * max(p.outputs)))
        | "You took the tokens of the three shorter answers for the waste. They are made.",
    ),
)

# --- refilled ------------------------------------------------------------------------------------


def _draw_refilled(rng: random.Random) -> Draw:
    scale = rng.choice((7, 9, 11, 13))
    first, second = rng.choice(((40, 13), (41, 11), (43, 11)))
    rest = [rng.randrange(20, 26), rng.randrange(26, 32), rng.randrange(3, 7)]
    return drawn(outputs=[tokens * scale for tokens in (first, second, *rest)], slots=2)


def _pairs(outputs: list[int], slots: int) -> int:
    """Steps if a batch is held together and the next one then begins."""
    return sum(max(outputs[start : start + slots]) for start in range(0, len(outputs), slots))


def _derive_refilled(p: Draw) -> Derivation:
    served = batching.refilled_slots(p.outputs, slots=p.slots)
    return Derivation(
        value=float(max(map(sum, served))),
        formula="the largest sum of a slot, when the next request always takes the slot that is free first",
        substitution=f"max({', '.join(' + '.join(str(tokens) for tokens in slot) for slot in served)})",
        source=ORCA,
    )


def _slots_for_all(rng: random.Random) -> Draw:
    return drawn(outputs=[rng.randrange(2, 60) for _ in range(6)], slots=9)


def _any_slots(rng: random.Random) -> Draw:
    """Any number of slots, not only the two that the question names."""
    return drawn(outputs=[rng.randrange(2, 60) for _ in range(rng.randrange(8, 14))], slots=rng.choice((2, 3, 5)))


REFILLED = Drill(
    key="serving-refilled-steps",
    taught=TAUGHT,
    title="A finished request makes room",
    unit="",
    whole="exact",
    target_s=120,
    draw=_draw_refilled,
    small=lambda rng: drawn(
        outputs=[
            rng.choice((40, 41)),
            rng.choice((13, 14)),
            rng.randrange(20, 26),
            rng.randrange(26, 32),
            rng.randrange(3, 7),
        ],
        slots=2,
    ),
    prompt=lambda p: (
        f"Five requests wait in this order; they will have {', '.join(str(tokens) for tokens in p.outputs[:-1])} and"
        f" {p.outputs[-1]} tokens. A server with continuous batching decodes {p.slots} at a time: who is done leaves at"
        " once, and the next in line takes the slot. How many decode steps until all are done?"
    ),
    derive=_derive_refilled,
    count=lambda p: float(decoding.refilled_batch(p.outputs, slots=p.slots)[0]),
    prerequisites=("serving-static-waste",),
    slips=(
        Slip("held", lambda p: float(_pairs(p.outputs, p.slots)))
        | "You held each pair together. Here a slot is given on at once.",
        Slip("perfect", lambda p: sum(p.outputs) / p.slots)
        | "You divided the work evenly. A request cannot be cut up between slots.",
        Slip("one-after-the-other", lambda p: float(sum(p.outputs)))
        | "You let them queue for a single slot. There are more.",
        Slip("longest", lambda p: float(max(p.outputs))) | "That is when the longest is done. Who came after it?",
    ),
    function=AsFunction(
        takes=("outputs", "slots"), limit_draw=_slots_for_all, limit_case="more slots than requests", draw=_any_slots
    ),
)

# --- shared beginnings ---------------------------------------------------------------------------


def _small_prefix(rng: random.Random) -> Draw:
    every, times = rng.choice((4, 5)), rng.choice((3, 4))
    return drawn(
        requests=every * times, shared=rng.randrange(60, 90), own=rng.randrange(20, 30), hit=1 - 1 / every, every=every
    )


def _derive_prefix(p: Draw) -> Derivation:
    computed = serving.prefilled_tokens(requests=p.requests, shared_tokens=p.shared, own_tokens=p.own, hit_share=p.hit)
    return Derivation(
        value=1 - computed / (p.requests * (p.shared + p.own)),
        formula="hit share × shared tokens / (shared tokens + own tokens)",
        substitution=f"{p.hit} × {p.shared} / ({p.shared} + {p.own})",
        source="Zheng et al., SGLang, 2024, arXiv:2312.07104, section 3 (RadixAttention)",
    )


def _count_prefix(p: Draw) -> float:
    whole = sum(p.shared + p.own for _request in range(p.requests))
    return float(
        (whole - decoding.prefilled(requests=p.requests, shared=p.shared, own=p.own, forgotten_every=p.every)) / whole
    )


PREFIX = Drill(
    key="serving-prefix-savings",
    taught=TAUGHT,
    title="Every request begins with the same page",
    unit="",
    target_s=75,
    draw=lambda rng: drawn(
        requests=1000,
        shared=rng.randrange(3000, 5000, 100),
        own=rng.randrange(350, 510, 10),
        hit=rng.choice((0.62, 0.66, 0.7, 0.74, 0.78)),
    ),
    small=_small_prefix,
    prompt=lambda p: (
        f"Every request of an assistant begins with the same {p.shared:,} tokens of instructions, and {p.own} tokens of"
        f" its own follow. The prefix cache still has the instructions for {100 * p.hit:g} % of the requests. What"
        " share of all prompt tokens need not be computed?"
    ),
    derive=_derive_prefix,
    count=_count_prefix,
    slips=(
        Slip("hits-only", lambda p: p.hit)
        | "That is how many requests save something. None of them saves its whole prompt.",
        Slip("always-hit", lambda p: p.shared / (p.shared + p.own))
        | "You found the instructions every time. Some requests come too late.",
        Slip("still-computed", lambda p: 1 - p.hit * p.shared / (p.shared + p.own))
        | "That is what is still computed. The question asks for what is not.",
        Slip("own-saved", lambda p: p.hit * p.own / (p.shared + p.own))
        | "You saved the tokens that differ. The cache has those that are the same.",
    ),
)

DRILLS = (RATE, HELD, REFILLED, PREFIX)
