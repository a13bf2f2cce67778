"""Drills on experts at scale: bytes of the exchange, copies of popular experts, halves that hide each other, caches and
pools of a model whose experts lie on many GPUs.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.searches import holds_up_to
from threeloops.models.architecture import LatentAttention
from threeloops.product_loop import kv_cache
from threeloops.product_loop.experts import exchange_bytes, pool_ratio, redundant_experts, shared_context, two_batches
from threeloops.units import GB, thousand, us

TAUGHT = Taught("product", "Experts at scale")
DEEPEP = "DeepSeek-AI, DeepEP, docs/legacy.md, 2025 (low-latency kernels: FP8 there, BF16 back)"
DAY_6 = "DeepSeek-AI, open-infra-index, day 6, 2025"

# --- what an exchange sends ----------------------------------------------------------------------


def _vectors(p: Draw) -> tuple[float, float]:
    return (
        exchange_bytes.vector_bytes(p.hidden, bits=8, elements_per_scale=128, scale_bytes=4),
        exchange_bytes.vector_bytes(p.hidden, bits=16),
    )


def _sent(p: Draw, *, size: float, copies: float | None = None) -> float:
    there = exchange_bytes.choice_copies(top_k=p.top_k, ranks=8 * p.nodes, ranks_per_node=8).network
    return float(p.tokens * (there if copies is None else copies) * size)


def _count_sent(p: Draw) -> float:
    """Every token asks each of its experts; of all GPUs that could hold one, those of other nodes get a message."""
    total, gpus = 0.0, 8 * p.nodes
    for _token in range(p.tokens):
        for _choice in range(p.top_k):
            for gpu in range(gpus):
                if gpu // 8:
                    message = sum(1 + (4 if element % 128 == 0 else 0) for element in range(p.hidden))
                    answer = sum(2 for _element in range(p.hidden))
                    total += (message + answer) / gpus
    return total


SENT = Drill(
    key="experts-exchange-bytes",
    taught=TAUGHT,
    title="There in FP8, back in BF16",
    unit="B",
    target_s=120,
    draw=lambda rng: drawn(
        tokens=rng.choice((48, 64, 96, 112, 128, 160)),
        top_k=rng.choice((4, 6, 8)),
        hidden=rng.choice((4096, 5120, 6144, 7168)),
        nodes=rng.choice((3, 4, 5, 6)),
    ),
    small=lambda rng: drawn(
        tokens=rng.choice((3, 4, 6)), top_k=rng.choice((2, 3)), hidden=rng.choice((128, 256)), nodes=3
    ),
    prompt=lambda p: (
        f"Experts lie evenly on {p.nodes} nodes of 8 GPUs. A GPU has {p.tokens} tokens, each with {p.top_k} experts and"
        f" a vector of {p.hidden} numbers. Dispatch sends a copy for each expert in FP8 with a 4-byte scale for every"
        " 128 numbers; combine brings each expert's result back in BF16. Any expert is as likely as any other, and what"
        " stays in the node does not use the network. How many bytes of one layer, out and back together, cross this"
        " GPU's network card for its own tokens?"
    ),
    derive=lambda p: Derivation(
        value=_sent(p, size=sum(_vectors(p))),
        formula="tokens × experts per token × (1 − 1 / nodes) × (hidden × (1 + 4 / 128) + 2 × hidden)",
        substitution=f"{p.tokens} × {p.top_k} × (1 − 1 / {p.nodes}) × ({p.hidden} × (1 + 4 / 128) + 2 × {p.hidden})",
        source=DEEPEP,
    ),
    count=_count_sent,
    slips=(
        Slip("all-leave", lambda p: _sent(p, size=sum(_vectors(p)), copies=p.top_k))
        | "You sent every copy over the network. Some experts lie in the token's own node.",
        Slip("one-copy", lambda p: _sent(p, size=sum(_vectors(p)), copies=1 - 1 / p.nodes))
        | "You sent a token once. Each of its experts gets a copy.",
        Slip("there-only", lambda p: _sent(p, size=_vectors(p)[0]))
        | "You counted the way there. The results come back.",
        Slip("wide-both-ways", lambda p: _sent(p, size=2 * _vectors(p)[1]))
        | "You took two bytes a number both ways. One of the two is narrower.",
    ),
)

# --- copies of popular experts -------------------------------------------------------------------


def _draw_copied(rng: random.Random) -> Draw:
    first = rng.randrange(560, 1180, 20)
    return drawn(
        first=first,
        second=round(first * rng.choice((0.55, 0.6, 0.65)) / 10) * 10,
        third=round(first * rng.choice((0.17, 0.19, 0.21)) / 10) * 10,
        fourth=round(first * rng.choice((0.1, 0.12)) / 10) * 10,
        extra=rng.choice((3, 4)),
    )


def _loads(p: Draw) -> list[float]:
    return [p.first, p.second, p.third, p.fourth]


def _given_out(p: Draw) -> list[int]:
    copies = [1, 1, 1, 1]
    for _ in range(p.extra):
        copies[max(range(4), key=lambda expert: _loads(p)[expert] / copies[expert])] += 1
    return copies


def _count_copied(p: Draw) -> float:
    """Deal all tokens out, one by one, over the copies of their expert."""
    held: list[int] = []
    for load, copies in zip(_loads(p), _given_out(p), strict=True):
        mine = [0] * copies
        for token in range(60 * int(load)):  # in sixtieths, as an even share need not be whole
            mine[token % copies] += 1
        held += mine
    return max(held) / 60


COPIED = Drill(
    key="experts-busiest-copy",
    taught=TAUGHT,
    title="Who gets the next copy?",
    unit="token",
    target_s=100,
    draw=_draw_copied,
    small=_draw_copied,
    prompt=lambda p: (
        f"Four experts get {p.first}, {p.second}, {p.third} and {p.fourth} tokens of a batch. There is memory for"
        f" {p.extra} further copies, and the copies of an expert share its tokens evenly. Each lies on a GPU of its"
        " own. Given out as well as can be, how many tokens has the busiest copy?"
    ),
    derive=lambda p: Derivation(
        value=redundant_experts.busiest_copy(_loads(p), slots=4 + p.extra),
        formula="the next copy goes to the expert with the most tokens a copy; at the end, the largest load / copies",
        substitution="max("
        + ", ".join(f"{load} / {copies}" for load, copies in zip(_loads(p), _given_out(p), strict=True))
        + ")",
        source="DeepSeek-V3, 2024, arXiv:2412.19437, section 3.4.1 (redundant experts); DeepSeek-AI, EPLB, 2025",
    ),
    count=_count_copied,
    slips=(
        Slip("none", lambda p: p.first) | "You gave out no copy.",
        Slip("all-to-the-first", lambda p: p.second)
        | "You gave every copy to the most popular expert. Who is the busiest then?",
        Slip("even", lambda p: sum(_loads(p)) / (4 + p.extra))
        | "You spread all tokens over all copies. A copy serves only its own expert.",
        Slip("new-copies-only", lambda p: p.first / (_given_out(p)[0] - 1))
        | "You dealt the popular expert's tokens over its new copies. The first copy keeps a share.",
    ),
)

# --- two halves that hide each other -------------------------------------------------------------


def _draw_halves(rng: random.Random) -> Draw:
    return drawn(
        attention=rng.randrange(240, 420, 20),
        dispatch=rng.randrange(60, 110, 10),
        experts=rng.randrange(110, 200, 10),
        combine=rng.randrange(110, 190, 10),
        layers=rng.choice((40, 58, 61)),
    )


def _half(p: Draw) -> two_batches.LayerTimes:
    return two_batches.LayerTimes(
        attention_s=p.attention * us,
        dispatch_s=p.dispatch * us,
        experts_s=p.experts * us,
        combine_s=p.combine * us,
    )


def _count_halves(p: Draw) -> float:
    """Layer by layer the GPU computes both halves' stages, and never waits: the other half is always there."""
    clock = 0.0
    for _layer in range(p.layers):
        for _of_both in range(2):
            clock += p.attention * us
            clock += p.experts * us
    return clock


