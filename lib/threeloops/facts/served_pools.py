"""Served pools: what servers took that read prompts on some GPUs and decode on others, as others measured and published
it: a model, a part, an engine, both pools, and the times to the first token and between two.

>>> points = served_pools()
>>> len(points) > 200, sorted({point.model for point in points})
(True, ['deepseek-v3', 'kimi-k2', 'qwen3-32b'])

Source: facts/served_pools/*.json; each says where its rows are from
"""

import functools
import json
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPool:
    """Equal servers that do the same."""

    workers: int
    tp: int  # GPUs of each group
    dp: int  # groups of a server with requests of their own, which share the experts
    ep: int  # groups of a server's GPUs that hold different experts

    @property
    def gpus(self) -> int:
        """Of all servers."""
        return self.workers * self.tp * self.dp


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolsPoint:
    """One run at a fixed number of requests at a time: as one ends, the next begins."""

    model: str  # a key of the catalogue, as is part
    part: str
    engine: str
    version: str
    format: str  # of weights and what multiplies them; the head's is bf16
    cache: str  # of keys and values
    prefill: ServedPool
    decode: ServedPool
    prompt: int  # tokens
    answer: int
    requests: int  # at a time
    ttft_s: float
    tpot_s: float

    @property
    def requests_per_s(self) -> float:
        """What goes through: as many requests as are inside, over the time that each is.

        Formula:  requests / (TTFT + (answer - 1) * TPOT)
        Source:   Little, 1961, doi:10.1287/opre.9.3.383
        """
        return self.requests / (self.ttft_s + (self.answer - 1) * self.tpot_s)


@functools.cache
def served_pools() -> tuple[PoolsPoint, ...]:
    """All of them."""
    content = json.loads(_file().read_text("utf-8"))
    points = []
    for group in content["groups"]:
        shared = {name: value for name, value in group.items() if name != "rows"}
        for prefill, decode, *rest in group["rows"]:
            own = dict(zip(content["columns"][2:], rest, strict=True))
            both = (ServedPool(**dict(zip(content["pool"], sizes, strict=True))) for sizes in (prefill, decode))
            points.append(PoolsPoint(**shared, **own, prefill=next(both), decode=next(both)))
    return tuple(points)


def served_pools_source() -> str:
    """Where they are from, and how they were timed."""
    content = json.loads(_file().read_text("utf-8"))
    return f"{content['source']} ({content['licence']}); {content['timed']}. Settings: {content['settings']}."


def _file() -> resources.abc.Traversable:
    return resources.files("threeloops.facts") / "served_pools" / "aiconfigurator.json"
