"""Tiles of a matrix product: what reuse a tile buys at any level of the memory, what rounding up to whole tiles and
whole waves costs.

>>> tile_intensity(rows=128, columns=128, bytes_per_element=4), tile_intensity(rows=1, columns=1, bytes_per_element=4)
(32.0, 0.25)
>>> tile_quantisation(m=1536, n=1536, tile_m=128, tile_n=128, num_sms=132, blocks_per_sm=1).share
0.5454545454545454

Source: NVIDIA, Matrix Multiplication Background User's Guide, DU-09799-001, 2023, chapters 2 and 3 (tiles, tile and
        wave quantisation)
"""

import math
from dataclasses import dataclass

from threeloops import checks
from threeloops.inner_loop import occupancy
from threeloops.inner_loop.padding import padded
from threeloops.operations.matrix_kernels import tiled_gemm
from threeloops.operations.roofline import Work

WIDEST_LOAD_BYTES = 16  # what one thread can ask for at once


def tile_intensity(*, rows: int, columns: int, bytes_per_element: float) -> float:
    """FLOP per byte of operands that cross into a level which keeps a rows × columns tile of the result until it is
    finished.

    Formula:  2 * rows * columns / ((rows + columns) * bytes_per_element)
    Assumes:  every step along the inner dimension fetches one column of the first and one row of the second operand,
              each number once; the result is not counted, which is right for a long inner dimension. The level may be
              shared memory (a block's tile), registers (a warp's or a thread's tile) or a cache (all tiles of a wave)
    Source:   Hong and Kung, STOC 1981, doi:10.1145/800076.802486
    Counted:  simulate.inner_loop.simt.launch

    >>> tile_intensity(rows=256, columns=128, bytes_per_element=2)
    85.33333333333333
    """
    checks.count(rows=rows, columns=columns)
    checks.positive(bytes_per_element=bytes_per_element)
    return 2 * rows * columns / ((rows + columns) * bytes_per_element)


def staged_intensity(*, tile_m: int, tile_n: int, part_m: int, part_n: int, bytes_per_element: float) -> float:
    """FLOP per byte that passes through shared memory, where a block's tile is laid out once and read by parts: a
    thread's, or a warp's.

    Formula:  1 / (1 / intensity of the tile, which is written + 1 / intensity of a part, which is read)
    Assumes:  no bank conflicts; a number that several lanes read with one request counts for each of them
    Counted:  simulate.inner_loop.simt.launch

    >>> staged_intensity(tile_m=64, tile_n=64, part_m=8, part_n=8, bytes_per_element=4)
    1.7777777777777777
    """
    checks.divides(part="part_m", part_value=part_m, whole="tile_m", whole_value=tile_m)
    checks.divides(part="part_n", part_value=part_n, whole="tile_n", whole_value=tile_n)
    written = tile_intensity(rows=tile_m, columns=tile_n, bytes_per_element=bytes_per_element)
    read = tile_intensity(rows=part_m, columns=part_n, bytes_per_element=bytes_per_element)
    return 1 / (1 / written + 1 / read)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileQuantisation:
    """A result that is computed in whole tiles, and whole tiles in whole waves."""

    tile_share: float  # elements that exist over elements that the tiles compute
    waves: occupancy.Waves

    @property
    def share(self) -> float:
        """The share that was asked for of all arithmetic that the machine could do until the last wave ends."""
        return self.tile_share * self.waves.efficiency


def tile_quantisation(
    *, m: int, n: int, tile_m: int, tile_n: int, num_sms: int, blocks_per_sm: int
) -> TileQuantisation:
    """The share of a machine's time that rounding up leaves to an m × n result.

    Formula:  m*n / (ceil(m/tile_m)*tile_m * ceil(n/tile_n)*tile_n)  times  blocks / (waves * num_sms * blocks_per_sm)
    Assumes:  one block per tile, and a tile at the edge takes as long as a full one; all blocks take equal times; the
              inner dimension is not split
    Counted:  simulate.inner_loop.block_scheduler.play
    """
    checks.count(m=m, n=n, tile_m=tile_m, tile_n=tile_n)
    blocks = occupancy.grid_size(rows=m, columns=n, block_rows=tile_m, block_columns=tile_n)
    share = m * n / (padded(length=m, multiple=tile_m) * padded(length=n, multiple=tile_n))
    return TileQuantisation(
        tile_share=share, waves=occupancy.waves(grid_blocks=blocks, num_sms=num_sms, blocks_per_sm=blocks_per_sm)
    )


