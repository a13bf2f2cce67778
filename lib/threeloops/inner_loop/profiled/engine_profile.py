"""TensorRT's own profile of an engine: what `trtexec --exportProfile` writes and what `--dumpProfile` prints, layer by
layer.

>>> log = '''
... [I] === Profile (2 iterations ) ===
... [I]    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer
... [I]        0.30         0.15         0.15      75.0   conv1 + relu1
... [I]        0.10         0.05         0.05      25.0   Reformatting CopyNode for Input Tensor 0 to pool
... [I]        0.40         0.20         0.20     100.0   Total
... '''
>>> profile = read_profile(log)
>>> profile.runs, [layer.kind for layer in profile.layers], round(profile.seconds * 1e6)
(2, ['compute', 'reformat'], 200)

Source: NVIDIA/TensorRT, samples/common/sampleReporting.cpp (timeMs is the sum over all runs, averageMs that divided by
        their count, percentage that of the sum over all layers), and issue 3842 (columns of 2024); read on 28
        November 2026
"""

import json
import re
from dataclasses import dataclass

from threeloops.units import ms

HEAD = re.compile(r"=== Profile \((\d+) iterations? \) ===")
STAMP = re.compile(r"^(?:\[[^\]]*\]\s*)*")  # [05/08/2024-14:05:14] [I]
NUMBER = r"\d+(?:\.\d+)?(?:e[-+]?\d+)?"
# What a layer's name says that it does; the first that fits. A loadable and what Myelin compiled are one name each.
KINDS = {
    "reformat": re.compile(r"^Reformatting CopyNode|^Reformat|reformatter \d+$|\bcopy$|^copied_|_copy$"),
    "wait": re.compile(r" finish$"),
    "quantise": re.compile(r"^(Quantize|Dequantize)Linear[^+]*$"),
    "whole block": re.compile(r"^\{ForeignNode\[|^\{.*,.*\}$|^__myl"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLayer:
    """One line of a profile. Several layers of the network may stand in one, joined by plus signs."""

    name: str
    seconds: float  # of one run, on average
    median_s: float | None  # None where the profile has no medians

    @property
    def kind(self) -> str:
        """`compute`, or a key of KINDS."""
        return next((kind for kind, words in KINDS.items() if words.search(self.name)), "compute")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """All layers of an engine, in the order in which they ran."""

    runs: int
    layers: tuple[EngineLayer, ...]

    @property
    def seconds(self) -> float:
        """Of one run: the layers added up, without what lies between them."""
        return sum(layer.seconds for layer in self.layers)

    def by_kind(self) -> dict[str, float]:
        """Seconds of one run for each kind of layer that there is, the longest first."""
        added: dict[str, float] = {}
        for layer in self.layers:
            added[layer.kind] = added.get(layer.kind, 0.0) + layer.seconds
        return dict(sorted(added.items(), key=lambda one: -one[1]))

    def longest(self, most: int) -> list[EngineLayer]:
        """So many layers, the slowest first."""
        return sorted(self.layers, key=lambda layer: -layer.seconds)[:most]


def read_profile(text: str) -> EngineProfile:
    """A profile from a file of --exportProfile, or from a log that --dumpProfile printed.

    Raises:   ValueError for what is neither, holds no layer, or whose total is not the sum of its layers
    """
    written = text.lstrip()
    return _from_json(written) if written.startswith("[\n") or written.startswith("[ {") else _from_log(text)


def _from_json(text: str) -> EngineProfile:
    try:
        rows = json.loads(text)
        runs = next(int(row["count"]) for row in rows if "count" in row)
        layers = tuple(
            EngineLayer(
                name=str(row["name"]),
                seconds=float(row["averageMs"]) * ms,
                median_s=float(row["medianMs"]) * ms if "medianMs" in row else None,
            )
            for row in rows
            if "name" in row
        )
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise ValueError(
            "this is no profile of trtexec: --exportProfile writes a list that begins with a count and has name, timeMs"
            f" and averageMs of each layer ({type(error).__name__}: {error})"
        ) from error
    return _whole(runs, layers)


def _from_log(text: str) -> EngineProfile:
    """The last profile of a log: trtexec prints one, a loop prints many."""
    heads = list(HEAD.finditer(text))
    if not heads:
        raise ValueError(
            "no profile in this text: `trtexec --dumpProfile` prints a line '=== Profile (N iterations ) ===' above its"
            " layers, --exportProfile=FILE writes them as JSON; other logs are read by `threeloops log`"
        )
    runs = int(heads[-1][1])
    lines = [STAMP.sub("", line).strip() for line in text[heads[-1].end() :].splitlines()]
    lines = [line for line in lines if line]
    columns = lines[0] if lines else ""
    medians = "Median" in columns
    last = columns.endswith("Layer")
    row = _row(numbers=4 if medians else 3, name_last=last)
    layers: list[EngineLayer] = []
    for line in lines[1:]:
        found = row.match(line)
        if found is None:
            break
        name, told = (found[2], found[1]) if last else (found[1], found[2])
        numbers = [float(one) for one in told.split()]
        if name == "Total":
            return _whole(runs, tuple(layers), total_s=numbers[0] * ms)
        # The sum has more digits than an average that is rounded to 0.00
        median = numbers[2] * ms if medians else None
        layers.append(EngineLayer(name=name, seconds=numbers[0] * ms / runs, median_s=median))
    return _whole(runs, tuple(layers))


def _row(*, numbers: int, name_last: bool) -> re.Pattern[str]:
    """A line of a log: a name may end in a number of its own, so the columns are counted."""
    told = rf"({NUMBER}(?:\s+{NUMBER}){{{numbers - 1}}})"
    return re.compile(rf"^{told}\s+(\S.*)$" if name_last else rf"^(\S.*?)\s+{told}$")


def _whole(runs: int, layers: tuple[EngineLayer, ...], total_s: float | None = None) -> EngineProfile:
    if runs < 1 or not layers:
        raise ValueError(f"this profile has {runs} runs and {len(layers)} layers; it needs one of each at least")
    added = sum(layer.seconds for layer in layers) * runs
    if total_s is not None and abs(added - total_s) > 0.01 * total_s + 0.01 * ms * len(layers):
        raise ValueError(
            f"the layers of this profile add up to {added / ms:.2f} ms and its total is {total_s / ms:.2f}: a line is"
            " missing or was cut; take the file of --exportProfile"
        )
    return EngineProfile(runs=runs, layers=layers)