HALVES = Drill(
    key="experts-two-halves",
    taught=TAUGHT,
    title="Two halves of a batch",
    unit="s",
    target_s=110,
    draw=_draw_halves,
    small=_draw_halves,
    prompt=lambda p: (
        f"A decode batch is cut into halves that hide each other's exchange. In each of {p.layers} layers, a half takes"
        f" {p.attention} µs of attention, {p.dispatch} µs of dispatch, {p.experts} µs of experts and {p.combine} µs of"
        " combine; GPU and network each serve one half at a time. How long does a step of the whole batch take at"
        " least?"
    ),
    derive=lambda p: Derivation(
        value=p.layers * two_batches.hidden_s(_half(p)),
        formula="layers × max(2 × computing, 2 × exchanging, computing + exchanging)",
        substitution=(
            f"{p.layers} × max(2 × ({p.attention} + {p.experts}), 2 × ({p.dispatch} + {p.combine}), {p.attention} +"
            f" {p.dispatch} + {p.experts} + {p.combine}) / 1000000"
        ),
        source=DAY_6 + " (two micro-batches)",
    ),
    count=_count_halves,
    slips=(
        Slip("in-turn", lambda p: 2 * p.layers * two_batches.in_turn_s(_half(p)))
        | "You did one thing after the other. While one half is on the network, the other computes.",
        Slip("one-half", lambda p: p.layers * _half(p).computing_s)
        | "You computed one half. The other half needs the GPU as well.",
        Slip("network-decides", lambda p: 2 * p.layers * _half(p).exchanging_s)
        | "You took the network as the bottleneck. Which of the two is busier?",
        Slip("one-layer", lambda p: two_batches.hidden_s(_half(p)))
        | "You timed one layer. A step goes through all of them.",
    ),
)

