"""`threeloops measured`: how far the expected times of kernels are from times that others measured, and from what
`threeloops record` wrote here.
"""

from collections import defaultdict
from collections.abc import Iterator

from threeloops import spelling
from threeloops.contents import reader_folder
from threeloops.facts import hardware, kernel_times, recorded
from threeloops.facts.kernel_times import FEW_ROWS, MATMUL, PREFILL
from threeloops.facts.printed_rates import matmul_rates
from threeloops.facts.recorded import Measured, Recording
from threeloops.operations.expected_times import errors_of, expected_prefill, expected_product
from threeloops.units import fmt_seconds

HEAD = ("part", "kernels", "format", "measured with", "rows", "shortest", "judged on", "median", "p90", "sign")
MEANS = (
    "Expected times come from the rows; each is judged on a fifth of all rows, chosen by a hash of the sizes, that no"
    " table has seen; where the cells' borders lie was chosen with such errors in view. median, p90: of the error's"
    " size; sign: its median with sign, above 0 where the kernel was quicker than expected."
)
RECORDED = (
    "A line that says `recorded` holds the same expected times against all matching cases of one recording by"
    " `threeloops record` (yours are looked for in {folder}): matmuls of torch one by one with their launches, in fp8"
    " without the quantising of their input that an engine's layer includes, and attention by the kernel that is named."
    " `threeloops record --table` shows every case beside its bound, also for a card that no table knows. A line that"
    " says `printed` does the same with rates that a library's authors published, of matmuls alone as well."
)
ATTENTION = {"attention_causal": "FlashAttention-2", "attention_cudnn": "cuDNN"}


def report(part: str | None) -> str:
    """The table, a line per family and format, and where the measurements come from."""
    parts = kernel_times.timed_parts() if part is None else [_key(part)]
    folder = reader_folder() / "recorded"
    recordings = [*recorded.shipped(), *recorded.in_folder(folder)]
    rows = [
        HEAD,
        *(row for name in parts for row in (*_rows(name), *_recorded_rows(name, recordings), *_printed_rows(name))),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    sources = []
    for name in parts:
        told = kernel_times.kernel_times(name)
        sources.append(f"{name}: {told.device}; {told.source} ({told.licence})")
    sources += [f"printed: {rates.source}" for rates in matmul_rates() if rates.like in parts]
    timed = sorted({kernel_times.kernel_times(name).timed for name in parts})
    return "\n".join(
        [*lines, "", MEANS, RECORDED.format(folder=folder), "", *(f"Timed: {how}." for how in timed), *sources]
    )


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
                *_shares(middle, ninth, signed),
            )


def _recorded_rows(part: str, recordings: list[Recording]) -> Iterator[tuple[str, ...]]:
    """A line per recording of this part, kind of kernel and format."""
    for recording in recordings:
        if recording.stamp.part != part:
            continue
        found = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
        for one in recording.measured.values():
            if (expected_s := _expected_s(part, one)) is not None:
                found[_kind(one), one.case.dtype].append((expected_s, one.median))
        for (what, number_format), pairs in sorted(found.items()):
            yield _row(part, what, number_format, f"recorded {recording.stamp.measured}", pairs)


def _printed_rows(part: str) -> Iterator[tuple[str, ...]]:
    """A line per table that a library's authors printed, of few rows and of many."""
    formats = {table.format for table in kernel_times.kernel_times(part).tables if table.family == MATMUL}
    for rates in matmul_rates():
        if rates.like != part or rates.format not in formats:
            continue
        found = defaultdict[str, list[tuple[float, float]]](list)
        for (m, n, k), took_s in rates.seconds:
            expected_s = expected_product(part, m=m, n=n, k=k, format=rates.format).seconds
            found[_groups(MATMUL)[m >= FEW_ROWS]].append((expected_s, took_s))
        for what, pairs in sorted(found.items()):
            yield _row(part, what, rates.format, f"printed, {rates.library} on {rates.part}", pairs)


def _row(part: str, what: str, number_format: str, engine: str, pairs: list[tuple[float, float]]) -> tuple[str, ...]:
    """Of pairs of expected and measured seconds."""
    far = errors_of([expected_s / took_s - 1 for expected_s, took_s in pairs])
    shortest = fmt_seconds(min(took_s for _, took_s in pairs))
    shares = _shares(far.median, far.ninth_decile, far.signed_median)
    return part, what, number_format, engine, f"{far.rows:,}", shortest, f"{far.rows:,}", *shares


def _kind(one: Measured) -> str:
    case = one.case
    if case.kind in ATTENTION:
        return f"{PREFILL}, {ATTENTION[case.kind]}"
    return _groups(MATMUL)[case.sizes["m"] >= FEW_ROWS]


def _expected_s(part: str, one: Measured) -> float | None:
    """By the part's tables; nothing for work or a format that they do not hold."""
    case, sizes = one.case, one.case.sizes
    formats = {(table.family, table.format) for table in kernel_times.kernel_times(part).tables}
    if case.kind == "gemm" and (MATMUL, case.dtype) in formats:
        return expected_product(part, m=sizes["m"], n=sizes["n"], k=sizes["k"], format=case.dtype).seconds
    if case.kind in ATTENTION and (PREFILL, case.dtype) in formats:
        heads, width = sizes["heads"], sizes["head_dim"]
        return expected_prefill(
            part,
            batch=sizes["batch"],
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=width,
            tokens=sizes["tokens"],
            cache=case.dtype,
        ).seconds
    return None


def _shares(middle: float, ninth: float, signed: float) -> tuple[str, str, str]:
    """As the table's last three columns have them."""
    return f"{middle:.1%}".replace("%", " %"), f"{ninth:.1%}".replace("%", " %"), f"{signed:+.1%}".replace("%", " %")


def _groups(family: str) -> tuple[str, ...]:
    """What is judged apart: a matmul of few rows is another kind of work than one of many."""
    if family != MATMUL:
        return (family.replace("_", "-"),)
    return f"matmul, below {FEW_ROWS} rows", f"matmul, {FEW_ROWS} rows and more"
