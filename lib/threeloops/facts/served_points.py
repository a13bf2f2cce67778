"""Served points: what one server took for its requests, as others measured and published it: a model, a part, an
engine, so many requests at a time, and the times to the first token and between two.

>>> points = served_points()
>>> len(points) > 1000, sorted({point.part for point in points})
(True, ['b200-hgx', 'b300-hgx', 'gb200', 'h100-sxm5', 'h200-sxm'])

Source: facts/served/*.json; each says where its rows are from
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPoint:
    """One run at a fixed number of requests at a time: as one ends, the next begins."""

    model: str  # a key of the catalogue, as is part
    part: str
    engine: str
    version: str  # empty where the publisher names none
    format: str  # of weights and what multiplies them; the head's is bf16
    cache: str  # format of keys and values
    shortest: float  # share of the stated lengths from which prompts and answers were drawn, up to 1
    rounds: int | None  # requests in all over those at a time; None where nobody says
    tp: int
    ep: int  # of the tp GPUs, how many groups hold different experts
    prompt: int  # tokens, at most
    answer: int  # tokens, at most
    requests: int  # at a time
    ttft_s: float
    tpot_s: float
    dp: int = 1  # groups of tp GPUs with requests of their own, which share the experts

    @property
    def mean_prompt(self) -> int:
        """Tokens of the mean prompt."""
        return round(self.prompt * (1 + self.shortest) / 2)

    @property
    def mean_answer(self) -> int:
        """Tokens of the mean answer."""
        return round(self.answer * (1 + self.shortest) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSource:
    """Where points come from."""

    source: str
    licence: str
    timed: str
    settings: str  # where cache, shortest and rounds are from


@functools.cache
def served_points() -> tuple[ServedPoint, ...]:
    """All points of servers on one tensor group."""
    return tuple(point for content in _contents() for point in _points(content) if point.dp == 1)


@functools.cache
def apart_points() -> tuple[ServedPoint, ...]:
    """All points of servers in which several groups of GPUs have requests, attention and caches of their own.

    >>> sorted({(point.model, point.dp) for point in apart_points()})[:2]
    [('deepseek-v3', 4), ('deepseek-v3', 8)]
    """
    return tuple(point for content in _contents() for point in _points(content) if point.dp > 1)


def served_sources() -> tuple[ServedSource, ...]:
    """Where they come from, each once."""
    each = (ServedSource(**{name: content[name] for name in ServedSource.__slots__}) for content in _contents())
    return tuple(dict.fromkeys(each))


@functools.cache
def _contents() -> tuple[dict[str, Any], ...]:
    folder = resources.files("threeloops.facts") / "served"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".json")), key=lambda entry: entry.name)
    return tuple(json.loads(entry.read_text("utf-8")) for entry in files)


def _points(content: dict[str, Any]) -> Iterator[ServedPoint]:
    for group in content["groups"]:
        shared = {name: value for name, value in group.items() if name != "rows"}
        for row in group["rows"]:
            yield ServedPoint(**shared, **dict(zip(content["columns"], row, strict=True)))
