"""Attention's traffic and extra memory: formulas against a machine with a bounded fast memory, tensors, and published
numbers.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from threeloops.inner_loop import attention_io
from threeloops.measure.training_loop.saved_tensors import saved_bytes
from threeloops.operations import kernels
from threeloops.simulate.inner_loop import tiled_attention
from threeloops.simulate.inner_loop.bounded_attention import FastMemory, keys_outside, queries_outside


def heads(tokens: int, width: int, *, context: int | None = None, dtype: type = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(seed=tokens)
    return [
        rng.standard_normal((length, width)).astype(dtype) for length in (tokens, context or tokens, context or tokens)
    ]


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    return F.scaled_dot_product_attention(*(torch.from_numpy(array)[None] for array in (q, k, v)))[0].numpy()


def test_score_matrix_of_8192_tokens_is_128_mib_per_head_in_bf16() -> None:
    # 8192^2 * 2 = 134,217,728 = 128 MiB; FlashAttention keeps 8192 * 4 = 32 KiB instead.
    assert (
        attention_io.score_matrix_bytes(
            batch=1, num_heads=1, query_tokens=8192, context_tokens=8192, bytes_per_element=2
        )
        == 128 * 1024**2
    )
    assert attention_io.row_statistics_bytes(batch=1, num_heads=1, query_tokens=8192) == 32 * 1024


def test_score_matrix_is_what_torch_allocates() -> None:
    q, k = torch.randn(3, 5, 7, 4), torch.randn(3, 5, 11, 4)
    shape = {"batch": 3, "num_heads": 5, "query_tokens": 7, "context_tokens": 11}
    assert attention_io.score_matrix_bytes(**shape, bytes_per_element=4) == (q @ k.transpose(-2, -1)).nbytes


def test_row_statistics_are_what_torch_keeps_beside_inputs_and_output() -> None:
    q, k, v = (torch.randn(3, 5, 14, 8, requires_grad=True) for _ in range(3))
    kept = saved_bytes(lambda x: F.scaled_dot_product_attention(x, k, v), q)
    assert kept - 4 * q.nbytes == attention_io.row_statistics_bytes(batch=3, num_heads=5, query_tokens=14)


@pytest.mark.parametrize("walk", [queries_outside, keys_outside])
@pytest.mark.parametrize(
    ("tokens", "context", "query_block", "key_block"), [(64, 64, 16, 8), (50, 70, 16, 9), (5, 33, 8, 64)]
)
def test_both_walks_compute_attention(walk, tokens, context, query_block, key_block) -> None:
    q, k, v = heads(tokens, 8, context=context)
    counted = walk(q, k, v, query_block=query_block, key_block=key_block, fast_bytes=10**6)
    np.testing.assert_allclose(counted.output, reference(q, k, v), rtol=2e-5, atol=2e-6)
    assert counted.multiply_adds == tokens * context * 2 * 8


@pytest.mark.parametrize(("tokens", "query_block", "key_block"), [(64, 16, 8), (60, 16, 9), (33, 33, 4)])
def test_traffic_of_the_walk_is_the_kernel_formula(tokens: int, query_block: int, key_block: int) -> None:
    shape = {
        "batch": 1,
        "num_heads": 1,
        "num_kv_heads": 1,
        "head_dim": 8,
        "query_tokens": tokens,
        "context_tokens": tokens,
        "causal": "full",
    }
    work = kernels.attention(**shape, fused=True, query_block=query_block, bytes_per_element=4)
    counted = queries_outside(*heads(tokens, 8), query_block=query_block, key_block=key_block, fast_bytes=10**6)
    assert counted.moved_bytes == work.moved_bytes
    assert 2 * counted.multiply_adds == work.flops


def test_two_simulators_agree() -> None:
    q, k, v = heads(48, 8)
    here = queries_outside(q, k, v, query_block=16, key_block=12, fast_bytes=10**6)
    there = tiled_attention.fused_attention(q[None], k[None], v[None], causal=False, query_block=16, key_block=12)
    assert (here.moved_bytes, here.multiply_adds) == (there.moved_bytes, there.multiply_adds)


@pytest.mark.parametrize("fast_bytes", [3000, 8192, 20_001])
@pytest.mark.parametrize("key_block", [1, 4, 32])
def test_the_largest_block_fits_and_one_more_query_does_not(fast_bytes: int, key_block: int) -> None:
    q, k, v = heads(256, 8)
    rows = attention_io.largest_query_block(fast_bytes=fast_bytes, head_dim=8, key_block=key_block, bytes_per_element=4)
    assert (
        queries_outside(q, k, v, query_block=rows, key_block=key_block, fast_bytes=fast_bytes).peak_fast_bytes
        <= fast_bytes
    )
    if rows < 256:
        with pytest.raises(ValueError, match="use smaller blocks"):
            queries_outside(q, k, v, query_block=rows + 1, key_block=key_block, fast_bytes=fast_bytes)


def moved(tokens: int, head_dim: int, fast_bytes: int, walk=queries_outside, key_block: int = 1) -> int:
    rows = attention_io.largest_query_block(
        fast_bytes=fast_bytes, head_dim=head_dim, key_block=key_block, bytes_per_element=4
    )
    return walk(*heads(tokens, head_dim), query_block=rows, key_block=key_block, fast_bytes=fast_bytes).moved_bytes


def test_counted_traffic_follows_the_law_with_a_constant_near_four() -> None:
    # queries_outside moves 2 N d (N / rows) elements of K and V, and rows = M / (2 d + 3) for blocks of one key: 4
    # N^2 d^2 / M for wide heads.
    for tokens, head_dim, fast_bytes in ((768, 16, 8192), (1536, 16, 16384), (768, 32, 32768)):
        law = attention_io.leading_traffic_bytes(
            tokens=tokens, head_dim=head_dim, fast_bytes=fast_bytes, bytes_per_element=4
        )
        assert 4 < moved(tokens, head_dim, fast_bytes) / law < 6


def test_twice_the_fast_memory_is_half_the_traffic_and_twice_the_tokens_four_times() -> None:
    small, large = moved(768, 16, 8192), moved(768, 16, 16384)
    assert small / large == pytest.approx(2, rel=0.1)
    assert moved(1536, 16, 8192) / small == pytest.approx(4, rel=0.1)


def test_keys_outside_moves_more_than_queries_outside_with_the_same_memory() -> None:
    # The unfinished output is read and written at every visit: three passes per block where the other order has two.
    q, k, v = heads(256, 16)
    blocks = {"query_block": 16, "key_block": 16, "fast_bytes": 10**5}
    keys, queries = keys_outside(q, k, v, **blocks), queries_outside(q, k, v, **blocks)
    # 16 visits of Q, O in, O out (3 * 256 * 16 numbers), maximum and sum in and out (4 * 256); K and V once.
    assert keys.moved_bytes == (16 * (3 * 256 * 16 + 4 * 256) + 2 * 256 * 16) * 4
    assert queries.moved_bytes == (2 * 256 * 16 + 16 * 2 * 256 * 16) * 4


@pytest.mark.parametrize(
    ("tokens", "context", "query_block", "key_block"),
    [(64, 64, 16, 8), (50, 70, 16, 9), (5, 33, 8, 64), (33, 33, 33, 1)],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_orders_move_the_bytes_that_the_walk_counts(tokens, context, query_block, key_block, dtype) -> None:
    q, k, v = heads(tokens, 8, context=context, dtype=dtype)
    blocks = {"query_block": query_block, "key_block": key_block, "fast_bytes": 10**6}
    size = {"query_tokens": tokens, "context_tokens": context, "head_dim": 8, "bytes_per_element": q.itemsize}
    assert queries_outside(q, k, v, **blocks).moved_bytes == attention_io.queries_outside_bytes(
        **size, query_block=query_block
    )
    assert keys_outside(q, k, v, **blocks).moved_bytes == attention_io.keys_outside_bytes(**size, key_block=key_block)


def test_queries_outside_is_attention_with_a_query_block() -> None:
    shape = {"batch": 1, "num_heads": 1, "num_kv_heads": 1, "causal": "full", "fused": True}
    size = {"head_dim": 64, "query_tokens": 1000, "context_tokens": 3000, "query_block": 96, "bytes_per_element": 2}
    assert attention_io.queries_outside_bytes(**size) == kernels.attention(**shape, **size).moved_bytes


def test_the_first_order_with_the_papers_blocks_moves_three_times_four_times_the_law() -> None:
    # Algorithm 1 of arXiv:2205.14135 takes key blocks of M / 4d. Then theorem 2's N d / (M / 4d) visits pass over Q,
    # O in and O out: 4 * 3 N^2 d^2 / M.
    tokens, head_dim, fast_bytes = 2**22, 256, 2**22
    law = attention_io.leading_traffic_bytes(
        tokens=tokens, head_dim=head_dim, fast_bytes=fast_bytes, bytes_per_element=2
    )
    key_block = fast_bytes // 2 // (4 * head_dim)
    size = {"query_tokens": tokens, "context_tokens": tokens, "head_dim": head_dim, "bytes_per_element": 2}
    assert attention_io.keys_outside_bytes(**size, key_block=key_block) / law == pytest.approx(12, rel=0.01)


def test_equal_blocks_cost_the_first_order_half_as_much_more_and_one_visit_costs_both_the_same() -> None:
    size = {"query_tokens": 2**20, "context_tokens": 2**20, "head_dim": 128, "bytes_per_element": 2}
    first, second = (
        attention_io.keys_outside_bytes(**size, key_block=128),
        attention_io.queries_outside_bytes(**size, query_block=128),
    )
    # the statistics: four numbers beside three rows of 128, against two
    assert first / second == pytest.approx(1.5 + 2 / 128, rel=1e-3)
    # All of K and V fast at once: the first order has one visit, and only the unfinished output and the statistics
    # are read for nothing.
    once = attention_io.keys_outside_bytes(**size, key_block=2**20) - attention_io.queries_outside_bytes(
        **size, query_block=2**20
    )
    assert once == 2**20 * (128 + 4) * 2


def test_orders_refuse() -> None:
    size = {"query_tokens": 8, "context_tokens": 8, "head_dim": 4, "bytes_per_element": 2}
    assert attention_io.keys_outside_bytes(**size, key_block=1) > attention_io.keys_outside_bytes(**size, key_block=8)
    with pytest.raises(ValueError, match="key_block=0 must be a whole number of at least 1"):
        attention_io.keys_outside_bytes(**size, key_block=0)
    # a block may be larger than the sequence
    assert attention_io.queries_outside_bytes(**size, query_block=100) == 4 * 8 * 4 * 2
    with pytest.raises(ValueError, match="query_block=1.5 must be a whole number"):
        attention_io.queries_outside_bytes(**size, query_block=1.5)


def test_fast_memory_refuses_what_does_not_fit() -> None:
    fast = FastMemory(64)
    fast.load(np.zeros(8))
    with pytest.raises(ValueError, match="fast_bytes=64 must hold what the walk needs at once, 72 bytes"):
        fast.make(np.zeros(1))
    fits = {"fast_bytes": 4 * (2 * 16 * 8 + 2 * 8 + 16 + 2), "head_dim": 8, "key_block": 16, "bytes_per_element": 4}
    assert attention_io.largest_query_block(**fits) == 1
    with pytest.raises(
        ValueError, match="fast_bytes=1156 must hold 16 keys and values and one query of head_dim=8, 1160 bytes"
    ):
        attention_io.largest_query_block(**fits | {"fast_bytes": 1156})


def test_law_scales() -> None:
    base = {"tokens": 1000, "head_dim": 64, "fast_bytes": 2**17, "bytes_per_element": 2}
    law = attention_io.leading_traffic_bytes(**base)
    assert attention_io.leading_traffic_bytes(**base | {"tokens": 2000}) == 4 * law
    assert attention_io.leading_traffic_bytes(**base | {"fast_bytes": 2**18}) == law / 2
    # Twice the bytes per number in twice the fast memory: the same numbers move, each twice as heavy.
    assert attention_io.leading_traffic_bytes(**base | {"fast_bytes": 2**18, "bytes_per_element": 4}) == 2 * law


@pytest.mark.parametrize(
    ("tokens", "block", "num_heads", "head_dim"), [(48, 16, 3, 8), (45, 9, 2, 6), (7, 7, 5, 4), (6, 1, 2, 3)]
)
def test_blocks_that_a_causal_mask_spares_are_those_that_the_walk_skips(tokens, block, num_heads, head_dim) -> None:
    q, k, v = np.random.default_rng(seed=tokens).standard_normal((3, num_heads, tokens, head_dim))
    walked = tiled_attention.fused_attention(q, k, v, causal=True, query_block=block, key_block=block)
    size = {"num_heads": num_heads, "head_dim": head_dim, "tokens": tokens}
    assert attention_io.causal_block_flops(**size, block=block) == 2 * walked.multiply_adds
    with pytest.raises(ValueError, match=f"block={tokens + 1} must divide tokens={tokens}"):
        attention_io.causal_block_flops(**size, block=tokens + 1)
