"""Hardware by exact part: accelerators, systems on a chip, links and processors, every value with its source.

>>> h100 = part("h100-sxm5")
>>> round(h100.peak_flops_per_s("bf16") / h100["memory_bytes_per_s"])
295

A part answers only for what was printed or measured: an unlisted number format is refused, not replaced by a
neighbour.
"""

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threeloops import checks, spelling
from threeloops.dtypes import PEAK_FORMATS
from threeloops.facts import driver_names
from threeloops.facts.fact import OVERLAY_VARIABLE, Fact, catalogue_files, read_fact

# Every fact a part may carry, with its unit. The name's suffix is the unit; this table says it in words for
# `threeloops sources`.
UNITS = {
    "year": "year",
    "memory_bytes": "B",
    "usable_bytes": "B",
    "memory_bytes_per_s": "B/s",
    "capped_memory_bytes_per_s": "B/s",
    "memory_bus_bits": "bit",
    "memory_bits_per_s_per_pin": "bit/s",
    "sms": "SM",
    "fp32_lanes_per_sm": "lane",
    "gpcs": "GPC",
    "matrix_units_per_sm": "unit",
    "matrix_fmas_per_cycle_fp16": "FMA",
    "matrix_fmas_per_cycle_int8": "FMA",
    "advertised_ops_per_s": "OP/s",
    "boost_clock_hz": "Hz",
    "base_clock_hz": "Hz",
    "all_core_boost_clock_hz": "Hz",
    "l2_bytes": "B",
    "l2_bytes_per_cycle": "B",
    "l1_latency_cycles": "cycle",
    "l2_latency_cycles": "cycle",
    "memory_latency_cycles": "cycle",
    "l3_bytes": "B",
    "shared_memory_bytes_per_sm": "B",
    "l1_bytes_per_sm": "B",
    "register_file_bytes_per_sm": "B",
    "best_gemm_flops_per_s_bf16": "FLOP/s",
    "best_gemm_flops_per_s_fp8": "FLOP/s",
    "tdp_w": "W",
    "link_bytes_per_s_one_way": "B/s",
    "host_link_bytes_per_s_one_way": "B/s",
    "bytes_per_s_one_way": "B/s",
    "advertised_bytes_per_s": "B/s",
    "bytes_per_s_per_link_one_way": "B/s",
    "links_per_gpu": "link",
    "all_to_all_bytes_per_s": "B/s",
    "bits_per_s_per_lane": "bit/s",
    "lanes": "lane",
    "domain_gpus": "GPU",
    "host_processors": "processor",
    "host_memory_bytes": "B",
    "network_cards": "card",
    "cores": "core",
    "threads": "thread",
    "flops_per_cycle_per_core_fp32": "FLOP",
    "flops_per_cycle_per_core_fp64": "FLOP",
    "memory_channels": "channel",
    "memory_transfers_per_s": "1/s",
    "l1_bytes_per_core": "B",
    "l2_bytes_per_core": "B",
    "image_width": "pixel",
    "image_height": "pixel",
    "bits_per_pixel": "bit",
    "frames_per_s": "1/s",
    "row_time_s": "s",
    "beams": "beam",
    "firing_s": "s",
    "firings_per_packet": "firing",
    "packet_bytes": "B",
    "packets_per_s": "1/s",
}

