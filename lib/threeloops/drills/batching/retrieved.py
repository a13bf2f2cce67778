"""A drill on answers from documents: what is searched, scored and read before the first token."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.product_loop.operating import retrieval
from threeloops.units import ms, us

TAUGHT = Taught("product", "What a request goes through")
PER_MS = round(ms / us)  # microseconds in a millisecond


def _draw_retrieved(rng: random.Random) -> Draw:
    return drawn(
        embed_ms=rng.randrange(6, 16),
        search_ms=rng.randrange(9, 35),
        found=rng.choice((50, 75, 100, 150, 200)),
        at_once=rng.choice((16, 24, 32, 48)),
        rerank_ms=rng.randrange(14, 37),
        passages=rng.randrange(5, 13),
        passage=rng.randrange(260, 620, 20),
        question=rng.randrange(40, 190, 10),
        token_us=rng.randrange(27, 62),
    )


def _ttft(p: Draw, *, at_once: int = 0, passages: int | None = None) -> float:
    return retrieval.retrieved_ttft_s(
        embed_s=p.embed_ms * ms,
        search_s=p.search_ms * ms,
        found=p.found,
        reranked_at_once=at_once or p.at_once,
        rerank_s=p.rerank_ms * ms,
        prompt_tokens=(p.passages if passages is None else passages) * p.passage + p.question,
        token_s=p.token_us * us,
    )


def _count_retrieved(p: Draw) -> float:
    """A clock in microseconds: passages are taken from the heap by the reranker, then tokens are read one by one."""
    now = PER_MS * (p.embed_ms + p.search_ms)
    heap = list(range(p.found))
    while heap:
        del heap[: p.at_once]
        now += PER_MS * p.rerank_ms
    for length in (*[p.passage] * p.passages, p.question):
        for _token in range(length):
            now += p.token_us
    return float(now * us)


RETRIEVED = Drill(
    key="serving-retrieved-ttft",
    taught=TAUGHT,
    title="An answer that is looked up first",
    unit="s",
    target_s=120,
    draw=_draw_retrieved,
    small=_draw_retrieved,
    prompt=lambda p: (
        f"An assistant answers from documents. Embedding the question takes {p.embed_ms} ms, the search, which finds"
        f" {p.found} passages, {p.search_ms} ms. A reranker scores {p.at_once} passages at a time, {p.rerank_ms} ms a"
        f" batch, full or not. The best {p.passages} passages, {p.passage} tokens each, are put before the question of"
        f" {p.question} tokens; reading takes {p.token_us} µs per token. One stage follows the other, nothing is"
        " cached, and nobody queues. What is the TTFT without the network?"
    ),
    derive=lambda p: Derivation(
        value=_ttft(p),
        formula="embedding + search + ⌈found / at once⌉ × batch + (passages × tokens + question) × time per token",
        substitution=(
            f"({p.embed_ms} + {p.search_ms} + ceil({p.found} / {p.at_once}) × {p.rerank_ms}) / 1000"
            f" + ({p.passages} × {p.passage} + {p.question}) × {p.token_us} / 1000000"
        ),
        source="Lewis et al., 2020, arXiv:2005.11401, section 2; Nogueira and Cho, 2019, arXiv:1901.04085, section 2",
    ),
    count=_count_retrieved,
    slips=(
        Slip("one-batch", lambda p: _ttft(p, at_once=p.found))
        | "You let the reranker take all passages at once. It needs several batches.",
        Slip("one-by-one", lambda p: _ttft(p, at_once=1))
        | "You gave each passage a batch of its own. The reranker scores many at a time.",
        Slip("all-read", lambda p: _ttft(p, passages=p.found))
        | "You put all that was found into the prompt. Only the best are read.",
        Slip("question-only", lambda p: _ttft(p, passages=0))
        | "You read the question alone. The passages stand before it, and prefill reads them, too.",
        Slip("prefill-only", lambda p: (p.passages * p.passage + p.question) * p.token_us * us)
        | "That is prefill. The user waits for embedding, search and reranking before it.",
        Slip("not-reranked", lambda p: _ttft(p) - -(-p.found // p.at_once) * p.rerank_ms * ms)
        | "You left the reranker out. It stands between search and prompt.",
    ),
)

DRILLS = (RETRIEVED,)
