"""Published kernels: from the kernel times that NVIDIA's AIConfigurator collected to the tables of facts/timed_kernels.

    git clone https://github.com/ai-dynamo/aiconfigurator
    pip install pyarrow
    python -m threeloops.measure.published_kernels aiconfigurator

reads the collected files of that folder (they are not part of this book, and pyarrow is needed by nothing else of it)
and writes one table file per device. A fifth of the rows, by a hash of their sizes, enters no cell; of those, a sample
is kept for judging.
"""

import json
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

from threeloops import dtypes
from threeloops.facts import hardware, kernel_times
from threeloops.facts.kernel_times import (
    DECODE,
    DELTA_SCAN,
    EXCHANGES,
    EXPERTS,
    LATENT_DECODE,
    LATENT_PREFILL,
    MATMUL,
    PREFILL,
    STATE_SCAN,
    TimedRow,
)
from threeloops.measure.published_errors import over_all_rows
from threeloops.measure.published_rows import BLOCKS, SYSTEMS, Device, read, table_rows
from threeloops.operations.expected_times import kernel_work, place
from threeloops.operations.roofline import time
from threeloops.training_loop.network.collectives import bus_factor
from threeloops.units import us

INTO = Path(kernel_times.__file__).with_name("timed_kernels")
KEPT_BACK_EACH, KEPT_SAMPLE = 5, 100  # one row in so many; of those, so many stand in the file
KEPT_LESS = 60  # of latent blocks, of scans, of products in fp8 by blocks
NOT_BELOW = 0.01  # the share of calls that are quicker than "the shortest"
TIMED = (
    "three calls to warm up, then replays of a CUDA graph on the same tensors, mean by events; collectives by"
    " nccl-tests inside one node"
)


DEVICES = (
    Device("a100-sxm4-80gb", "a100_sxm", "sglang/0.5.10", "2.27.3", blocks=False),
    Device("h100-sxm5", "h100_sxm", "vllm/0.24.0", "2.29.2"),
    Device("h200-sxm", "h200_sxm", "vllm/0.24.0", "2.29.2"),
    Device("b200-hgx", "b200_sxm", "vllm/0.24.0", "2.29.2"),
    Device("b300-hgx", "b300_sxm", "vllm/0.24.0", "2.29.2"),
    Device("gb200", "gb200", "vllm/0.24.0", "2.29.2"),
    Device("gb300", "gb300", "vllm/0.24.0", "2.29.2"),
    Device("l40s", "l40s", "vllm/0.24.0", "2.27.3"),
    Device("rtx-pro-6000-server", "rtx_pro_6000_server", "vllm/0.24.0", "2.29.2"),
)
POWERS = tuple(2**power for power in range(6, 17))
ROWS = (1, *(2**power for power in range(3, 16)))
HEAD_DIMS = (64, 128, 256)
LATENT_HEADS = (1, 4, 16, 64, 128)
SCANNED = tuple(2**power for power in range(15))
SCANNED_TOKENS = tuple(4**power for power in range(9))
MATRICES = tuple(2**power for power in range(17, 28))
AXES: dict[str, tuple[tuple[int, ...], ...]] = {
    MATMUL: (ROWS, POWERS, POWERS),
    PREFILL: (HEAD_DIMS, (1, 4, 16), tuple(4**power for power in range(7)), tuple(2**power for power in range(4, 15))),
    DECODE: (HEAD_DIMS, tuple(2**power for power in range(13)), tuple(2**power for power in range(1, 18))),
    EXPERTS: (tuple(2**power for power in range(15)), tuple(2**power for power in range(2, 8)), MATRICES),
    LATENT_PREFILL: (LATENT_HEADS, tuple(4**power for power in range(5)), tuple(4**power for power in range(8))),
    LATENT_DECODE: (LATENT_HEADS, tuple(4**power for power in range(6)), tuple(2 * 4**power for power in range(9))),
    DELTA_SCAN: (SCANNED[:13], SCANNED_TOKENS),
    STATE_SCAN: (SCANNED[6:], SCANNED_TOKENS),
}
# Cells as fine as those of other products would make the error half a point smaller, and the files 3 kB larger.
BLOCK_AXES = ((1, *(4**power for power in range(2, 8))), POWERS[1:9], POWERS[1:9])


def kept_back(sizes: Sequence[int]) -> bool:
    """Is a row of these sizes never looked at while a table is made?

    >>> round(sum(kept_back((m, 4096, 4096)) for m in range(1, 1001)) / 1000, 1)
    0.2
    """
    return _hash(sizes) % KEPT_BACK_EACH == 0


