"""Drills on what an allocator holds for a request: whole blocks, or room for the longest answer."""

import random

from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop.kv_allocators import HfStatic, VllmPaged
from threeloops.simulate.product_loop import block_allocator
from threeloops.units import KiB

TAUGHT = Taught("product", "Paging")

SOURCE_PAGED = "Kwon et al., 2023, arXiv:2309.06180, section 4 (PagedAttention)"
SOURCE_RESERVED = "Kwon et al., 2023, arXiv:2309.06180, section 3.1 (memory reserved in advance)"

# --- paged blocks --------------------------------------------------------------------------------


def _draw_blocks(rng: random.Random) -> Draw:
    block = rng.choice((16, 32))
    whole_blocks, rest = rng.choice((2, 3)), block // 4 + rng.choice((1, 2, 3))
    return drawn(
        block=block,
        tokens=whole_blocks * block + rest,
        per_token=rng.choice((96, 112, 160)) * KiB,
        requests=rng.choice((60, 70, 85, 90, 105, 110)),
    )


def _derive_blocks(p: Draw) -> Derivation:
    slots = VllmPaged(block_tokens=p.block).slots(tokens=p.tokens, window=None)
    return Derivation(
        value=p.requests * slots * p.per_token,
        formula="requests × ⌈tokens / block⌉ × block × bytes per token",
        substitution=f"{p.requests} × {slots // p.block} × {p.block} × {p.per_token}",
        source=SOURCE_PAGED,
    )


def _count_blocks(p: Draw) -> float:
    pages = block_allocator.BlockAllocator(num_blocks=10 * p.requests, block_tokens=p.block)
    for request in range(p.requests):
        for _ in range(p.tokens):
            pages.grow(str(request))
    return float(pages.reserved_slots * p.per_token)


BLOCKS = Drill(
    key="kv-paged-blocks",
    taught=TAUGHT,
    title="Paying for whole blocks",
    unit="B",
    capacity=True,
    target_s=75,
    draw=_draw_blocks,
    small=lambda rng: drawn(
        block=rng.choice((4, 8)), tokens=rng.choice((11, 19)), per_token=1, requests=rng.choice((2, 3))
    ),
    prompt=lambda p: (
        f"A paged allocator hands out the KV cache in blocks of {p.block} tokens. A token costs {p.per_token:,} bytes."
        f" {p.requests} requests have reached {p.tokens} tokens each and share no prefix. How many bytes are reserved"
        " for them?"
    ),
    derive=_derive_blocks,
    count=_count_blocks,
    slips=(
        Slip("no-blocks", lambda p: p.requests * p.tokens * p.per_token)
        | "You paid by the token. The allocator hands out whole blocks only.",
        Slip("rounded-down", lambda p: p.requests * (p.tokens // p.block) * p.block * p.per_token)
        | "You rounded down: the last tokens of each request would have nowhere to live.",
        Slip("one-request", lambda p: -(-p.tokens // p.block) * p.block * p.per_token)
        | "That is one request. Every request fills blocks of its own.",
        Slip("blocks-as-tokens", lambda p: p.requests * (-(-p.tokens // p.block)) * p.per_token)
        | "You multiplied the number of blocks by the bytes of a token. How many tokens does a block hold?",
    ),
    function=AsFunction(
        takes=("block", "tokens", "per_token", "requests"),
        limit=lambda p: {"tokens": 3 * p.block},
        limit_case="a context that fills its last block exactly",
    ),
)

# --- memory reserved in advance ------------------------------------------------------------------


def _draw_reserved(rng: random.Random) -> Draw:
    scale = rng.choice((1, 2, 4))
    return drawn(
        longest=2048 * scale, prompt=rng.randrange(300, 530, 10) * scale, answer=rng.randrange(110, 195, 5) * scale
    )


def _derive_reserved(p: Draw) -> Derivation:
    slots = HfStatic(max_tokens=p.longest).slots(tokens=p.prompt + p.answer, window=None)
    return Derivation(
        value=1 - (p.prompt + p.answer) / slots,
        formula="1 − (prompt + answer) / longest",
        substitution=f"1 − ({p.prompt} + {p.answer}) / {p.longest}",
        source=SOURCE_RESERVED,
    )


def _count_reserved(p: Draw) -> float:
    """One block as long as the longest request, written token by token."""
    slots = block_allocator.BlockAllocator(num_blocks=1, block_tokens=p.longest)
    for length in (p.prompt, *(1 for _ in range(p.answer))):
        slots.grow("request", tokens=length)
    return (slots.reserved_slots - slots.written_slots) / slots.reserved_slots


RESERVED = Drill(
    key="kv-reserved-in-advance",
    taught=TAUGHT,
    title="Room for answers that never come",
    unit="",
    target_s=45,
    draw=_draw_reserved,
    small=lambda rng: drawn(longest=40, prompt=rng.choice((7, 9)), answer=rng.choice((3, 4))),
    prompt=lambda p: (
        f"A server without paging does not know how long an answer will be, so it reserves a cache of {p.longest:,}"
        f" tokens for every request. A typical request has a prompt of {p.prompt:,} tokens and stops after an answer of"
        f" {p.answer}. What share of its reserved memory is never written?"
    ),
    derive=_derive_reserved,
    count=_count_reserved,
    slips=(
        Slip("used-share", lambda p: (p.prompt + p.answer) / p.longest)
        | "That is the share that was written. The question is about the rest.",
        Slip("prompt-only", lambda p: 1 - p.prompt / p.longest)
        | "You counted the prompt alone as written. Each generated token takes a slot too.",
        Slip("answer-only", lambda p: 1 - p.answer / p.longest)
        | "You counted the answer alone as written. The prompt fills slots first.",
        Slip("per-written-token", lambda p: p.longest / (p.prompt + p.answer) - 1)
        | "You compared the waste with what was written. A share of the reserved memory is asked for.",
    ),
)

DRILLS = (BLOCKS, RESERVED)