def split_k(
    *,
    m: int,
    n: int,
    k: int,
    tile_m: int,
    tile_n: int,
    splits: int,
    bytes_per_element: float,
    partial_bytes_per_element: float,
) -> Work:
    """FLOPs and bytes of a tiled product whose inner dimension is shared out among `splits` blocks per tile.

    Formula:  operands as in tiled_gemm; for splits > 1 also 2 * splits * m * n * partial_bytes_per_element
    Units:    partial_bytes_per_element of the sums that each slice writes and a second kernel reads (4 for fp32)
    Assumes:  partial sums go through device memory; their additions are not counted as FLOPs
    Raises:   ValueError if there are more slices than steps along the inner dimension
    Counted:  simulate.inner_loop.split_k.multiply
    """
    checks.count(splits=splits)
    checks.positive(partial_bytes_per_element=partial_bytes_per_element)
    whole = tiled_gemm(m=m, n=n, k=k, tile_m=tile_m, tile_n=tile_n, bytes_per_element=bytes_per_element)
    if splits > k:
        raise ValueError(f"splits={splits} must be at most k={k}; a slice needs at least one step")
    partial_sums = 2 * splits * m * n * partial_bytes_per_element * (splits > 1)
    return Work(flops=whole.flops, moved_bytes=whole.moved_bytes + partial_sums)


def pipeline_bytes(*, tile_m: int, tile_n: int, tile_k: int, stages: int, bytes_per_element: float) -> float:
    """Shared memory that a block's operand tiles take, in bytes.

    Formula:  stages * (tile_m + tile_n) * tile_k * bytes_per_element
    Assumes:  one stage is multiplied while the others are being filled (two stages: double buffering); the result
              waits in registers
    Counted:  drills.gpu_kernels.gemm_reuse.PIPELINE

    >>> pipeline_bytes(tile_m=128, tile_n=256, tile_k=64, stages=4, bytes_per_element=2)
    196608
    """
    checks.count(tile_m=tile_m, tile_n=tile_n, tile_k=tile_k, stages=stages)
    checks.positive(bytes_per_element=bytes_per_element)
    return stages * (tile_m + tile_n) * tile_k * bytes_per_element


def pipeline_busy(*, stages: int, load_cycles: float, matrix_cycles: float) -> float:
    """Share of the time in which consumer warps multiply, while a producer warp keeps `stages` steps under way.

    Formula:  min(1, stages * matrix_cycles / (load_cycles + matrix_cycles))
    Units:    load_cycles from the request for a step's tiles until they are in shared memory; matrix_cycles that
              multiplying them takes
    Assumes:  a long inner dimension (the first load, for which everybody waits, is not counted); a load takes as long
              however many are under way; a place is asked for again as soon as it is empty; each
              of `stages` steps spends load + matrix cycles in its place
    Source:   Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383
    Counted:  simulate.inner_loop.unit_turns.pipeline

    >>> [pipeline_busy(stages=stages, load_cycles=2800, matrix_cycles=1024) for stages in (2, 4)]
    [0.5355648535564853, 1.0]
    """
    checks.count(stages=stages)
    checks.positive(load_cycles=load_cycles, matrix_cycles=matrix_cycles)
    return min(1.0, stages * matrix_cycles / (load_cycles + matrix_cycles))


def accumulator_registers(*, tile_m: int, tile_n: int, threads: int) -> int:
    """32-bit registers per thread that hold the sums of a block's tile.

    Formula:  ceil(tile_m * tile_n / threads)
    Counted:  tests.inner_loop.test_gemm_tiles.test_a_thread_holds_the_sums_that_are_dealt_to_it

    >>> accumulator_registers(tile_m=128, tile_n=256, threads=256)
    128
    """
    checks.count(tile_m=tile_m, tile_n=tile_n, threads=threads)
    return -(-tile_m * tile_n // threads)


def load_bytes(*, row_elements: int, bytes_per_element: int) -> int:
    """The widest load, in bytes, that is aligned at the start of every row of a matrix stored without gaps.

    Formula:  gcd(row_elements * bytes_per_element, 16)
    Assumes:  the matrix itself begins at a multiple of 16 bytes; a load must be aligned to its own size
    Counted:  tests.inner_loop.test_gemm_tiles.test_a_load_is_as_wide_as_every_row_allows

    >>> [load_bytes(row_elements=elements, bytes_per_element=2) for elements in (50_304, 50_258, 50_257)]
    [16, 4, 2]
    """
    checks.count(row_elements=row_elements, bytes_per_element=bytes_per_element)
    return math.gcd(row_elements * bytes_per_element, WIDEST_LOAD_BYTES)