def _hash(sizes: Sequence[int]) -> int:
    return zlib.crc32(",".join(map(str, sizes)).encode())


def made(
    rows: Iterable[TimedRow], *, family: str, axes: Mapping[str, Sequence[int]], bound_s: Any, kept: int = KEPT_SAMPLE
) -> dict[str, Any]:
    """One table from rows: the cells' medians in percent, and the sample that was kept back.

    Formula:  shortest: the first percentile of the times; cell: median of time / (bound + shortest) over the rows
              whose nearest cell it is, by logarithms; an empty cell lies on the line between its neighbours along the
              last axis, or goes on as the border does
    """
    rows = [row for row in rows if _within(_where(family, row[0]), axes)]
    used = [row for row in rows if not kept_back(row[0])]
    shortest_s = sorted(seconds for _, seconds in used)[int(NOT_BELOW * len(used))]
    cells: dict[tuple[int, ...], list[float]] = defaultdict(list)
    for sizes, seconds in used:
        at = _where(family, sizes)
        cells[tuple(_nearest(values, at[name]) for name, values in axes.items())].append(
            seconds / (bound_s(kernel_times.sized(family, sizes)) + shortest_s)
        )
    found = {cell: 100 * median(ratios) for cell, ratios in cells.items()}
    lines = [
        _filled([found.get((*above, last)) for last in range(len([*axes.values()][-1]))])
        for above in _places([len(values) for values in [*axes.values()][:-1]])
    ]
    sample = sorted((row for row in rows if kept_back(row[0])), key=lambda row: _hash(row[0]))
    return {
        "rows": len(used),
        "shortest_s": float(f"{shortest_s:.4g}"),
        "axes": {name: list(values) for name, values in axes.items()},
        # nothing stands for a line without a row
        "percents": [[round(one) for one in line if one is not None] for line in lines],
        "kept_back": [[*sizes, float(f"{seconds:.4g}")] for sizes, seconds in sample[:kept]],
    }


def _where(family: str, sizes: Sequence[int]) -> Mapping[str, float]:
    """Where a row stands on the axes of its family's tables."""
    named = kernel_times.sized(family, sizes)
    return named if family in EXCHANGES else place(family, named)


def _nearest(values: Sequence[int], value: float) -> int:
    return min(range(len(values)), key=lambda index: abs(log2(values[index] / value)))


