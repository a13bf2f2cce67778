"""Engine exchanges: what the all-reduces of inference engines take inside a node. On few bytes each engine has a kernel
of its own, which every GPU runs on the others' memory; on many it leaves them to NCCL.

>>> small_s = engine_all_reduce_s("h100-sxm5", engine="vLLM", ranks=8, size_bytes=16e3)
>>> 4e-6 < small_s < 8e-6  # NCCL's shortest are three times as long
True

Source: facts/timed_exchanges/*.json; it says where its rows are from
"""

import functools
import json
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from math import log
from typing import Any

from threeloops import checks


def engine_all_reduce_s(part: str, *, engine: str, ranks: int, size_bytes: float) -> float:
    """An all-reduce as an engine does it, in a CUDA graph.

    Formula:  between two measured sizes a straight line in logarithms; below the smallest its time, above the largest
              its rate
    Raises:   ValueError for a part, engine or number of ranks that was not measured
    """
    checks.positive(size_bytes=size_bytes)
    measured = _measured()
    checks.one_of(sorted({of for of, _, _ in measured}), part=part)
    checks.one_of(sorted({name for of, name, _ in measured if of == part}), engine=engine)
    timed = [count for of, name, count in measured if (of, name) == (part, engine)]
    if ranks not in timed:
        raise ValueError(
            f"ranks={ranks} was not timed with {engine} on {part}; these were: {', '.join(map(str, timed))}"
        )
    points = measured[part, engine, ranks]
    (smallest, first_s), (largest, last_s) = points[0], points[-1]
    if size_bytes <= smallest:
        return first_s
    for (low, low_s), (high, high_s) in pairwise(points):
        if size_bytes <= high:
            return float(low_s * (high_s / low_s) ** (log(size_bytes / low) / log(high / low)))
    return last_s * size_bytes / largest


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineExchange:
    """What one engine's all-reduce took among so many GPUs, by size."""

    part: str
    engine: str
    version: str
    ranks: int
    source: str
    licence: str
    points: tuple[tuple[int, float], ...]  # bytes of one GPU's tensor and seconds, rising in bytes


@functools.cache
def engine_exchanges() -> tuple[EngineExchange, ...]:
    """All of them, as they were timed.

    >>> one = engine_exchanges()[0]
    >>> one.engine, one.version, one.ranks, one.points[0][0]
    ('TensorRT-LLM', '1.0.0', 2, 256)
    """
    content = _content()
    return tuple(
        EngineExchange(
            part=row["part"],
            engine=row["engine"],
            version=row["version"],
            ranks=row["ranks"],
            source=content["source"],
            licence=content["licence"],
            points=tuple(zip(content["sizes_bytes"], row["seconds"], strict=True)),
        )
        for row in content["rows"]
    )


def engine_exchanges_source() -> str:
    """Where the times come from, in a sentence."""
    return str(_content()["source"])


@functools.cache
def _measured() -> dict[tuple[str, str, int], tuple[tuple[float, float], ...]]:
    """(bytes, seconds), rising, by part, engine and ranks."""
    content = _content()
    sizes = content["sizes_bytes"]
    return {
        (row["part"], row["engine"], row["ranks"]): tuple(zip(sizes, row["seconds"], strict=True))
        for row in content["rows"]
    }


@functools.cache
def _content() -> dict[str, Any]:
    file = resources.files("threeloops.facts") / "timed_exchanges" / "aiconfigurator.json"
    return json.loads(file.read_text("utf-8"))  # type: ignore[no-any-return]
