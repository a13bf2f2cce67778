"""Published errors: what a table of kernel times says of every row that it covers: how far the expected time is from
those that are in no cell, and what share of their roof all of them reach.

A table's file holds a sample of such rows; these figures are over all of them, and are made with the table.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from threeloops.facts.kernel_times import EXCHANGES, FEW_ROWS, MATMUL, ROOFS_S, KernelTable, TimedRow, sized
from threeloops.operations.expected_times import errors, kernel_expected
from threeloops.training_loop.network.measured_collectives import collective_expected

DIGITS = 3


def over_all_rows(
    table: Mapping[str, Any], rows: Sequence[TimedRow], *, kept: Sequence[TimedRow]
) -> dict[str, list[list[float]]]:
    """What a table that was made says in `fifth` and `of_roof`, from every row that it covers and those of them that
    are in no cell.
    """
    made = _as_read(table)
    expect = collective_expected if made.family in EXCHANGES else kernel_expected
    found = [errors(made, some, expect) for some in _apart(made.family, kept)]
    return {
        "fifth": [[one.rows, *map(_short, (one.median, one.ninth_decile, one.signed_median))] for one in found],
        "of_roof": [] if made.family in EXCHANGES else _of_roof(made, rows),
    }


def _as_read(table: Mapping[str, Any]) -> KernelTable:
    """The table as its file will say it, with its cells in whole percents."""
    width = len([*table["axes"].values()][-1])
    cells = [one for line in table["percents"] for one in line or [None] * width]
    read = ("family", "format", "engine", "rows", "shortest_s", "peak_flops_per_s", "rate_bytes_per_s")
    return KernelTable(
        part="",
        kernels=tuple(table["kernels"]),
        axes={name: tuple(steps) for name, steps in table["axes"].items()},
        stretches=tuple(None if one is None else one / 100 for one in cells),
        kept_back=(),
        fifth=(),
        of_roof=(),
        **{name: table[name] for name in read},
    )


def _apart(family: str, rows: Sequence[TimedRow]) -> list[list[TimedRow]]:
    if family != MATMUL:
        return [list(rows)]
    return [[row for row in rows if (row[0][0] < FEW_ROWS) is few] for few in (True, False)]


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _of_roof(table: KernelTable, rows: Sequence[TimedRow]) -> list[list[float]]:
    classes: list[list[float]] = [[] for _ in range(len(ROOFS_S) + 1)]
    for sizes, took_s in rows:
        bound_s = kernel_expected(table, sized(table.family, sizes)).bound_s
        classes[sum(bound_s >= edge for edge in ROOFS_S)].append(bound_s / took_s)
    return [[len(some), _short(median(some)), _short(max(some))] if some else [0, 0, 0] for some in classes]