def _places(lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not lengths:
        yield ()
        return
    for first in range(lengths[0]):
        for rest in _places(lengths[1:]):
            yield (first, *rest)


def _within(at: Mapping[str, float], axes: Mapping[str, Sequence[int]]) -> bool:
    """Would a table with these axes answer there?"""
    return all(
        at[name] in values if name in kernel_times.EXACT else at[name] >= values[0] for name, values in axes.items()
    )


def _filled(line: Sequence[float | None]) -> list[float | None]:
    """A line of cells whose empty ones lie on the straight line between their neighbours, or go on as the border does.

    >>> _filled([None, 100.0, None, 120.0, None]), _filled([None, None])
    ([100.0, 100.0, 110.0, 120.0, 120.0], [None, None])
    """
    known = [(index, one) for index, one in enumerate(line) if one is not None]
    if not known:
        return list(line)
    filled: list[float | None] = []
    for index in range(len(line)):
        low = max((one for one in known if one[0] <= index), default=known[0])
        high = min((one for one in known if one[0] >= index), default=known[-1])
        share = (index - low[0]) / (high[0] - low[0]) if high[0] > low[0] else 0.0
        filled.append((1 - share) * low[1] + share * high[1])
    return filled


def document(folder: Path, device: Device, commit: str) -> dict[str, Any]:
    """What is written for one device."""
    part = hardware.part(device.part)
    link = "link_bytes_per_s_one_way" if "link_bytes_per_s_one_way" in part.facts else "host_link_bytes_per_s_one_way"
    tables = []
    for family, format, kernels, rows in table_rows(folder, device):
        exchange = family in EXCHANGES
        peak = 0.0 if exchange else part.peaks[_peak(family, format)].value
        rate = part[link] if exchange else part["memory_bytes_per_s"]
        axes = AXES.get(family) or tuple(tuple(sorted({sizes[axis] for sizes, _ in rows})) for axis in (0, 1))
        kept = KEPT_SAMPLE if family in (MATMUL, PREFILL, DECODE, EXPERTS, *EXCHANGES) else KEPT_LESS
        if format == BLOCKS:
            axes, kept = BLOCK_AXES, KEPT_LESS

        def bound_s(
            sizes: Mapping[str, float],
            *,
            family: str = family,
            format: str = format,
            peak: float = peak,
            rate: float = rate,
        ) -> float:
            if family in EXCHANGES:
                return bus_factor(op=family, ranks=int(sizes["ranks"])) * sizes["size_bytes"] / rate
            work = kernel_work(family, sizes, format)
            return time(work, peak_flops_per_s=peak, memory_bytes_per_s=rate).lower_bound_s

        told: dict[str, object] = {"family": family, "format": format, "kernels": kernels}
        told |= {"engine": kernels[0] if exchange else device.engine_of(family, format)}
        told |= {"peak_flops_per_s": peak, "rate_bytes_per_s": rate}
        named = dict(zip(kernel_times.AXES[family], axes, strict=True))
        table = told | made(rows, family=family, axes=named, bound_s=bound_s, kept=kept)
        covered = [row for row in rows if _within(_where(family, row[0]), named)]
        tables.append(table | over_all_rows(table, covered, kept=[row for row in covered if kept_back(row[0])]))
    products = read(folder, device, f"gemm/{device.engine}/gemm_perf.parquet")
    source = f"github.com/ai-dynamo/aiconfigurator at commit {commit}, {SYSTEMS / device.folder}"
    return {
        "device": products[0]["device"],
        "source": source,
        "licence": "Apache-2.0",
        "timed": TIMED,
        "tables": tables,
    }


def _peak(family: str, format: str) -> str:
    if family not in (MATMUL, EXPERTS, LATENT_PREFILL, LATENT_DECODE) or format == "mxfp4":
        return "bf16"  # queries, and what the kernel multiplies in; weights of mxfp4 meet tokens in 16 bits
    return dtypes.peak_format(format)


def packed(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Every file of the folder by its name: one for each device, and one of what several tables share.

    Formula:  a cell takes as many digits as the widest of its line, three at least; what took how long stands in
              microseconds, its sizes and the axes by their number among those of the family in the file of shapes
    """
    shapes: dict[str, dict[str, list[Any]]] = {"axes": {}, "kept_back": {}}
    files = {}
    for name, content in documents.items():
        tables = []
        for table in content["tables"]:
            sizes = [row[:-1] for row in table["kept_back"]]
            lines = {one: value for one, value in table.items() if one != "percents"}
            lines["axes"] = _number(shapes["axes"].setdefault(table["family"], []), table["axes"])
            lines["kept_back"] = _number(shapes["kept_back"].setdefault(table["family"], []), sizes)
            lines["kept_us"] = [_microseconds(seconds) for *_, seconds in table["kept_back"]]
            told = [f' "{one}": {_short(value)}' for one, value in lines.items()]
            cells = ",\n".join(_short(_digits(line)) for line in table["percents"])
            tables.append("{\n" + ",\n".join([*told, f' "percents": [\n{cells}]']) + "\n}")
        head = [f'"{one}": {json.dumps(value)}' for one, value in content.items() if one != "tables"]
        files[f"{name}.json"] = "{\n" + ",\n".join([*head, '"tables": [' + ", ".join(tables) + "]"]) + "\n}\n"
    shared = [
        f'"{kind}": {{\n' + ",\n".join(f' "{family}": {_lines(some)}' for family, some in of.items()) + "}"
        for kind, of in shapes.items()
    ]
    return files | {kernel_times.SHAPES: "{\n" + ",\n".join(shared) + "\n}\n"}


def _number(known: list[Any], one: Any) -> int:
    """Its place among those that are known, of which it is one from now on."""
    if one not in known:
        known.append(one)
    return known.index(one)


def _microseconds(seconds: float) -> float:
    value = float(f"{seconds / us:.4g}")
    return int(value) if value.is_integer() else value


def _digits(line: Sequence[int]) -> str:
    """The cells of a line, each as wide as the widest.

    >>> _digits([85, 102, 1204]), _digits([])
    ('008501021204', '')
    """
    width = max([3, *(len(str(one)) for one in line)])
    return "".join(str(one).zfill(width) for one in line)


def _lines(some: Sequence[object]) -> str:
    return "[\n  " + ",\n  ".join(map(_short, some)) + "]"


def _short(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def main(words: Sequence[str]) -> None:
    """Read a clone, and write all tables."""
    (folder,) = map(Path, words)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()
    INTO.mkdir(exist_ok=True)
    for name, text in packed({device.part: document(folder, device, commit) for device in DEVICES}).items():
        (INTO / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