Peaks = Mapping[str, Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One engine of a system on a chip in one power mode."""

    peaks: Peaks  # dense
    sparse_peaks: Peaks  # with 2:4 sparsity


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One exact part: its facts by name, and its peak rates by number format."""

    key: str
    name: str
    vendor: str
    family: str  # the catalogue file: nvidia, socs, links, cpus, …
    facts: Mapping[str, Fact]
    peaks: Peaks = field(default_factory=dict)
    sparse_peaks: Peaks = field(default_factory=dict)
    engines: Mapping[str, Mapping[str, Engine]] = field(default_factory=dict)  # engine -> power mode -> rates

    def __getitem__(self, fact: str) -> float:
        """The value of a fact, in base SI; refused with the list of what is known when the part lacks it."""
        if fact not in self.facts:
            checks.one_of(UNITS, fact=fact)
            raise ValueError(f"{self.key} has no {fact}; known: {', '.join(sorted(self.facts))}")
        return self.facts[fact].value

    def capacity_bytes(self) -> float:
        """Bytes a program can really have: what the driver reports where that is known, else the datasheet's
        figure.
        """
        return self["usable_bytes"] if "usable_bytes" in self.facts else self["memory_bytes"]

    def peak_flops_per_s(self, dtype: str, *, engine: str | None = None, power_mode: str | None = None) -> float:
        """Dense peak rate in a number format, FLOP/s (OP/s for integers).

        Raises ValueError for a format that this part does not list, and for a system on a chip whose engine or power
        mode is not named.
        """
        return self._peak(self._engine(engine, power_mode).peaks, dtype, "dense")

    def sparse_peak_flops_per_s(self, dtype: str, *, engine: str | None = None, power_mode: str | None = None) -> float:
        """Peak rate with 2:4 structured sparsity, FLOP/s: half of those operations multiply by a zero that was pruned
        away.
        """
        return self._peak(self._engine(engine, power_mode).sparse_peaks, dtype, "sparse")

    def _engine(self, engine: str | None, power_mode: str | None) -> Engine:
        if not self.engines:
            if engine or power_mode:
                raise ValueError(f"{self.key} has one engine and one power mode; leave engine and power_mode out")
            return Engine(peaks=self.peaks, sparse_peaks=self.sparse_peaks)
        if engine is None or engine not in self.engines:
            example = next(iter(self.engines))
            working = f"{example} in power mode {next(iter(self.engines[example]))}"
            raise ValueError(
                f"{self.key} needs engine in {{{', '.join(self.engines)}}}, not {engine!r}; for example {working}"
            )
        modes = self.engines[engine]
        if power_mode is None or power_mode not in modes:
            raise ValueError(
                f"{self.key} needs power_mode in {{{', '.join(modes)}}} for engine {engine!r}, not {power_mode!r}"
            )
        return modes[power_mode]

    def _peak(self, peaks: Peaks, dtype: str, which: str) -> float:
        if dtype not in peaks:
            checks.one_of(PEAK_FORMATS, dtype=dtype)
            raise ValueError(
                f"{self.key} has no {which} {dtype} peak in the catalogue; known: {', '.join(peaks) or 'none'}"
            )
        return peaks[dtype].value

    def all_facts(self) -> dict[str, tuple[Fact, str]]:
        """Every value of this part with its unit, under one dotted name each."""
        rows = {name: (fact, UNITS[name]) for name, fact in self.facts.items()}
        rates = [("", Engine(peaks=self.peaks, sparse_peaks=self.sparse_peaks))]
        rates += [(f"{engine}.{mode}.", rate) for engine, modes in self.engines.items() for mode, rate in modes.items()]
        for prefix, rate in rates:
            for kind, peaks in (("peaks", rate.peaks), ("sparse_peaks", rate.sparse_peaks)):
                rows |= {
                    f"{prefix}{kind}.{dtype}": (fact, "OP/s" if dtype.startswith("int") else "FLOP/s")
                    for dtype, fact in peaks.items()
                }
        return rows


def _read_part(key: str, row: Mapping[str, Any], sources: Mapping[str, Any], family: str) -> Part:
    checks.table(**{key: row})
    unknown = set(row) - {"name", "vendor", "facts", "peaks", "sparse_peaks", "engines"}
    if unknown:
        raise ValueError(
            f"{key}: unknown field {sorted(unknown)[0]!r}; known: name, vendor, facts, peaks, sparse_peaks, engines"
        )
    if "name" not in row or "vendor" not in row:
        raise ValueError(f"{key}: a part needs a name and a vendor")

    def facts(table: Mapping[str, Any], place: str, known: tuple[str, ...]) -> dict[str, Fact]:
        checks.table(**{place: table})
        for name in table:
            checks.one_of(known, **{place.split(".")[-1]: name})
        return {name: read_fact(fact, sources, where=f"{place}.{name}") for name, fact in table.items()}

    def engine(rates: Mapping[str, Any], place: str) -> Engine:
        checks.table(**{place: rates})
        return Engine(
            peaks=facts(rates.get("peaks", {}), f"{place}.peaks", PEAK_FORMATS),
            sparse_peaks=facts(rates.get("sparse_peaks", {}), f"{place}.sparse_peaks", PEAK_FORMATS),
        )

    plain = engine(row, key)
    return Part(
        key=key,
        name=row["name"],
        vendor=row["vendor"],
        family=family,
        facts=facts(row.get("facts", {}), f"{key}.facts", tuple(UNITS)),
        peaks=plain.peaks,
        sparse_peaks=plain.sparse_peaks,
        engines={
            name: {mode: engine(rates, f"{key}.{name}.{mode}") for mode, rates in modes.items()}
            for name, modes in row.get("engines", {}).items()
        },
    )


def _rows(overlay: str | Path | None) -> dict[str, tuple[Mapping[str, Any], Mapping[str, Any], str]]:
    """Part key -> (its row, its file's sources, its family), the overlay's last."""
    found = {}
    for name, content in catalogue_files(overlay):
        for key, row in content.get("parts", {}).items():
            found[key] = (row, content.get("sources", {}), name.removesuffix(".toml"))
    return found


def part_keys(*, overlay: str | Path | None = None) -> tuple[str, ...]:
    """The key of every part in the catalogue."""
    return tuple(_rows(overlay))


def part(key: str, *, overlay: str | Path | None = None) -> Part:
    """One part by its key or another spelling of it; a name that fits several is refused with them, an unknown one
    with the nearest.

    >>> part("H100 SXM5").key
    'h100-sxm5'
    >>> part("A100 SXM")
    Traceback (most recent call last):
        ...
    ValueError: part='A100 SXM' may be 'a100-sxm4-40gb' or 'a100-sxm4-80gb'; say which
    """
    if not (overlay or os.environ.get(OVERLAY_VARIABLE)):
        return _shipped_part(key)
    return _found_part(key, overlay)


def _found_part(key: str, overlay: str | Path | None) -> Part:
    rows = _rows(overlay)
    found = part_key(key, overlay=overlay)
    return _read_part(found, *rows[found])


@functools.cache
def _shipped_part(key: str) -> Part:
    """One of those that come with the library, read once: an expected time asks for its part thousands of times."""
    return _found_part(key, None)


def part_key(name: str, *, overlay: str | Path | None = None, kind: str = "part") -> str:
    """The key that a name means, among all parts or those of one kind: "hardware" computes (what is known of it may be
    its memory alone), a "link" carries, a "node" joins GPUs by fast links.

    >>> part_key("4090", kind="hardware"), part_key("nvlink4", kind="link"), part_key("GB200 NVL72", kind="node")
    ('rtx-4090', 'nvlink-4', 'gb200-nvl72')
    """
    rows = {key: row for key, (row, _, _) in _rows(overlay).items()}
    if name in rows:
        return name
    drivers: dict[str, list[str]] = {}
    for driver_name, key in driver_names.DRIVER_NAMES.items():
        drivers.setdefault(key, []).append(driver_name)
    known = {
        key: (str(row.get("name", "")), *drivers.get(key, ()), str(row.get("vendor", "")))
        for key, row in rows.items()
        if isinstance(row, Mapping) and _is_of_kind(row, kind)
    }
    found = spelling.candidates(known, name)
    whole = [key for key in found if any(driver_names.says_all_of(name, one) for one in (key, *known[key][:-1]))]
    if len(whole) == 1:  # a 4080 is no 4080 SUPER
        return whole[0]
    if len(found) == 1 and driver_names.is_one_of_several(found[0], name):
        besides = "another of that name, which is not known here"
        raise ValueError(spelling.which_of(found, what=kind, typed=name, besides=besides))
    return spelling.key_of(known, see=_ALL, **{kind: name})


_ALL = "`threeloops sources --keys` lists all."


def _is_of_kind(row: Mapping[str, Any], kind: str) -> bool:
    has = {
        "part": True,
        "hardware": "peaks" in row or "engines" in row or "usable_bytes" in row.get("facts", {}),
        "link": "bytes_per_s_one_way" in row.get("facts", {}),
        "node": "domain_gpus" in row.get("facts", {}),
    }
    checks.one_of(has, kind=kind)
    return has[kind]
