"""Context parallelism: bytes and balance against attention that is really cut over simulated ranks."""

import numpy as np
import pytest

from threeloops.simulate.training_loop.context_ring import pieces, ring_attention, ulysses_attention, undivided
from threeloops.training_loop.parallelism.context_parallel import (
    contiguous_slowdown,
    hiding_tokens,
    ring_traffic,
    ulysses_traffic,
)


def tensors(*, sequence, heads, kv_heads, head_dim):
    generator = np.random.default_rng(sequence)
    return tuple(generator.normal(size=(sequence, count, head_dim)) for count in (heads, kv_heads, kv_heads))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("zigzag", [False, True])
def test_a_ring_attends_like_one_rank_and_sends_what_is_predicted(ranks, zigzag):
    queries, keys, values = tensors(sequence=30 * ranks, heads=6, kv_heads=2, head_dim=4)
    done, everyone = ring_attention(queries, keys, values, ranks=ranks, zigzag=zigzag), np.arange(30 * ranks)
    assert done.output == pytest.approx(undivided(queries, keys, values, rows=everyone, columns=everyone))
    predicted = ring_traffic(tokens_per_rank=30, kv_dim=8, cp=ranks, bytes_per_element=8, bytes_per_gradient=8)
    assert done.sent_bytes == (predicted.forward_bytes,) * ranks
    counted = [sum(step[rank] for step in done.pairs) for rank in range(ranks)]
    # what a causal mask leaves to a run of queries from a to b: b (b + 1) / 2 - a (a + 1) / 2
    seen = [sum(range(30 * rank + 1, 30 * rank + 31)) for rank in range(ranks)]
    assert counted == ([sum(seen) / ranks] * ranks if zigzag else seen)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ulysses_attends_like_one_rank_and_sends_what_is_predicted(ranks):
    queries, keys, values = tensors(sequence=12 * ranks, heads=12, kv_heads=4, head_dim=3)
    done, everyone = ulysses_attention(queries, keys, values, ranks=ranks), np.arange(12 * ranks)
    assert done.output == pytest.approx(undivided(queries, keys, values, rows=everyone, columns=everyone))
    predicted = ulysses_traffic(tokens_per_rank=12, query_dim=36, kv_dim=12, cp=ranks, bytes_per_element=8)
    assert done.sent_bytes == (predicted.forward_bytes,) * ranks


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_contiguous_causal_ring_waits_for_its_last_rank(ranks):
    queries, keys, values = tensors(sequence=120 * ranks, heads=1, kv_heads=1, head_dim=1)

    def steps(zigzag):
        return sum(max(step) for step in ring_attention(queries, keys, values, ranks=ranks, zigzag=zigzag).pairs)

    even = 120 * ranks * (120 * ranks + 1) / 2 / ranks
    # the diagonal is 1/120 of a block
    assert steps(False) / even == pytest.approx(contiguous_slowdown(cp=ranks), rel=0.01)
    assert steps(True) / even == pytest.approx(1, rel=0.01)


def test_zigzag_deals_out_every_token_once():
    assert sorted(token for piece in pieces(sequence=24, ranks=3, zigzag=True) for token in piece.tolist()) == list(
        range(24)
    )


def test_ring_and_ulysses_meet_where_ranks_outnumber_the_query_heads_of_a_kv_head():
    # forward: 2 (n - 1) kv against (n - 1)/n (2 q + 2 kv): equal at n = q/kv + 1
    def forward(cp):
        ring = ring_traffic(tokens_per_rank=100, kv_dim=8, cp=cp, bytes_per_element=2, bytes_per_gradient=2)
        return (
            ring.forward_bytes
            / ulysses_traffic(tokens_per_rank=100, query_dim=24, kv_dim=8, cp=cp, bytes_per_element=2).forward_bytes
        )

    assert (forward(2), forward(4), forward(8)) == (0.5, 1.0, 2.0)


def test_one_rank_sends_nothing():
    assert ring_traffic(tokens_per_rank=9, kv_dim=9, cp=1, bytes_per_element=2, bytes_per_gradient=4).total_bytes == 0
    assert ulysses_traffic(tokens_per_rank=9, query_dim=9, kv_dim=9, cp=1, bytes_per_element=2).total_bytes == 0


def test_ring_attention_papers_rule():
    # Liu et al., 2023, section 3.1: a block of at least F/B tokens; table 2: A100, NVLink, 312e12 / 300e9 = 1.04
    # thousand (printed 1.0e3)
    tokens = hiding_tokens(
        flops_per_s=312e12, bytes_per_s_one_way=300e9, query_dim=4096, kv_dim=4096, bytes_per_element=2
    )
    assert tokens == pytest.approx(1040)
