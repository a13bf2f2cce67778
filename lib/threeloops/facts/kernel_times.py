"""Kernel times: how long single kernels took on GPUs that others own, as tables over sizes.

A table holds, for cells of sizes that we define, the median of (measured time / (bound + shortest kernel)), where the
bound is the roofline's at the peaks that stand in the table. A fifth of the rows, chosen by a hash of their sizes, is
in no cell: a sample of those rows stands beside, and whoever predicts is judged on them (operations/expected_times.py).

>>> table = kernel_table("h100-sxm5", "matmul", "bf16")
>>> table.engine, table.kernels
('vLLM 0.24.0', ('torch.nn.functional.linear',))
>>> 1.0 < table.stretch(m=8192, n=8192, k=8192) < 1.6
True

Source: NVIDIA AIConfigurator's collected kernel times, Apache-2.0; each file says which commit, engine and device. Made
        by measure/published_kernels.py
"""

import functools
import itertools
import json
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from threeloops import checks
from threeloops.units import us

MATMUL, PREFILL, DECODE, EXPERTS = "matmul", "prefill", "decode", "experts"
LATENT_PREFILL, LATENT_DECODE = "latent_prefill", "latent_decode"  # whole blocks of DeepSeek-V3's widths
DELTA_SCAN, STATE_SCAN = "delta_scan", "state_scan"  # of gated delta nets, of Mamba 2
EXCHANGES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
# What a row of a family says about its call, and what its cells are spread over. `group` is query heads per KV head,
# `sparsity` experts per expert that a token chooses, `matrix` the elements of one of an expert's three matrices;
# `scanned` heads of all sequences: each goes through its chunks one after the other.
SIZES = {
    MATMUL: ("m", "n", "k"),
    PREFILL: ("batch", "num_heads", "num_kv_heads", "head_dim", "tokens"),
    DECODE: ("batch", "num_heads", "num_kv_heads", "head_dim", "tokens"),
    EXPERTS: ("tokens", "num_experts", "top_k", "hidden", "intermediate", "ep"),
    LATENT_PREFILL: ("batch", "num_heads", "tokens"),
    LATENT_DECODE: ("batch", "num_heads", "tokens"),
    DELTA_SCAN: ("batch", "key_heads", "value_heads", "key_head_dim", "value_head_dim", "tokens"),
    STATE_SCAN: ("batch", "num_heads", "head_dim", "state_dim", "groups", "chunk", "tokens"),
} | dict.fromkeys(EXCHANGES, ("ranks", "size_bytes"))
AXES = {
    MATMUL: ("m", "n", "k"),
    PREFILL: ("head_dim", "group", "heads", "tokens"),
    DECODE: ("head_dim", "heads", "tokens"),
    EXPERTS: ("tokens", "sparsity", "matrix"),
    LATENT_PREFILL: ("num_heads", "batch", "tokens"),
    LATENT_DECODE: ("num_heads", "batch", "tokens"),
    DELTA_SCAN: ("scanned", "tokens"),
    STATE_SCAN: ("scanned", "tokens"),
} | dict.fromkeys(EXCHANGES, ("ranks", "size_bytes"))
# Beyond its last value an axis goes on at the border's share, but for these: another head, another number of ranks is
# another kernel, and nothing lies between two of them.
EXACT = ("head_dim", "ranks")
FEW_ROWS = 128  # of a product: fewer, and its weights are read for little
ROOFS_S = (5 * us, 50 * us)  # where calls part by their time at the roof: below, between, above
SHAPES = "shapes.json"  # axes, and the sizes of calls that were kept back, which tables of several devices share
TimedRow = tuple[tuple[int, ...], float]  # sizes in the order of SIZES, and seconds


