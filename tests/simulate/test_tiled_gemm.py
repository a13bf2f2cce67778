"""The machine that walks a tiled product and the machine that walks attention: real results, and traffic that the
formulas must meet.
"""

import numpy as np
import pytest

from threeloops.operations import kernels
from threeloops.simulate.inner_loop import tiled_attention, tiled_gemm

RNG = np.random.default_rng(7)
SHAPES = [(24, 36, 30), (17, 23, 29), (6, 40, 9)]
TILES = [(4, 6, 5), (8, 8, 8), (1, 1, 1), (5, 7, 3)]


def operands(m, n, k):
    return RNG.standard_normal((m, k), dtype=np.float32), RNG.standard_normal((k, n), dtype=np.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("keep", [True, False])
def test_the_walk_multiplies_correctly_within_its_memory(shape, tile, keep):
    (m, n, k), (tile_m, tile_n, tile_k) = shape, tile
    a, b = operands(m, n, k)
    walk = tiled_gemm.multiply(
        a, b, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k, fast_bytes=1200, keep_between_tiles=keep
    )
    np.testing.assert_allclose(walk.product, a @ b, rtol=1e-4, atol=1e-4)
    assert walk.multiply_adds == m * n * k
    assert walk.peak_fast_bytes <= 1200


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tile", TILES)
def test_tiles_that_share_nothing_move_what_the_formula_says(shape, tile):
    (m, n, k), (tile_m, tile_n, tile_k) = shape, tile
    walk = tiled_gemm.multiply(
        *operands(m, n, k), tile_m=tile_m, tile_n=tile_n, tile_k=tile_k, fast_bytes=1200, keep_between_tiles=False
    )
    predicted = kernels.tiled_gemm(m=m, n=n, k=k, tile_m=tile_m, tile_n=tile_n, bytes_per_element=4)
    assert (walk.moved_bytes, 2 * walk.multiply_adds) == (predicted.moved_bytes, predicted.flops)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cache_that_holds_everything_moves_each_operand_once(shape):
    m, n, k = shape
    walk = tiled_gemm.multiply(
        *operands(m, n, k), tile_m=4, tile_n=4, tile_k=4, fast_bytes=10**6, keep_between_tiles=True
    )
    predicted = kernels.gemm(m=m, n=n, k=k, bytes_per_element=4)
    assert walk.moved_bytes == predicted.moved_bytes
    assert 2 * walk.multiply_adds == predicted.flops


def test_no_cache_moves_less_than_compulsory_and_none_more_than_private_tiles():
    m, n, k = SHAPES[0]
    moved = []
    for fast_bytes in (800, 1600, 3200, 6400, 12800, 25600):
        walk = tiled_gemm.multiply(
            *operands(m, n, k), tile_m=6, tile_n=6, tile_k=5, fast_bytes=fast_bytes, keep_between_tiles=True
        )
        moved.append(walk.moved_bytes)
    assert moved == sorted(moved, reverse=True)
    assert moved[0] <= kernels.tiled_gemm(m=m, n=n, k=k, tile_m=6, tile_n=6, bytes_per_element=4).moved_bytes
    assert moved[-1] == kernels.gemm(m=m, n=n, k=k, bytes_per_element=4).moved_bytes
    assert moved[0] > 2 * moved[-1]


def test_square_tiles_divide_the_loads_by_the_tile_side():
    # The textbook case: 16 x 16 tiles load a sixteenth of what the naive kernel loads.
    a, b = operands(32, 32, 32)
    naive, tiled = (
        tiled_gemm.multiply(
            a, b, tile_m=side, tile_n=side, tile_k=side, fast_bytes=3 * 16 * 16 * 4, keep_between_tiles=False
        )
        for side in (1, 16)
    )
    assert naive.loaded_bytes == 2 * 32**3 * 4
    assert naive.loaded_bytes == 16 * tiled.loaded_bytes
    assert naive.stored_bytes == tiled.stored_bytes == 32 * 32 * 4


def test_the_block_unused_for_longest_leaves_first_and_changed_blocks_are_written_back():
    slow, fast = np.ones((4, 2)), tiled_gemm.FastMemory(capacity_bytes=2 * 16)
    for row in (0, 1, 0, 2, 0):  # the second use of row 0 keeps it; row 1 makes room for row 2
        fast.read(("a", row, 0), slow[row])
    assert fast.loaded_bytes == 3 * 16
    fast.create(("c", 3, 0), slow[3])[...] = 7
    assert slow[3, 0] == 1
    fast.flush()
    assert slow[3].tolist() == [7, 7]
    assert (fast.stored_bytes, fast.held_bytes, fast.peak_bytes) == (16, 0, 32)


def test_refusals():
    a, b = operands(8, 8, 8)
    walk = {"tile_m": 4, "tile_n": 4, "tile_k": 4, "keep_between_tiles": True}
    with pytest.raises(ValueError, match="fast_bytes=191 must hold one tile of each matrix together, 192 bytes"):
        tiled_gemm.multiply(a, b, fast_bytes=191, **walk)
    assert tiled_gemm.multiply(a, b, fast_bytes=192, **walk).peak_fast_bytes == 192
    with pytest.raises(ValueError, match="a has 8 columns but b has 4 rows"):
        tiled_gemm.multiply(a, b[:4], fast_bytes=1000, **walk)


def qkv(num_heads, num_kv_heads, queries, keys, width, value_width):
    return (
        RNG.standard_normal((num_heads, queries, width)),
        RNG.standard_normal((num_kv_heads, keys, width)),
        RNG.standard_normal((num_kv_heads, keys, value_width)),
    )


ATTENTION = [(6, 6, 12, 12, 8, 8), (6, 2, 10, 14, 8, 6), (5, 1, 1, 19, 4, 4), (4, 2, 7, 7, 16, 16)]


@pytest.mark.parametrize("shape", ATTENTION)
@pytest.mark.parametrize("causal", [True, False])
def test_attention_walks_are_attention(shape, causal):
    q, k, v = qkv(*shape)
    keys, values = (np.repeat(array, q.shape[0] // k.shape[0], axis=0) for array in (k, v))
    scores = q @ keys.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[1], k.shape[1], k.shape[1] - q.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores)
    expected = weights @ values / weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(tiled_attention.unfused_attention(q, k, v, causal=causal).output, expected, rtol=1e-10)
    np.testing.assert_allclose(
        tiled_attention.fused_attention(q, k, v, causal=causal, query_block=3, key_block=4).output, expected, rtol=1e-10
    )


@pytest.mark.parametrize("shape", ATTENTION)
def test_attention_traffic_is_what_the_formula_says(shape):
    num_heads, num_kv_heads, queries, keys, width, value_width = shape
    arrays = qkv(*shape)
    predicted = {
        "batch": 1,
        "num_heads": num_heads,
        "num_kv_heads": num_kv_heads,
        "head_dim": width,
        "value_head_dim": value_width,
        "query_tokens": queries,
        "context_tokens": keys,
        "causal": "full",
        "bytes_per_element": 8,
    }
    unfused = tiled_attention.unfused_attention(*arrays, causal=False)
    assert (
        unfused.moved_bytes
        == kernels.attention(fused=False, **predicted).moved_bytes
        == kernels.unfused_attention(**predicted).total.moved_bytes
    )
    for query_block in (queries, 3, 1):
        fused = tiled_attention.fused_attention(*arrays, causal=False, query_block=query_block, key_block=5)
        work = kernels.attention(fused=True, query_block=query_block, **predicted)
        assert (fused.moved_bytes, 2 * fused.multiply_adds) == (work.moved_bytes, work.flops)
    assert 2 * unfused.multiply_adds == work.flops


def test_skipping_masked_blocks_approaches_half_of_the_square():
    q, k, v = qkv(1, 1, 64, 64, 4, 4)
    shape = {
        "batch": 1,
        "num_heads": 1,
        "num_kv_heads": 1,
        "head_dim": 4,
        "query_tokens": 64,
        "context_tokens": 64,
        "bytes_per_element": 8,
        "fused": True,
    }
    walked = [
        2 * tiled_attention.fused_attention(q, k, v, causal=True, query_block=block, key_block=block).multiply_adds
        for block in (32, 8, 1)
    ]
    # Blocks of one skip exactly what the mask hides; larger blocks calculate part of it.
    assert walked[-1] == kernels.attention(causal="exact", **shape).flops
    assert (
        kernels.attention(causal="full", **shape).flops
        > walked[0]
        > walked[1]
        > walked[2]
        > kernels.attention(causal="half", **shape).flops
    )
