"""`threeloops measured`: how far the expected times of kernels are from times that others measured."""

from collections.abc import Iterator

from threeloops import spelling
from threeloops.facts import hardware, kernel_times
from threeloops.facts.kernel_times import FEW_ROWS, MATMUL
from threeloops.units import fmt_seconds

HEAD = ("part", "kernels", "format", "measured with", "rows", "shortest", "judged on", "median", "p90", "sign")
MEANS = (
    "Expected times come from the rows; each is judged on a fifth of all rows, chosen by a hash of the sizes, that no"
    " table has seen; where the cells' borders lie was chosen with such errors in view. median, p90: of the error's"
    " size; sign: its median with sign, above 0 where the kernel was quicker than expected."
)


def report(part: str | None) -> str:
    """The table, a line per family and format, and where the measurements come from."""
    parts = kernel_times.timed_parts() if part is None else [_key(part)]
    rows = [HEAD, *(row for name in parts for row in _rows(name))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    sources = []
    for name in parts:
        told = kernel_times.kernel_times(name)
        sources.append(f"{name}: {told.device}; {told.source} ({told.licence})")
    timed = sorted({kernel_times.kernel_times(name).timed for name in parts})
    return "\n".join([*lines, "", MEANS, "", *(f"Timed: {how}." for how in timed), *sources])


def _key(typed: str) -> str:
    named = {name: (hardware.part(name).name,) for name in kernel_times.timed_parts()}
    return spelling.key_of(named, see="`threeloops measured` lists all.", accelerator=typed)


def _rows(part: str) -> Iterator[tuple[str, ...]]:
    for table in kernel_times.kernel_times(part).tables:
        for what, (rows, *found) in zip(_groups(table.family), table.fifth, strict=True):
            middle, ninth, signed = found
            yield (
                part,
                what,
                table.format,
                table.engine,
                f"{table.rows:,}",
                fmt_seconds(table.shortest_s),
                f"{rows:,}",
                *(f"{share:.1%}".replace("%", " %") for share in (middle, ninth)),
                f"{signed:+.1%}".replace("%", " %"),
            )


def _groups(family: str) -> tuple[str, ...]:
    """What is judged apart: a matmul of few rows is another kind of work than one of many."""
    if family != MATMUL:
        return (family.replace("_", "-"),)
    return f"matmul, below {FEW_ROWS} rows", f"matmul, {FEW_ROWS} rows and more"
