"""Tiles, waves, slices and fragments: what is predicted stands beside what a machine that knows no formula has
counted.
"""

import itertools

import numpy as np
import pytest

from threeloops.facts import compute_capability, hardware
from threeloops.inner_loop import gemm_tiles, matrix_instructions, sparsity
from threeloops.inner_loop.matrix_instructions import INSTRUCTIONS
from threeloops.operations import kernels
from threeloops.simulate.inner_loop import (
    block_scheduler,
    gemm_kernels,
    simt,
    split_k,
    tensor_core,
    toy_kernels,
    two_of_four,
    unit_turns,
)

RNG = np.random.default_rng(5)


def whole(*shape):
    """Small whole numbers: their sums are exact in any order."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


def launched(kernel, *arguments, m, n, k, grid, block):
    a, b, c = whole(m, k), whole(k, n), np.full((m, n), np.nan, dtype=np.float32)
    run = simt.launch(kernel, *arguments, a, b, c, grid=grid, block=block)
    assert (c == a @ b).all()
    assert run.flops == 2 * m * n * k
    assert run.races == 0
    return run


@pytest.mark.parametrize(("tile", "depth", "side"), [(64, 8, 8), (64, 16, 4), (32, 8, 4)])
def test_register_tiles_reuse_what_the_formula_says(tile, depth, side):
    run = launched(
        gemm_kernels.matmul_registers,
        128,
        32,
        tile,
        depth,
        side,
        m=64,
        n=128,
        k=32,
        grid=(128 // tile, 64 // tile),
        block=((tile // side) ** 2,),
    )
    tiles = {"tile_m": tile, "tile_n": tile, "bytes_per_element": 4}
    assert run.moved_bytes == kernels.tiled_gemm(m=64, n=128, k=32, **tiles).moved_bytes
    assert run.flops / (32 * run.load_sectors) == gemm_tiles.tile_intensity(
        rows=tile, columns=tile, bytes_per_element=4
    )
    assert run.bank_conflicts == 0
    assert run.flops / run.shared_bytes == pytest.approx(gemm_tiles.staged_intensity(part_m=side, part_n=side, **tiles))


@pytest.mark.parametrize(("tile", "side"), [(64, 32), (64, 16), (64, 64), (32, 32)])
def test_fragments_reuse_what_the_formula_says_and_take_the_predicted_instructions(tile, side):
    run = launched(
        gemm_kernels.matmul_fragments,
        64,
        64,
        tile,
        32,
        side,
        m=64,
        n=64,
        k=64,
        grid=(64 // tile, 64 // tile),
        block=(32 * (tile // side) ** 2,),
    )
    tiles = {"tile_m": tile, "tile_n": tile, "bytes_per_element": 4}
    assert run.moved_bytes == kernels.tiled_gemm(m=64, n=64, k=64, **tiles).moved_bytes
    assert run.bank_conflicts == 0
    assert run.flops / run.shared_bytes == pytest.approx(gemm_tiles.staged_intensity(part_m=side, part_n=side, **tiles))
    assert run.matrix_instructions == INSTRUCTIONS["mma.m16n8k8"].count(m=64, n=64, k=64)
    assert run.flops == run.matrix_instructions * INSTRUCTIONS["mma.m16n8k8"].flops


def test_one_thread_per_element_reads_shared_memory_for_every_multiply_add():
    run = launched(toy_kernels.matmul_tiled, 64, 64, 32, True, m=64, n=64, k=64, grid=(2, 2), block=(32, 32))
    assert run.flops / run.shared_bytes == pytest.approx(
        gemm_tiles.staged_intensity(tile_m=32, tile_n=32, part_m=1, part_n=1, bytes_per_element=4)
    )


def test_a_long_product_approaches_the_intensity_of_its_tile():
    for tile_m, tile_n in ((128, 128), (256, 64), (1, 1)):
        work = kernels.tiled_gemm(m=512, n=512, k=10**6, tile_m=tile_m, tile_n=tile_n, bytes_per_element=2)
        assert work.arithmetic_intensity == pytest.approx(
            gemm_tiles.tile_intensity(rows=tile_m, columns=tile_n, bytes_per_element=2), rel=1e-3
        )


# PTX ISA 9.2, 9.7.14.5.7, figure 72 and its neighbours: which lane's register holds an element of mma.m16n8k8 with
# .tf32.
FRAGMENTS = [
    ("a", 1, 5, (9, 1)),
    ("a", 2, 5, (1, 5)),
    ("a", 3, 31, (15, 7)),
    ("b", 0, 6, (2, 1)),
    ("b", 1, 31, (7, 7)),
    ("c", 1, 5, (1, 3)),
    ("c", 2, 30, (15, 4)),
]


@pytest.mark.parametrize(("operand", "register", "lane", "place"), FRAGMENTS)
def test_fragments_lie_where_the_instruction_set_puts_them(operand, register, lane, place):
    rows, columns = tensor_core.places(operand)
    assert (rows[register, lane], columns[register, lane]) == place


@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_every_element_belongs_to_one_register_of_one_lane(operand):
    rows, columns = tensor_core.places(operand)
    height, width = tensor_core.SHAPES[operand]
    assert sorted(zip(rows.ravel(), columns.ravel(), strict=True)) == [
        (row, column) for row in range(height) for column in range(width)
    ]


def test_the_matrix_unit_multiplies_and_adds():
    a, b, c = whole(16, 8), whole(8, 8), whole(16, 8)
    held, multiply_adds = tensor_core.multiply(
        *(tensor_core.fragment(x, name) for x, name in ((a, "a"), (b, "b"), (c, "c")))
    )
    assert (tensor_core.matrix(held, "c") == a @ b + c).all()
    assert multiply_adds == INSTRUCTIONS["mma.m16n8k8"].multiply_adds == 1024
    # What a circulating text calls the work of the instruction is the share of one group of four lanes.
    assert multiply_adds // 8 == 128


def test_a_matrix_instruction_is_the_whole_warps():
    def halved(w, x):
        with w.where(w.thread.x < 16):
            w.mma(np.zeros((4, 32)), np.zeros((2, 32)), np.zeros((4, 32)))

    with pytest.raises(ValueError, match="mma needs all 32 lanes of a warp"):
        simt.launch(halved, np.zeros(1, dtype=np.float32), grid=(1,), block=(32,))


@pytest.mark.parametrize(("key", "per_unit"), [("v100-sxm2-32gb", 64), ("a100-sxm4-80gb", 256), ("h100-sxm5", 512)])
def test_instructions_at_the_units_rate_give_the_cards_peak(key, per_unit):
    # Multiply-adds per unit and cycle as NVIDIA's architecture papers print them; the clock at which the 16-bit peak
    # is quoted follows from the peak.
    part, shape = hardware.part(key), INSTRUCTIONS["mma.m16n8k8"]
    per_second = (
        part["sms"] * part["matrix_units_per_sm"] / shape.cycles(multiply_adds_per_cycle=per_unit) * shape.flops
    )
    clock_hz = part.peak_flops_per_s("fp16") / per_second
    assert 0.9 * part["boost_clock_hz"] < clock_hz < 1.01 * part["boost_clock_hz"]


def test_larger_instructions_read_fewer_bytes_per_flop():
    sizes = {
        name: {"bytes_per_element": 4 if name == "fma" else 2, "accumulator_bytes_per_element": 4}
        for name in INSTRUCTIONS
    }
    reads = {name: one.flops / one.operand_bytes(**sizes[name]) for name, one in INSTRUCTIONS.items()}
    assert reads["fma"] == pytest.approx(1 / 6)  # 2 operations for three words
    assert sorted(reads, key=reads.get) == [
        "fma",
        "mma.m8n8k4",
        "mma.m16n8k8",
        "mma.m16n8k16",
        "wgmma.m64n256k16",
        "tcgen05.m128n256k16",
        "tcgen05.m256n256k16",
    ]


@pytest.mark.parametrize(
    ("name", "sms", "key", "enough"),
    [
        ("wgmma.m64n256k16", 1, "h100-sxm5", True),
        ("tcgen05.m128n256k16", 1, "b200-hgx", True),
        ("tcgen05.m256n256k16", 2, "b200-hgx", True),
        ("wgmma.m64n256k16", 1, "b200-hgx", False),  # Hopper's shape would leave Blackwell's units waiting
    ],
)
def test_what_shared_memory_delivers_while_an_instruction_runs(name, sms, key, enough):
    # Operands that have to come from each SM's shared memory, 128 bytes per cycle, in the cycles that the units take.
    shape, part = INSTRUCTIONS[name], hardware.part(key)
    units = sms * part["matrix_units_per_sm"] * part["matrix_fmas_per_cycle_fp16"]
    delivered = shape.cycles(multiply_adds_per_cycle=units) * sms * 128
    wanted = shape.operand_bytes(bytes_per_element=2, accumulator_bytes_per_element=0)
    assert (delivered >= wanted) is enough


def test_edges_and_copies_are_counted_by_walking_over_the_product():
    for m, n, k in ((17, 9, 33), (16, 8, 16), (1, 1, 1)):
        shape = INSTRUCTIONS["mma.m16n8k16"]
        assert shape.count(m=m, n=n, k=k) == sum(
            1 for _ in range(0, m, 16) for _ in range(0, n, 8) for _ in range(0, k, 16)
        )
    assert INSTRUCTIONS["mma.m8n8k4"].count(m=16, n=8, k=12) == 2  # six small products, four to an instruction


@pytest.mark.parametrize("size", [100, 128, 129, 500, 640, 700, 1408, 1536])
def test_quantisation_is_what_the_scheduler_leaves(size):
    m, n, tile_m, tile_n, sms = size, size + 60, 128, 64, 12
    elements = [min(tile_m, m - i) * min(tile_n, n - j) for i in range(0, m, tile_m) for j in range(0, n, tile_n)]
    ends = max(
        placed.end_s for placed in block_scheduler.play(num_sms=sms, blocks_per_sm=2, durations_s=[1.0] * len(elements))
    )
    # Every place could have finished one full tile per unit of time.
    asked = sum(elements) / (ends * sms * 2 * tile_m * tile_n)
    assert gemm_tiles.tile_quantisation(
        m=m, n=n, tile_m=tile_m, tile_n=tile_n, num_sms=sms, blocks_per_sm=2
    ).share == pytest.approx(asked)


def test_one_row_more_than_a_full_wave_costs_a_second_wave():
    assert (
        gemm_tiles.tile_quantisation(m=256 * 9, n=128 * 12, tile_m=256, tile_n=128, num_sms=108, blocks_per_sm=1).share
        == 1
    )
    assert (
        gemm_tiles.tile_quantisation(
            m=256 * 9 + 1, n=128 * 12, tile_m=256, tile_n=128, num_sms=108, blocks_per_sm=1
        ).waves.count
        == 2
    )
    assert gemm_tiles.tile_quantisation(
        m=256 * 9 + 1, n=128 * 12, tile_m=256, tile_n=128, num_sms=108, blocks_per_sm=1
    ).share == pytest.approx(0.5, abs=0.001)


@pytest.mark.parametrize("splits", [1, 2, 3, 5, 60])
def test_slices_multiply_correctly_and_move_what_the_formula_says(splits):
    a, b = whole(24, 60), whole(60, 16)
    run = split_k.multiply(a, b, tile=8, splits=splits, fast_bytes=3 * 64 * 4)
    assert (run.product == a @ b).all()
    work = gemm_tiles.split_k(
        m=24, n=16, k=60, tile_m=8, tile_n=8, splits=splits, bytes_per_element=4, partial_bytes_per_element=4
    )
    # The walk writes its slices once and reads them once; an unsplit product is written only as itself.
    assert (run.moved_bytes, 2 * run.multiply_adds) == (work.moved_bytes, work.flops)


def test_a_pipeline_of_a_block_fits_where_the_card_says_it_does():
    sm = compute_capability.multiprocessor(hardware.part("h100-sxm5"))
    room = sm.shared_bytes - sm.reserved_shared_bytes_per_block
    sizes = {"tile_m": 128, "tile_n": 256, "tile_k": 64, "bytes_per_element": 2}
    operands = [np.zeros((128, 64), dtype=np.float16), np.zeros((64, 256), dtype=np.float16)]
    assert gemm_tiles.pipeline_bytes(stages=4, **sizes) == 4 * sum(array.nbytes for array in operands) <= room
    assert gemm_tiles.pipeline_bytes(stages=5, **sizes) > room
    # half of the register file
    assert gemm_tiles.accumulator_registers(tile_m=128, tile_n=256, threads=256) * 256 * 2 == sm.registers


@pytest.mark.parametrize(("tile_m", "tile_n", "threads"), [(128, 256, 256), (3, 5, 4), (16, 16, 100), (1, 1, 32)])
def test_a_thread_holds_the_sums_that_are_dealt_to_it(tile_m, tile_n, threads):
    held = [0] * threads
    for turn, _sum in enumerate(itertools.product(range(tile_m), range(tile_n))):
        held[turn % threads] += 1
    assert gemm_tiles.accumulator_registers(tile_m=tile_m, tile_n=tile_n, threads=threads) == max(held)


@pytest.mark.parametrize("elements", [50_257, 50_258, 50_260, 50_264, 50_304, 1, 8])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_load_is_as_wide_as_every_row_allows(elements, size):
    starts = [row * elements * size for row in range(64)]
    widest = max(width for width in (1, 2, 4, 8, 16) if all(start % width == 0 for start in starts))
    assert gemm_tiles.load_bytes(row_elements=elements, bytes_per_element=size) == widest


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_two_of_four_is_stored_in_the_predicted_bytes_and_multiplies_as_the_pruned_matrix(dtype):
    weights, x = RNG.permuted(np.tile(np.arange(1, 65), (16, 1)), axis=1).astype(dtype), whole(64, 5)
    packed = two_of_four.pack(weights)
    pruned = two_of_four.unpack(packed)
    assert packed.stored_bytes == sparsity.sparse_bytes(rows=16, columns=64, bytes_per_element=weights.itemsize)
    assert packed.stored_bytes / weights.nbytes == sparsity.stored_share(bytes_per_element=weights.itemsize)
    assert ((pruned == 0).reshape(16, -1, 4).sum(axis=-1) == 2).all()
    groups = weights.reshape(16, -1, 4).astype(int)
    # all weights are positive: the two largest of each four
    assert pruned.astype(int).sum() == np.sort(groups, axis=-1)[..., 2:].sum()
    product, multiply_adds = two_of_four.multiply(packed, x)
    assert (product == pruned.astype(float) @ x).all()
    work = sparsity.sparse_gemm(m=5, n=16, k=64, bytes_per_element=weights.itemsize)
    assert 2 * multiply_adds == work.flops
    assert work.moved_bytes == packed.stored_bytes + (5 * 64 + 5 * 16) * weights.itemsize


def test_sparse_weights_promise_what_the_datasheet_promises():
    h100, shape = hardware.part("h100-sxm5"), {"m": 4096, "n": 4096, "k": 4096, "bytes_per_element": 2}
    nominal = kernels.gemm(**shape).flops / h100.sparse_peak_flops_per_s("bf16")
    assert sparsity.sparse_gemm(**shape).flops / h100.peak_flops_per_s("bf16") == pytest.approx(nominal, rel=1e-3)


REFUSED = [
    (
        lambda: gemm_tiles.tile_intensity(rows=0, columns=8, bytes_per_element=2),
        "rows=0 must be a whole number of at least 1",
    ),
    (
        lambda: gemm_tiles.staged_intensity(tile_m=64, tile_n=64, part_m=24, part_n=8, bytes_per_element=4),
        "part_m=24 must divide tile_m=64",
    ),
    (
        lambda: gemm_tiles.split_k(
            m=8, n=8, k=4, tile_m=8, tile_n=8, splits=5, bytes_per_element=2, partial_bytes_per_element=4
        ),
        "splits=5 must be at most k=4",
    ),
    (
        lambda: gemm_tiles.pipeline_bytes(tile_m=8, tile_n=8, tile_k=8, stages=0, bytes_per_element=2),
        "stages=0 must be",
    ),
    (
        lambda: gemm_tiles.load_bytes(row_elements=8, bytes_per_element=0.5),
        "bytes_per_element=0.5 must be a whole number",
    ),
    (lambda: sparsity.sparse_bytes(rows=4, columns=6, bytes_per_element=2), "group=4 must divide columns=6"),
    (lambda: matrix_instructions.MatrixInstruction(m=16, n=8, k=0, threads=32), "k=0 must be"),
    (lambda: INSTRUCTIONS["fma"].cycles(multiply_adds_per_cycle=0), "multiply_adds_per_cycle=0 must be greater than 0"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("load_cycles", "matrix_cycles"), [(700.0, 1024.0), (3000.0, 1024.0), (500.0, 90.0)])
def test_a_pipeline_of_stages_is_as_busy_as_littles_law_says(load_cycles, matrix_cycles):
    for stages in range(1, 8):
        sizes = {"stages": stages, "load_cycles": load_cycles, "matrix_cycles": matrix_cycles}
        played = unit_turns.pipeline(steps=4000, **sizes)
        assert played.matrix_busy == pytest.approx(gemm_tiles.pipeline_busy(**sizes), rel=0.01), stages


def test_no_stage_is_filled_before_it_is_empty_and_steps_are_multiplied_in_order():
    turns = unit_turns.pipeline(stages=3, steps=20, load_cycles=50, matrix_cycles=7).turns
    loads, products = ([turn for turn in turns if turn.unit == unit] for unit in ("load", "matrix"))
    for load, product in zip(loads, products, strict=True):
        assert load.end <= product.start
    for product, load in zip(products, loads[3:], strict=False):
        assert product.end <= load.start
    for before, after in itertools.pairwise(products):
        assert before.end <= after.start
