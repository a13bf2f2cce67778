"""The SIMT machine gives right results, and counts what a person counts on paper; its kernels' costs meet the
formulas.
"""

import numpy as np
import pytest

from threeloops.inner_loop import coalescing
from threeloops.operations import kernels
from threeloops.simulate.inner_loop import simt, toy_kernels

RNG = np.random.default_rng(4)


def floats(*shape):
    return RNG.random(shape, dtype=np.float32)


@pytest.mark.parametrize("n", [1, 31, 32, 100, 1000])
def test_saxpy_is_right_and_asks_for_each_sector_once(n):
    x, y = floats(n), floats(n)
    expected = 2.5 * x + y
    run = simt.launch(toy_kernels.saxpy, n, 2.5, x, y, grid=(-(-n // 256),), block=(256,))
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    # 8 floats per sector; x and y read, y written; the sectors of x and y are touched, y's twice.
    assert (run.load_sectors, run.store_sectors, run.touched_bytes) == (2 * -(-n // 8), -(-n // 8), 2 * 32 * -(-n // 8))
    assert run.flops == 2 * n
    assert run.used_bytes == 12 * n
    assert run.divergent_branches == (n % 32 > 0)


def test_wide_requests_move_the_same_sectors_in_a_quarter_of_the_requests():
    x, y = floats(1024), floats(1024)
    narrow_y, wide_y = y.copy(), y.copy()
    narrow = simt.launch(toy_kernels.saxpy, 1024, 2.5, x, narrow_y, grid=(4,), block=(256,))
    wide = simt.launch(toy_kernels.saxpy_wide, 1024, 2.5, x, wide_y, grid=(1,), block=(256,))
    assert (narrow_y == wide_y).all()
    assert narrow.requests == 4 * wide.requests == 96
    assert narrow.sectors == wide.sectors
    assert narrow.flops == wide.flops


@pytest.mark.parametrize("stride", [0, 1, 2, 3, 5, 7, 8, 9, 31, 64])
@pytest.mark.parametrize("offset", [0, 1, 3, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_sectors_of_a_stride_are_what_the_formula_says(stride, offset, dtype):
    x, y = RNG.random(2200).astype(dtype), np.zeros(32, dtype=dtype)
    run = simt.launch(toy_kernels.gather, 32, stride, offset, x, y, grid=(1,), block=(32,))
    assert (y == x[offset + stride * np.arange(32)]).all()
    size = x.itemsize
    assert run.load_sectors == coalescing.sectors_per_request(
        stride_elements=stride, bytes_per_element=size, first_byte=offset * size
    )


@pytest.mark.parametrize("pitch", [*range(32, 42), 64])
def test_turns_of_shared_memory_are_what_the_formula_says(pitch):
    x, y = floats(64, 96), np.zeros((96, 64), dtype=np.float32)
    run = simt.launch(toy_kernels.transpose_through_shared, 64, 96, pitch, x, y, grid=(3, 2), block=(32, 8))
    assert (y == x.T).all()
    # Of every two requests one writes a row (one turn) and one reads a column.
    assert run.shared_passes == run.shared_requests // 2 * (1 + coalescing.passes_per_request(stride_words=pitch))
    assert run.load_sectors == run.store_sectors == 64 * 96 // 8
    assert run.races == 0


def test_a_broadcast_is_no_conflict():
    def same_word(w, y):
        w.store(w.shared("a", 64), w.thread.x, w.thread.x)
        w.store(y, w.thread.x, w.load(w.shared("a", 64), 7))

    y = np.zeros(32, dtype=np.float32)
    assert simt.launch(same_word, y, grid=(1,), block=(32,)).bank_conflicts == 0
    assert (y == 7).all()


def test_a_transpose_without_shared_memory_writes_one_sector_per_number():
    x, y = floats(64, 96), np.zeros((96, 64), dtype=np.float32)
    run = simt.launch(toy_kernels.transpose, 64, 96, x, y, grid=(3, 8), block=(32, 8))
    assert (y == x.T).all()
    assert (run.load_sectors, run.store_sectors) == (64 * 96 // 8, 64 * 96)


@pytest.mark.parametrize(("kernel", "across"), [(toy_kernels.matmul, "n"), (toy_kernels.matmul_swapped, "m")])
def test_both_naive_products_are_products(kernel, across):
    m, n, k = 20, 40, 24
    a, b, c = floats(m, k), floats(k, n), np.zeros((m, n), dtype=np.float32)
    wide, high = (n, m) if across == "n" else (m, n)
    run = simt.launch(kernel, m, n, k, a, b, c, grid=(-(-wide // 32), -(-high // 8)), block=(32, 8))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    assert run.flops == 2 * m * n * k


def test_neighbours_in_a_row_ask_for_five_sectors_where_neighbours_in_a_column_ask_for_thirty_three():
    a, b = floats(64, 64), floats(64, 64)
    products = np.zeros((2, 64, 64), dtype=np.float32)
    rows, columns = (
        simt.launch(kernel, 64, 64, 64, a, b, product, grid=(2, 8), block=(32, 8))
        for kernel, product in zip((toy_kernels.matmul, toy_kernels.matmul_swapped), products, strict=True)
    )
    # Per multiply-add of a warp: one sector of a for all lanes and 4 of b; exchanged, one of b and 32 of a.
    multiply_adds = 64**3 // 32
    assert rows.load_sectors == 5 * multiply_adds
    assert columns.load_sectors == 33 * multiply_adds
    assert rows.touched_bytes == columns.touched_bytes == 3 * 4 * 64**2


@pytest.mark.parametrize("tile", [8, 16, 32])
def test_tiles_load_what_the_formula_of_tiles_says(tile):
    m, n, k = 32, 64, 96
    a, b, c = floats(m, k), floats(k, n), np.zeros((m, n), dtype=np.float32)
    run = simt.launch(
        toy_kernels.matmul_tiled, n, k, tile, True, a, b, c, grid=(n // tile, m // tile), block=(tile, tile)
    )
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    work = kernels.tiled_gemm(m=m, n=n, k=k, tile_m=tile, tile_n=tile, bytes_per_element=4)
    assert (run.moved_bytes, run.flops) == (work.moved_bytes, work.flops)
    assert run.races == 0


def test_a_missing_barrier_is_a_race():
    a, b, c = floats(32, 32), floats(32, 32), np.zeros((32, 32), dtype=np.float32)
    run = simt.launch(toy_kernels.matmul_tiled, 32, 32, 8, False, a, b, c, grid=(4, 4), block=(8, 8))
    assert run.races > 0
    assert not np.allclose(c, a @ b)
    # With one warp per block there is nobody to race with.
    alone = simt.launch(toy_kernels.matmul_tiled, 32, 32, 4, False, a, b, c, grid=(8, 8), block=(4, 4))
    assert alone.races == 0
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@pytest.mark.parametrize(("group", "divergent"), [(1, True), (16, True), (32, False), (64, False)])
def test_a_divergent_warp_issues_both_sides(group, divergent):
    x = np.ones(256, dtype=np.float32)
    run = simt.launch(toy_kernels.two_recipes, group, 10, x, grid=(2,), block=(128,))
    assert (x == np.where(np.arange(256) // group % 2 == 0, 2.0**10, 3.0**10)).all()
    # Per warp: a load, a store, and 10 multiplications, or 20 where both sides have takers.
    assert run.issued == 8 * (2 + (20 if divergent else 10))
    assert run.divergent_branches == (8 if divergent else 0)


def test_a_warp_waits_for_its_longest_row():
    lengths = np.array([3, 9, 1, 0, 5, 2, 7, 4] * 8)
    starts, x, sums = np.cumsum(lengths) - lengths, floats(lengths.sum()), np.zeros(64, dtype=np.float32)
    run = simt.launch(toy_kernels.row_sums, 64, starts, lengths, x, sums, grid=(1,), block=(64,))
    np.testing.assert_allclose(
        sums, [x[start : start + length].sum() for start, length in zip(starts, lengths, strict=True)], rtol=1e-6
    )
    # Two warps: starts, lengths, sums, and 9 times a load and an addition.
    assert run.issued == 2 * (3 + 9 * 2)
    assert run.active_lanes == 64 * 3 + 2 * lengths.sum()


@pytest.mark.parametrize(
    "kernel", [toy_kernels.reduce_interleaved, toy_kernels.reduce_strided, toy_kernels.reduce_sequential]
)
def test_reductions_add_everything(kernel):
    x, sums = floats(1024), np.zeros(4, dtype=np.float32)
    run = simt.launch(kernel, x, sums, grid=(4,), block=(256,))
    np.testing.assert_allclose(sums, x.reshape(4, 256).sum(axis=1), rtol=1e-5)
    assert run.flops == 4 * 255
    assert (run.races, run.barriers) == (0, 4 * 9)


def test_each_reduction_pays_for_its_own_mistake():
    x, sums = floats(256), np.zeros(1, dtype=np.float32)
    interleaved, strided, sequential = (
        simt.launch(kernel, x, sums, grid=(1,), block=(256,))
        for kernel in (toy_kernels.reduce_interleaved, toy_kernels.reduce_strided, toy_kernels.reduce_sequential)
    )
    # All 8 warps stay for steps 1 to 16, then 4, 2 and 1 of them, and the last branch has one taker; afterwards one
    # branch per step, for 5 steps and the store.
    assert interleaved.divergent_branches == 5 * 8 + 4 + 2 + 1 + 1
    assert strided.divergent_branches == sequential.divergent_branches == 6
    assert (interleaved.bank_conflicts, sequential.bank_conflicts) == (0, 0)
    # Awake threads: 128, 64, 32, 16, 8, 4, 2, 1; their words lie 2, 4, 8, 16, 32, … apart. 16 lanes 16 apart share
    # two banks: 8 turns. Three requests each.
    awake = ((4, 32, 2), (2, 32, 4), (1, 32, 8), (1, 16, 8), (1, 8, 8), (1, 4, 4), (1, 2, 2), (1, 1, 1))
    assert strided.bank_conflicts == sum(3 * warps * (turns - 1) for warps, _, turns in awake)


def test_a_launch_covers_the_grid_and_numbers_threads_row_by_row():
    def where_am_i(w, width, y):
        row, column = w.block.y * w.block_dim.y + w.thread.y, w.block.x * w.block_dim.x + w.thread.x
        w.store(y, row * width + column, 1000 * row + column)

    y = np.zeros((12, 24), dtype=np.float32)
    run = simt.launch(where_am_i, 24, y, grid=(3, 2), block=(8, 6))
    assert (y == 1000 * np.arange(12)[:, None] + np.arange(24)).all()
    assert (run.blocks, run.warps) == (6, 12)  # 48 threads are a warp and a half
    assert run.lane_use == 0.75


def barrier_in_a_branch(w, y):
    with w.where(w.thread.x < 7):
        yield


def barrier_for_some_warps(w, y):
    if w.number == 1:
        yield


def test_refusals():
    x, y = floats(100), floats(100)
    with pytest.raises(ValueError, match=r"index 127 lies outside an array of 100 elements; guard it"):
        simt.launch(toy_kernels.saxpy, 128, 1.0, x, y, grid=(1,), block=(128,))
    simt.launch(toy_kernels.saxpy, 100, 1.0, x, y, grid=(1,), block=(128,))
    with pytest.raises(ValueError, match=r"block=\(33, 32\) has 1056 threads and a block holds at most 1024"):
        simt.launch(toy_kernels.saxpy, 100, 1.0, x, y, grid=(1,), block=(33, 32))
    with pytest.raises(ValueError, match=r"grid=\(0,\) must be one or two whole numbers"):
        simt.launch(toy_kernels.saxpy, 100, 1.0, x, y, grid=(0,), block=(32,))
    with pytest.raises(ValueError, match="barrier stands inside a branch"):
        simt.launch(barrier_in_a_branch, y, grid=(1,), block=(32,))
    with pytest.raises(ValueError, match="warp 1 waits at a barrier that warp 0 never reaches"):
        simt.launch(barrier_for_some_warps, y, grid=(1,), block=(64,))
    with pytest.raises(ValueError, match="must be contiguous"):
        simt.launch(toy_kernels.saxpy, 50, 1.0, x[::2], y, grid=(1,), block=(64,))
