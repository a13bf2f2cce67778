"""Drills on blocks that are shared, copied, thrown away or fetched back."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop import kv_paging
from threeloops.simulate.product_loop.shared_blocks import SharedBlocks
from threeloops.units import GB, KiB, ms

TAUGHT = Taught("product", "Paging")

SHARING = "Kwon et al., 2023, arXiv:2309.06180, section 4.4 (blocks shared between requests)"
PREEMPTION = "Kwon et al., 2023, arXiv:2309.06180, section 4.5 (swapping and recomputation)"

# --- a shared beginning --------------------------------------------------------------------------


def _draw_shared(rng: random.Random) -> Draw:
    block = rng.choice((16, 32))
    p = drawn(
        block=block,
        requests=rng.randrange(11, 30),
        shared=block * rng.randrange(21, 40) + block // 2 + rng.randrange(1, 4),
        own=block * rng.randrange(5, 9) + block // 2 + rng.randrange(1, 4),
    )
    if p.own == _derive_shared(p).value:  # the answer must not stand in its question
        p.own += 1
    return p


def _up(tokens: int, block: int) -> int:
    return -(-tokens // block)


def _derive_shared(p: Draw) -> Derivation:
    whole, rest = divmod(p.shared, p.block)
    return Derivation(
        value=kv_paging.shared_prefix_blocks(
            requests=p.requests, shared_tokens=p.shared, own_tokens=p.own, block_tokens=p.block
        ),
        formula="⌊shared / block⌋ + requests × ⌈(rest of shared + own) / block⌉",
        substitution=f"{whole} + {p.requests} × ceil(({rest} + {p.own}) / {p.block})",
        source=SHARING,
    )


def _count_shared(p: Draw) -> float:
    pool = SharedBlocks(num_blocks=2000, block_tokens=p.block)
    for request in range(p.requests):
        pool.admit(str(request), [0] * p.shared + [1 + request] * p.own)
    return float(pool.used_blocks)


SHARED = Drill(
    key="kv-shared-prefix",
    taught=TAUGHT,
    title="One beginning for many",
    unit="",
    whole="exact",
    target_s=110,
    draw=_draw_shared,
    small=lambda rng: drawn(block=4, requests=rng.choice((3, 4)), shared=rng.choice((18, 23)), own=rng.choice((7, 10))),
    prompt=lambda p: (
        f"{p.requests} requests run at once. All begin with the same {p.shared:,} tokens and go on with {p.own} tokens"
        f" of their own. Blocks hold {p.block} tokens, and only a block whose tokens are all the same is shared. How"
        " many blocks are in use?"
    ),
    derive=_derive_shared,
    count=_count_shared,
    prerequisites=("kv-paged-blocks",),
    slips=(
        Slip("nothing-shared", lambda p: p.requests * _up(p.shared + p.own, p.block))
        | "You gave every request its own copy of the beginning. Its whole blocks are held once.",
        Slip("one-request", lambda p: _up(p.shared + p.own, p.block))
        | "That is one request. The others bring blocks of their own.",
        Slip("shared-only", lambda p: _up(p.shared, p.block))
        | "Those are the blocks of the beginning. Each request goes on.",
        Slip("tokens", lambda p: p.shared + p.requests * p.own) | "Those are tokens. How many fit into a block?",
    ),
)

# --- several answers to one prompt ---------------------------------------------------------------


def _draw_branches(rng: random.Random) -> Draw:
    block = rng.choice((16, 32))
    return drawn(
        block=block,
        branches=rng.choice((3, 5, 6, 7)),
        prompt=block * rng.randrange(17, 41) + rng.randrange(3, 9),
        answer=block * rng.randrange(3, 8) + rng.randrange(0, 5),
        per_token=rng.choice((96, 112, 160)) * KiB,
    )


def _saved(p: Draw, *, shared: int, own: int) -> float:
    """Bytes saved if `shared` blocks are held once and each branch adds `own`."""
    alone = p.branches * _up(p.prompt + p.answer, p.block)
    return float((alone - shared - p.branches * own) * p.block * p.per_token)


def _derive_branches(p: Draw) -> Derivation:
    whole, rest = divmod(p.prompt, p.block)
    together = kv_paging.shared_prefix_blocks(
        requests=p.branches, shared_tokens=p.prompt, own_tokens=p.answer, block_tokens=p.block
    )
    alone = p.branches * kv_paging.blocks(tokens=p.prompt + p.answer, block_tokens=p.block)
    return Derivation(
        value=(alone - together) * p.block * p.per_token,
        formula="(answers × ⌈(prompt + answer) / block⌉ − blocks with sharing) × block × bytes per token",
        substitution=(
            f"({p.branches} × ceil(({p.prompt} + {p.answer}) / {p.block}) − ({whole} + {p.branches} × ceil(({rest} +"
            f" {p.answer}) / {p.block}))) × {p.block} × {p.per_token}"
        ),
        source=SHARING,
    )


def _count_branches(p: Draw) -> float:
    """Let the branches write in turn, once from a shared prompt and once each from its own."""
    used = []
    for shares in (True, False):
        pool = SharedBlocks(num_blocks=4000, block_tokens=p.block, keeps_prefixes=False)
        pool.admit("0", [0] * p.prompt)
        for branch in range(1, p.branches):
            if shares:
                pool.fork("0", str(branch))
            else:
                pool.admit(str(branch), [0] * p.prompt)
        for token in range(p.answer):
            for branch in range(p.branches):
                pool.append(str(branch), 999 * branch + token)
        used.append(pool.used_blocks)
    return float((used[1] - used[0]) * p.block * p.per_token)


BRANCHES = Drill(
    key="kv-branches-saved",
    taught=TAUGHT,
    title="Several answers, one prompt",
    unit="B",
    capacity=True,
    target_s=140,
    draw=_draw_branches,
    small=lambda rng: drawn(
        block=4, branches=rng.choice((3, 5)), prompt=rng.choice((21, 26)), answer=rng.choice((7, 9)), per_token=1
    ),
    prompt=lambda p: (
        f"A prompt of {p.prompt:,} tokens gets {p.branches} sampled answers of {p.answer} tokens each. A token costs"
        f" {p.per_token:,} bytes, blocks hold {p.block} tokens, and a block is copied when a request writes into one"
        " that others use. At the end of all answers, how many bytes does this hold less than separate requests would?"
    ),
    derive=_derive_branches,
    count=_count_branches,
    prerequisites=("kv-shared-prefix",),
    slips=(
        Slip("all-saved", lambda p: _saved(p, shared=0, own=0) - p.per_token * p.block * _up(p.answer, p.block))
        | "You counted the answers as shared, too. They differ.",
        Slip("one-prompt", lambda p: float(p.prompt // p.block * p.block * p.per_token))
        | "That is one prompt. How many copies of it are not made?",
        Slip("as-many-as-answers", lambda p: float(p.branches * (p.prompt // p.block) * p.block * p.per_token))
        | "You saved a prompt for every answer. One of them has to be there.",
        Slip("blocks-as-tokens", lambda p: _derive_branches(p).value / p.block)
        | "You counted blocks as if each held one token.",
    ),
)

# --- compute again, or fetch ---------------------------------------------------------------------


def _made(p: Draw, **changes: float) -> float:
    """Bytes of cache that a prefill makes in a second."""
    n = vars(p) | {"both": 2, "size": 2} | changes
    return float(n["both"] * n["layers"] * n["kv_heads"] * n["head_dim"] * n["size"] * n["rate"])


def _count_rate(p: Draw) -> float:
    """One second: every token leaves a key and a value of every KV head in every layer, number by number."""
    made = 0
    for _ in range(p.rate):
        for _ in range(p.layers):
            for _ in range(p.kv_heads):
                for _ in ("key", "value"):
                    made += sum(2 for _ in range(p.head_dim))
    return float(made)


RATE = Drill(
    key="kv-swap-or-recompute",
    taught=TAUGHT,
    title="The link that is worth it",
    unit="B/s",
    target_s=100,
    draw=lambda rng: drawn(
        layers=rng.choice((28, 32, 48, 64, 80)),
        kv_heads=rng.choice((4, 8)),
        head_dim=rng.choice((96, 128)),
        rate=rng.randrange(4_000, 30_000, 500),
        group=rng.choice((3, 5, 7)),
    ),
    small=lambda rng: drawn(layers=rng.choice((3, 5)), kv_heads=4, head_dim=6, rate=rng.choice((7, 11)), group=3),
    prompt=lambda p: (
        f"A model has {p.layers} layers with {p.kv_heads * p.group} query heads and {p.kv_heads} KV heads,"
        f" {p.head_dim} wide, and keeps its cache in 16 bits. Its server prefills {p.rate:,} tokens/s. A preempted"
        " request's cache lies in host memory. How fast must the link be so that fetching a long cache takes no longer"
        " than computing it again? (One way; nothing else to wait for.)"
    ),
    derive=lambda p: Derivation(
        value=kv_paging.break_even_bytes_per_s(
            cache_bytes_per_token=2 * p.layers * p.kv_heads * p.head_dim * 2, prefill_tokens_per_s=p.rate
        ),
        formula="2 × layers × KV heads × head dim × bytes × prefill tokens/s",
        substitution=f"2 × {p.layers} × {p.kv_heads} × {p.head_dim} × 2 × {p.rate}",
        source=PREEMPTION,
    ),
    count=_count_rate,
    prerequisites=("kv-bytes-per-token",),
    slips=(
        Slip("query-heads", lambda p: _made(p, kv_heads=p.kv_heads * p.group))
        | "You cached every query head. They share the KV heads.",
        Slip("keys-only", lambda p: _made(p, both=1)) | "Keys are kept, and something beside them.",
        Slip("one-layer", lambda p: _made(p, layers=1)) | "That is one layer. Each layer keeps its own cache.",
        Slip("bits", lambda p: _made(p, size=16)) | "You counted bits. The link's rate is asked in bytes.",
        Slip("one-token", lambda p: _made(p, rate=1))
        | "Those are the bytes of one token. How many tokens does the server compute in a second?",
    ),
)

# --- a slower tier -------------------------------------------------------------------------------


def _draw_tier(rng: random.Random) -> Draw:
    per_token = rng.choice((96, 128, 160, 320)) * KiB
    rate = rng.randrange(6_000, 26_000, 500)
    share = rng.randrange(12, 29) / 100  # of the link's time in the prefill's
    return drawn(
        per_token=per_token,
        rate=rate,
        link=round(per_token * rate / share / GB, 1) * GB,
        start_ms=rng.choice((2, 4, 6, 12, 20)),
    )


def _break_even(p: Draw, *, fetch: float = 1, start_ms: float | None = None) -> float:
    start = p.start_ms if start_ms is None else start_ms
    return float(start * ms / (1 / p.rate - fetch * p.per_token / p.link))


def _count_tier(p: Draw) -> float:
    """Walk from token to token until the fetch, which began late, has caught up; between two tokens, in proportion."""
    computed, fetched, tokens = 0.0, p.start_ms * ms, 0
    while computed + 1 / p.rate < fetched + p.per_token / p.link:
        computed, fetched, tokens = computed + 1 / p.rate, fetched + p.per_token / p.link, tokens + 1
    return float(tokens + (fetched - computed) / (1 / p.rate - p.per_token / p.link))


TIER = Drill(
    key="kv-offload-break-even",
    taught=TAUGHT,
    title="From which length fetching pays",
    unit="token",
    target_s=130,
    draw=_draw_tier,
    small=lambda rng: drawn(per_token=4, rate=rng.choice((500, 250)), link=8000.0, start_ms=rng.choice((600, 450))),
    prompt=lambda p: (
        f"A finished conversation's cache lies on a disk that answers after {p.start_ms} ms and then delivers"
        f" {p.link / GB:g} GB/s. A token's cache has {p.per_token:,} bytes; computing it again goes at {p.rate:,}"
        " tokens/s. From how many tokens on is fetching quicker?"
    ),
    derive=lambda p: Derivation(
        value=kv_paging.shortest_worth_fetching(
            cache_bytes_per_token=p.per_token,
            prefill_tokens_per_s=p.rate,
            bytes_per_s_one_way=p.link,
            latency_s=p.start_ms * ms,
        ),
        formula="start-up / (1 / prefill rate − bytes per token / bandwidth)",
        substitution=f"({p.start_ms} / 1000) / (1 / {p.rate} − {p.per_token} / {p.link:.0f})",
        source="Sheng et al., FlexGen, 2023, arXiv:2303.06865 (offloading the cache), and the two times set equal",
    ),
    count=_count_tier,
    prerequisites=("kv-swap-or-recompute",),
    slips=(
        Slip("no-transfer", lambda p: _break_even(p, fetch=0))
        | "You let the bytes arrive in no time. Each token that is fetched takes a little, too.",
        Slip("no-prefill", lambda p: p.start_ms * ms * p.link / p.per_token)
        | "Those would arrive while the disk is waited for. What is fetching compared with?",
        Slip("added", lambda p: _break_even(p, fetch=-1))
        | "You added the two times of a token. What is won per token is their difference.",
        Slip("there-and-back", lambda p: _break_even(p, start_ms=2 * p.start_ms))
        | "You waited for the disk twice. The cache comes one way.",
    ),
)

DRILLS = (SHARED, BRANCHES, RATE, TIER)