def sized(family: str, sizes: Sequence[int]) -> dict[str, int]:
    """A row's sizes by name.

    >>> sized("matmul", (16, 4096, 1024))
    {'m': 16, 'n': 4096, 'k': 1024}
    """
    return dict(zip(SIZES[family], sizes, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTable:
    """One family of kernels in one format on one device."""

    part: str
    family: str
    format: str  # of both operands of a product, of the cache for attention, of a latent block's weights, of exchanges
    kernels: tuple[str, ...]  # as the source names them
    engine: str
    rows: int  # behind all cells
    peak_flops_per_s: float  # 0 for exchanges
    rate_bytes_per_s: float  # memory's, or the link's one way
    shortest_s: float  # what hardly any call is quicker than
    axes: Mapping[str, tuple[int, ...]]
    stretches: tuple[float | None, ...]  # of the cells, the last axis quickest; None where no row was
    kept_back: tuple[TimedRow, ...]  # a sample of those that are in no cell
    # All that are in no cell, a product's calls of few rows apart from the others: how many, and how far the expected
    # time is from theirs: median and ninth decile of the error's size, median with sign.
    fifth: tuple[tuple[float, ...], ...]
    # All rows, by their time at the roof (ROOFS_S): how many, the share of the roof that half of them reach, and the
    # largest. Nothing for exchanges.
    of_roof: tuple[tuple[float, ...], ...]

    @property
    def calls(self) -> tuple[tuple[dict[str, int], float], ...]:
        """The rows that were kept back, with their sizes by name.

        >>> sizes, seconds = kernel_table("h100-sxm5", "matmul", "bf16").calls[0]
        >>> [*sizes], seconds > 0
        (['m', 'n', 'k'], True)
        """
        return tuple((sized(self.family, sizes), took_s) for sizes, took_s in self.kept_back)

    def stretch(self, **place: float) -> float:
        """Measured time over bound + shortest kernel at a place of the axes.

        Formula:  between the nearest cells, linear in the logarithms of the sizes and of the ratio; beyond the last
                  cell of an open axis, its border; where all cells around are empty, the nearest that is not
        Raises:   ValueError for another axis, for sizes below the first cell, for heads or ranks that were not
                  measured
        """
        if set(place) != set(self.axes):
            raise ValueError(f"place={sorted(place)} must name {', '.join(self.axes)}")
        corners = [self._sides(name, place[name]) for name in self.axes]
        lengths = [len(values) for values in self.axes.values()]
        total = weights = 0.0
        for sides in itertools.product(*corners):
            weight = math.prod(share for _, share in sides)
            found = self.stretches[_flat([index for index, _ in sides], lengths)]
            if found is not None and weight:
                total += weight * math.log(found)
                weights += weight
        return math.exp(total / weights) if weights else self._nearest([sides[0][0] for sides in corners])

    def measured(self, name: str) -> tuple[int, ...]:
        """The values of an axis at which any row was."""
        place = list(self.axes).index(name)
        cells = itertools.product(*self.axes.values())
        return tuple(
            sorted({cell[place] for cell, found in zip(cells, self.stretches, strict=True) if found is not None})
        )

    def _nearest(self, place: Sequence[int]) -> float:
        """Of the cells that hold rows, the stretch of the one fewest steps away; among equals the first."""
        fixed = [name in EXACT for name in self.axes]
        filled = [
            (sum(abs(one - other) for one, other in zip(place, cell, strict=True)), found)
            for cell, found in zip(
                itertools.product(*(range(len(values)) for values in self.axes.values())), self.stretches, strict=True
            )
            if found is not None
            and all(one == other for one, other, same in zip(place, cell, fixed, strict=True) if same)
        ]
        if not filled:
            raise ValueError(f"nobody measured a {self.family} of such sizes on {self.part}")
        return min(filled, key=lambda cell: cell[0])[1]

    def _sides(self, name: str, value: float) -> list[tuple[int, float]]:
        """The cells on both sides along one axis, and the weight of each."""
        values = self.axes[name]
        checks.positive(**{name: value})
        if name in EXACT and value in values:
            return [(values.index(int(value)), 1.0)]
        if name in EXACT or value < values[0]:
            known = ", ".join(map(str, values)) if name in EXACT else f"from {values[0]} on"
            raise ValueError(f"{name}={value:g}: {self.family} was measured on {self.part} for {name} {known}")
        low = min(bisect_right(values, value), len(values) - 1) - 1
        across = math.log(min(value, values[-1]) / values[low]) / math.log(values[low + 1] / values[low])
        return [(low, 1 - across), (low + 1, across)]


def _flat(place: Sequence[int], lengths: Sequence[int]) -> int:
    return functools.reduce(lambda flat, step: flat * step[1] + step[0], zip(place, lengths, strict=True), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTimes:
    """All tables of one device, and where they come from."""

    part: str
    device: str  # as the driver named it
    source: str
    licence: str
    timed: str  # how, in a sentence
    tables: tuple[KernelTable, ...]


def timed_parts() -> list[str]:
    """The parts of the catalogue on which kernels were timed.

    >>> "h100-sxm5" in timed_parts()
    True
    """
    return sorted(name.removesuffix(".json") for name in _files())


def kernel_table(part: str, family: str, format: str) -> KernelTable:
    """One table.

    Raises:   ValueError for a part, a family or a format that was not timed; it names those that were

    >>> kernel_table("h100-sxm5", "matmul", "nvfp4")
    Traceback (most recent call last):
    ValueError: format='nvfp4' is not known; did you mean 'fp8'? Known: bf16, fp8, fp8-block
    """
    checks.one_of(SIZES, family=family)
    found = {table.format: table for table in kernel_times(part).tables if table.family == family}
    checks.one_of(found, format=format)
    return found[format]


@functools.cache
def kernel_times(part: str) -> KernelTimes:
    """What was timed on one part.

    Raises:   ValueError for a part on which nothing was; it names those on which something was
    """
    checks.one_of(timed_parts(), part=part)
    content = json.loads((resources.files("threeloops.facts") / "timed_kernels" / f"{part}.json").read_text("utf-8"))
    told = {name: content[name] for name in ("device", "source", "licence", "timed")}
    return KernelTimes(part=part, tables=tuple(_tables(part, content["tables"])), **told)


def _tables(part: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[KernelTable]:
    for row in rows:
        axes, sizes = (_shapes()[kind][row["family"]][row[kind]] for kind in ("axes", "kept_back"))
        read = ("axes", "kept_back", "kept_us", "percents", "kernels", "fifth", "of_roof")
        rest = {name: row[name] for name in row if name not in read}
        yield KernelTable(
            part=part,
            kernels=tuple(row["kernels"]),
            axes={name: tuple(steps) for name, steps in axes.items()},
            stretches=tuple(_stretches(row["percents"], width=len([*axes.values()][-1]))),
            # microseconds as they are written, so that no digit is lost on the way to seconds
            fifth=tuple(map(tuple, row["fifth"])),
            of_roof=tuple(map(tuple, row["of_roof"])),
            kept_back=tuple((tuple(one), float(f"{took}e-6")) for one, took in zip(sizes, row["kept_us"], strict=True)),
            **rest,
        )


def _stretches(percents: Sequence[str], *, width: int) -> Iterator[float | None]:
    """Line by line, each cell as wide as the others; a line that stands empty is as long, and holds nothing."""
    for line in percents:
        digits = len(line) // width
        yield from (int(line[at * digits : (at + 1) * digits]) / 100 if line else None for at in range(width))


@functools.cache
def _shapes() -> Mapping[str, Mapping[str, Sequence[Any]]]:
    text = (resources.files("threeloops.facts") / "timed_kernels" / SHAPES).read_text("utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


def _files() -> list[str]:
    folder = resources.files("threeloops.facts") / "timed_kernels"
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return [name for name in names if name.endswith(".json") and name != SHAPES]
