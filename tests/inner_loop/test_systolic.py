"""Systolic arrays: cells that multiply, cycle by cycle, and what vendors print."""

import math
import random

import pytest

from threeloops.drills.gpu_kernels.systolic import FEW, LAYOUT
from threeloops.facts import hardware
from threeloops.inner_loop.kernels import systolic

Matrix = list[list[int]]


def flow(left: Matrix, right: Matrix, side: int) -> tuple[Matrix, int]:
    """The product by a square of cells, and the cycles from its first row to the first row of the next product, which
    follows at once (here the same once more).

    A cell holds two weights: one that multiplies, and one of the next tile. Inputs move right, sums and coming weights
    down, a cell per cycle; a tile's first row tells each cell to take its next weight into use. One weight enters a
    column of cells per cycle, the lowest cell's first.
    """
    rows, inner, columns = len(left), len(right), len(right[0])
    places = [(top, start) for start in range(0, columns, side) for top in range(0, inner, side)]
    tiles = len(places)
    places.append(places[0])  # of the next product, whose first row is awaited

    def weights(tile: int, j: int) -> list[int]:
        """Of a column of cells, from the top down; what the matrix does not have is zero."""
        column = places[tile][1] + j
        lines = range(places[tile][0], places[tile][0] + side)
        return [right[line][column] if line < inner and column < columns else 0 for line in lines]

    cells = range(side)
    waiting = [weights(0, j) for j in cells]  # by column of cells; the first tile is there
    active = [[0] * side for _ in cells]
    to_come: list[list[tuple[int, int]]] = [[] for _ in cells]  # weights a column has still to take in, and their cells
    falling: dict[tuple[int, int], tuple[int, int]] = {}  # by cell: a weight on its way, and the cell that keeps it
    entered: list[tuple[int, int] | None] = []  # by cycle: tile and row
    inputs: dict[tuple[int, int], tuple[int, int, int]] = {}  # by cell: tile, row, number
    sums: dict[tuple[int, int], int] = {}
    product = [[0] * columns for _ in range(rows)]
    tile, row = 0, 0
    while tile <= tiles or inputs:
        fallen = {}
        for j in cells:
            if to_come[j]:
                fallen[0, j] = to_come[j].pop()
        for (i, j), one in falling.items():
            fallen[i + 1, j] = one
        for (i, j), (number, keeper) in fallen.items():
            if i == keeper:
                waiting[j][i] = number
        falling = {cell: one for cell, one in fallen.items() if cell[0] < one[1]}
        if tile <= tiles and (row or not to_come[0]):
            entered.append((tile, row))
            tile, row = (tile, row + 1) if row + 1 < rows and tile < tiles else (tile + 1, 0)
        else:
            entered.append(None)
        moved, added = {}, {}
        for i in cells:
            for j in cells:
                if j:
                    came = inputs.get((i, j - 1))
                else:
                    now = entered[-1 - i] if i < len(entered) else None
                    place = places[now[0]][0] + i if now else 0
                    came = (*now, left[now[1]][place] if place < inner else 0) if now else None
                if came is None:
                    continue
                if came[1] == 0:
                    active[i][j] = waiting[j][i]
                    if i == 0 and came[0] + 1 < len(places):
                        to_come[j] = [(number, keeper) for keeper, number in enumerate(weights(came[0] + 1, j))]
                moved[i, j] = came
                added[i, j] = sums.get((i - 1, j), 0) + came[2] * active[i][j]
                column = places[came[0]][1] + j
                if i == side - 1 and column < columns and came[0] < tiles:
                    product[came[1]][column] += added[i, j]
        inputs, sums = moved, added
    return product, entered.index((tiles, 0))


