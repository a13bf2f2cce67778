"""What is told of a TensorRT engine's own profile: time by kind of layer, the longest layers, what to look at."""

import json
from pathlib import Path

from threeloops.inner_loop.profiled.engine_profile import EngineProfile, read_profile
from threeloops.units import fmt_percent, fmt_seconds

HEAD_BYTES = 4096
LOGS = (".log", ".txt")
LONGEST = 10
TOLD = {
    "reformat": "copies from one layout or format into another, between two layers that do not share one",
    "quantise": "conversions to INT8 and back that joined no layer: a pair is missing next to them",
    "whole block": "a loadable of a DLA or what TensorRT's compiler joined: one line, which nothing looks inside",
    "wait": "the GPU waits for another engine, a DLA say",
}


def profile_in(path: Path) -> EngineProfile | None:
    """The profile that a file is, or that a log (.log, .txt) holds; None for another file.

    Raises:   ValueError for one that was cut; OSError for what cannot be opened
    """
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).decode("utf-8", "replace").lstrip()
    if path.suffix not in LOGS and not (head.startswith("[") and '"averageMs"' in head and '"name"' in head):
        return None
    return read_profile(path.read_text(encoding="utf-8", errors="replace"))


def engine_text(profile: EngineProfile) -> str:
    """Lines for a terminal."""
    kinds = [
        f"{_share(seconds, profile)}  {kind:<12} {TOLD.get(kind, '')}".rstrip()
        for kind, seconds in profile.by_kind().items()
    ]
    longest = [f"{_share(layer.seconds, profile)}  {layer.name}" for layer in profile.longest(LONGEST)]
    runs = f"{profile.runs:,} run{'s' if profile.runs > 1 else ''}"
    first = f"A TensorRT engine, by its own profile of {runs}: {fmt_seconds(profile.seconds)} a run in its layers"
    return "\n".join([first, "", *kinds, "", f"The longest of {len(profile.layers)} layers:", *longest])


def _share(seconds: float, profile: EngineProfile) -> str:
    return f"  {fmt_seconds(seconds):>9}  {fmt_percent(seconds / profile.seconds):>6}"


def engine_json(profile: EngineProfile) -> str:
    """Base SI units for a script."""
    layers = [{"name": one.name, "kind": one.kind, "seconds": one.seconds} for one in profile.layers]
    return json.dumps(
        {"runs": profile.runs, "seconds": profile.seconds, "by_kind": profile.by_kind(), "layers": layers}, indent=2
    )