# --- latents under two layouts -------------------------------------------------------------------


def _request_bytes(p: Draw, *, rank: int | None = None) -> float:
    attention = LatentAttention(
        num_heads=128,
        kv_rank=p.rank if rank is None else rank,
        q_rank=1536,
        nope_head_dim=128,
        rope_head_dim=p.rotated,
        value_head_dim=128,
    )
    return float(p.layers * p.context * kv_cache.layer_bytes_per_token(attention, bytes_per_element=2))


def _count_seats(p: Draw) -> float:
    """Request after request takes the emptiest GPU, layer by layer, until one finds no room."""
    room, seated = [float(p.free * GB)] * p.gpus, 0
    while True:
        place = max(range(p.gpus), key=lambda gpu: room[gpu])
        need = 0.0
        for _layer in range(p.layers):
            need += p.context * (p.rank + p.rotated) * 2
        if need > room[place]:
            return float(seated)
        room[place] -= need
        seated += 1


SEATS = Drill(
    key="experts-latent-seats",
    taught=TAUGHT,
    title="Eight caches instead of eight copies",
    unit="",
    whole="exact",
    target_s=130,
    draw=lambda rng: drawn(
        rank=rng.choice((256, 384, 512)),
        rotated=64,
        layers=rng.choice((40, 48, 61)),
        context=rng.choice((3000, 5000, 6000, 9000)),
        free=rng.randrange(17, 48, 2),
        gpus=8,
    ),
    small=lambda rng: drawn(
        rank=rng.choice((256, 512)),
        rotated=64,
        layers=2,
        context=rng.choice((2_000_000, 3_000_000)),
        free=rng.randrange(30, 60),
        gpus=8,
    ),
    prompt=lambda p: (
        f"A model of {p.layers} layers caches a latent of {p.rank} numbers and {p.rotated} with position for each token"
        f" and layer, in BF16. It runs on {p.gpus} GPUs with data-parallel attention: each GPU serves its own requests."
        f" Each has {p.free} GB free for caches, and every request grows to {p.context:,} tokens. How many requests fit"
        f" on the {p.gpus} GPUs together?"
    ),
    derive=lambda p: Derivation(
        value=float(p.gpus * int(p.free * GB // _request_bytes(p))),
        formula="GPUs × ⌊free / (tokens × layers × (latent + with position) × 2)⌋",
        substitution=(
            f"{p.gpus} × floor({p.free} × 1000000000 / ({p.context} × {p.layers} × ({p.rank} + {p.rotated}) × 2))"
        ),
        source="DeepSeek-V2, 2024, arXiv:2405.04434, section 2.1 (latents); " + DAY_6 + " (attention data-parallel)",
    ),
    count=_count_seats,
    slips=(
        Slip("copies", lambda p: p.free * GB // _request_bytes(p))
        | "You seated as many as one GPU holds. That is tensor parallelism, where every GPU has a copy of all.",
        Slip("keys-and-values", lambda p: p.gpus * (p.free * GB // (2 * _request_bytes(p))))
        | "You cached keys and values. One latent stands for both.",
        Slip("one-byte", lambda p: p.gpus * (p.free * GB // (_request_bytes(p) / 2)))
        | "You took a byte a number. BF16 has two.",
        Slip(
            "without-position", lambda p: p.gpus * (p.free * GB // (_request_bytes(p) * p.rank / (p.rank + p.rotated)))
        )
        | "You left out the numbers that carry the position. They are cached, too.",
    ),
)

# --- what a shared context exchanges -------------------------------------------------------------


def _exchanged(
    p: Draw, *, query: int = 576, value: int = 512, heads: int | None = None, dcp: int | None = None
) -> float:
    one = shared_context.context_exchange_bytes(
        heads_per_rank=p.heads // p.tp if heads is None else heads,
        query_width=query,
        value_width=value,
        dcp=p.dcp if dcp is None else dcp,
        lse_bytes=0,
    )
    return float(p.batch * p.layers * one)


def _count_shared(p: Draw) -> float:
    """Number by number: queries to every other GPU of the group, and a result of every head of theirs."""
    sent = 0
    for _request in range(p.batch):
        for _layer in range(p.layers):
            for _other in range(1, p.dcp):
                for _head in range(p.heads // p.tp):
                    sent += sum(2 for _number in range(576)) + sum(2 for _number in range(512))
    return float(sent)


SHARED = Drill(
    key="experts-shared-context",
    taught=TAUGHT,
    title="The price of one cache for all",
    unit="B",
    target_s=140,
    draw=lambda rng: drawn(
        tp=8,
        heads=rng.choice((64, 96, 128)),
        batch=rng.choice((24, 32, 40, 48, 64)),
        layers=rng.choice((40, 48, 61)),
        dcp=rng.choice((4, 8)),
    ),
    small=lambda rng: drawn(tp=2, heads=rng.choice((4, 6)), batch=rng.choice((2, 3)), layers=2, dcp=2),
    prompt=lambda p: (
        f"A model with absorbed latent attention has {p.heads} heads and {p.layers} layers and runs on {p.tp} GPUs,"
        f" tensor-parallel. Decode context parallelism of {p.dcp} splits its latents by tokens: in every layer each GPU"
        f" sends the queries of its heads (576 numbers each) to the {p.dcp - 1} others of its group, and to each of"
        " them the results of that one's heads (512 numbers each), all in BF16. How many bytes does one GPU send for a"
        f" decode step of {p.batch} requests?"
    ),
    derive=lambda p: Derivation(
        value=_exchanged(p),
        formula="requests × layers × (group − 1) × heads / GPUs × (576 + 512) × 2",
        substitution=f"{p.batch} × {p.layers} × ({p.dcp} − 1) × {p.heads} / {p.tp} × (576 + 512) × 2",
        source="vLLM, docs/serving/context_parallel_deployment.md, 2026 (decode context parallel)",
    ),
    count=_count_shared,
    slips=(
        Slip("all-heads", lambda p: _exchanged(p, heads=p.heads))
        | "You sent the queries of all heads. A GPU has its share of them.",
        Slip("with-itself", lambda p: _exchanged(p, dcp=p.dcp + 1))
        | "You sent to the whole group. A GPU sends nothing to itself.",
        Slip("queries-only", lambda p: _exchanged(p, value=1) * 576 / 577)
        | "You sent queries. Results come back, too.",
        Slip("one-layer", lambda p: _exchanged(p) / p.layers) | "You counted one layer. Every layer attends.",
    ),
)

# --- nodes of two pools --------------------------------------------------------------------------


def _draw_pools(rng: random.Random) -> Draw:
    return drawn(
        nodes=rng.choice((24, 30, 36, 42)),
        prompt=rng.choice((1500, 2500, 3500, 6000)),
        answer=rng.choice((250, 350, 600, 900)),
        read=rng.randrange(40, 75, 5),
        write=rng.randrange(12, 24, 2),
    )


def _needed(p: Draw, *, prompt: float | None = None, answer: float | None = None, turned: bool = False) -> float:
    read, write = p.read * thousand, p.write * thousand
    rates = pool_ratio.NodeRates(
        prefill_tokens_per_s=write if turned else read, decode_tokens_per_s=read if turned else write
    )
    needed = pool_ratio.nodes_needed(
        rates,
        input_tokens_per_s=p.prompt if prompt is None else prompt,
        output_tokens_per_s=p.answer if answer is None else answer,
    )
    return float(p.nodes * needed.prefill_share)


def _count_pools(p: Draw) -> float:
    """Move the cut until both pools let as many requests through."""

    def reads_less(cut: float) -> bool:
        return bool(cut * p.read / p.prompt < (p.nodes - cut) * p.write / p.answer)

    return holds_up_to(reads_less, high=p.nodes)


POOLS = Drill(
    key="experts-pool-split",
    taught=TAUGHT,
    title="How many nodes read, how many write?",
    unit="",
    target_s=110,
    draw=_draw_pools,
    small=_draw_pools,
    prompt=lambda p: (
        f"A fleet of {p.nodes} nodes is split into a pool for prefill and one for decode. A request has"
        f" {p.prompt:,} prompt tokens, none of them cached, and {p.answer} output tokens. A busy node reads"
        f" {p.read},000 prompt tokens per second or makes {p.write},000 output tokens per second. With how many nodes"
        " for prefill does neither pool wait for the other? (A fraction is welcome: it is a mean.)"
    ),
    derive=lambda p: Derivation(
        value=_needed(p),
        formula="nodes × (prompt / prefill rate) / (prompt / prefill rate + answer / decode rate)",
        substitution=(
            f"{p.nodes} × ({p.prompt} / {p.read}000) / ({p.prompt} / {p.read}000 + {p.answer} / {p.write}000)"
        ),
        source=DAY_6 + " (rates of a node, and the nodes of a day)",
    ),
    count=_count_pools,
    slips=(
        Slip("by-tokens", lambda p: p.nodes * p.prompt / (p.prompt + p.answer))
        | "You split by tokens. A node reads more tokens per second than it makes.",
        Slip("by-rates", lambda p: p.nodes * p.read / (p.read + p.write))
        | "You split by the rates alone. What does a request bring of each?",
        Slip("the-other-pool", lambda p: p.nodes - _needed(p)) | "Those are the nodes that decode.",
        Slip("rates-turned", lambda p: _needed(p, turned=True)) | "You gave each pool the other one's rate.",
    ),
)

DRILLS = (SENT, COPIED, HALVES, SEATS, SHARED, POOLS)