def test_cells_that_pass_on_what_they_get_multiply_in_as_many_cycles() -> None:
    rng = random.Random(3)
    for rows, inner, columns, side in (
        (5, 9, 7, 3),
        (2, 9, 7, 3),
        (3, 6, 6, 3),
        (7, 4, 11, 4),
        (1, 10, 5, 5),
        (6, 2, 2, 2),
    ):
        left = [[rng.randrange(-9, 10) for _ in range(inner)] for _ in range(rows)]
        right = [[rng.randrange(-9, 10) for _ in range(columns)] for _ in range(inner)]
        product, cycles = flow(left, right, side)
        assert product == [
            [sum(a * b for a, b in zip(line, column, strict=True)) for column in zip(*right, strict=True)]
            for line in left
        ]
        assert cycles == systolic.systolic_cycles(rows=rows, inner=inner, columns=columns, side=side)


def test_the_drill_asks_for_what_the_cells_take() -> None:
    for seed in range(8):
        p = FEW.small(random.Random(seed))
        _product, cycles = flow([[1] * p.inner] * p.rows, [[1] * p.columns] * p.inner, p.side)
        assert FEW.derive(p).value == pytest.approx(cycles / (p.ghz * 1e9), rel=1e-12)
        assert "from this matmul's first row to the next one's" in FEW.ask(p)  # no other end is meant


def test_full_arrays_make_the_peak_that_google_prints() -> None:
    # How to Scale Your Model, part 2, at commit 04d8de58: units of 128 × 128 at 1.5 GHz on a v5e, about 5e13 each.
    part = hardware.part("tpu-v5e")
    m = k = n = 4096
    seconds = systolic.systolic_cycles(rows=m, inner=k, columns=n, side=128) / 1.5e9
    of_one = 2 * m * k * n / seconds
    assert of_one == pytest.approx(5e13, rel=0.02)
    assert of_one * part["matrix_units_per_sm"] == pytest.approx(part.peaks["bf16"].value, rel=0.005)


def test_fewer_rows_than_the_side_save_nothing() -> None:
    few, side = (systolic.systolic_cycles(rows=rows, inner=1000, columns=1000, side=128) for rows in (8, 128))
    assert few == side


@pytest.mark.parametrize(
    ("shape", "rows", "element", "unpadded", "more"),
    [  # XLA's own lists of what filled a TPU's HBM, in the order in memory: size without padding, and memory beyond it
        ((246_534, 1280), 8, 4, "1.17G", "10.0K"),  # github.com/salesforce/ctrl/issues/38
        ((8_388_608, 8, 4), 8, 4, "1.00G", "31.00G"),  # github.com/DifferentiableUniverseInitiative/flowpm/issues/27
        ((12_582_912, 1), 8, 4, "48.00M", "5.95G"),  # github.com/pytorch/xla/issues/1965
        ((2048, 128, 1, 2048), 4, 2, "1.00G", "3.00G"),  # github.com/pytorch/xla/issues/6674
        ((29_184, 1, 2560), 2, 4, "285.00M", "285.00M"),  # github.com/pytorch/xla/issues/3041
    ],
)
def test_arrays_take_what_xla_reports(
    shape: tuple[int, ...], rows: int, element: int, unpadded: str, more: str
) -> None:
    alone = math.prod(shape) * element
    laid_out = systolic.laid_out_bytes(shape=shape, tile=(rows, 128), bytes_per_element=element)
    assert reported(alone, unpadded) == unpadded
    assert reported(laid_out - alone, more) == more


def reported(size: float, like: str) -> str:
    """A size with the prefix and the decimals of another, cut off as XLA does."""
    scale = 10 ** len(like[:-1].partition(".")[2])
    cut = math.floor(size / {"K": 2**10, "M": 2**20, "G": 2**30}[like[-1]] * scale) / scale
    return f"{cut:.{len(str(scale)) - 1}f}{like[-1]}"


def test_the_drill_draws_no_rows_that_lie_in_smaller_tiles() -> None:
    rows = {LAYOUT.draw(random.Random(seed)).rows for seed in range(200)}
    assert min(rows) > 4  # of one row the lists above have tiles of 4 × 128 and of 2 × 128
    assert any(one % 8 for one in rows)


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two dimensions; write one row as"):
        systolic.laid_out_bytes(shape=(5,), tile=(8, 128), bytes_per_element=4)
    with pytest.raises(ValueError, match="rows=0"):
        systolic.systolic_cycles(rows=0, inner=1, columns=1, side=128)
