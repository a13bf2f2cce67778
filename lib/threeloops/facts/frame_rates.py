"""Frame rates that somebody measured on a system on a chip and published, one per power mode.

>>> found = frame_rate("orin-dla-resnet-34")
>>> found.convnet, found.frames_per_s["maxn"].value
('resnet-34', 285)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops import checks
from threeloops.facts import hardware
from threeloops.facts.fact import Fact, catalogue_files, read_fact

FIELDS = ("name", "part", "engine", "dtype", "convnet", "height", "width", "images", "note", "frames_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRate:
    """What ran, on what, and how many frames a second of it came out."""

    key: str
    name: str
    part: str  # a key of the catalogue's parts
    engine: str
    dtype: str
    convnet: str  # the network that makes most of the arithmetic: a key of the catalogue's convnets
    height: int
    width: int
    images: int  # per frame
    note: str
    frames_per_s: Mapping[str, Fact]  # by power mode


def frame_rate_keys(*, overlay: str | Path | None = None) -> tuple[str, ...]:
    """The key of every published frame rate in the catalogue."""
    return tuple(_rows(overlay))


def frame_rate(key: str, *, overlay: str | Path | None = None) -> FrameRate:
    """One by its exact key; an unknown key is refused with the nearest ones."""
    rows = _rows(overlay)
    checks.one_of(rows, frame_rate=key)
    row, sources = rows[key]
    if set(row) != set(FIELDS):
        wrong = sorted(set(row) ^ set(FIELDS))[0]
        raise ValueError(f"frame_rates.{key}: {wrong!r} is missing or not known; a frame rate has {', '.join(FIELDS)}")
    checks.one_of(hardware.part_keys(overlay=overlay), part=row["part"])
    return FrameRate(
        key=key,
        **{name: row[name] for name in FIELDS if name != "frames_per_s"},
        frames_per_s={
            mode: read_fact(fact, sources, where=f"frame_rates.{key}.{mode}")
            for mode, fact in row["frames_per_s"].items()
        },
    )


def _rows(overlay: str | Path | None) -> dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return {
        key: (row, content.get("sources", {}))
        for _, content in catalogue_files(overlay)
        for key, row in content.get("frame_rates", {}).items()
    }
