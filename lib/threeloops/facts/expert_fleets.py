"""Expert fleets: models of many experts as others served them on many GPUs, and what their exchanges took, as printed.

>>> day = served_day("deepseek-day")
>>> f"{day.output_tokens / 1e9:.0f} billion tokens out, {day.mean_nodes} nodes on average"
'168 billion tokens out, 226.75 nodes on average'
>>> exchange_times("low-latency").dispatch_s[-1]
0.000194

Source: catalog/expert_fleets.toml
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.facts.fact import catalogue_files


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeTimes:
    """Dispatch and combine of one layer, by the number of ranks; a rate is bytes of all copies over the time."""

    tokens: int  # of each rank
    hidden: int
    top_k: int
    card_bytes_per_s: float  # of each rank's network card, one way
    ranks: tuple[int, ...]
    dispatch_bytes_per_s: tuple[float, ...]
    combine_bytes_per_s: tuple[float, ...]
    dispatch_s: tuple[float, ...] = ()  # empty where only rates are printed
    combine_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDay:
    """What a service took in and gave out in a day, how fast a node of each pool was, and how many nodes it held."""

    seconds: float
    input_tokens: float
    cached_tokens: float  # of the input: found in a cache
    output_tokens: float
    prefill_tokens_per_s: float  # of a node, cached tokens included
    decode_tokens_per_s: float
    mean_nodes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodePool:
    """A pool that decodes: its ranks, the experts in the slots of each, and what a node of eight of them gave."""

    ranks: int
    slots_per_rank: int
    context: int  # tokens in the cache of a request
    tokens_per_s: float
    requests_per_rank: int | None = None
    user_tokens_per_s: tuple[float, ...] = ()  # from, to


def exchange_times(mode: str) -> ExchangeTimes:
    """Raises: ValueError for a mode whose times nobody printed"""
    return ExchangeTimes(**_row("expert_exchanges", mode))


def served_day(fleet: str) -> ServedDay:
    """Raises: ValueError for a fleet whose day nobody printed"""
    return ServedDay(**_row("expert_fleets", fleet))


def decode_pool(fleet: str) -> DecodePool:
    """Raises: ValueError for a fleet whose pool nobody printed"""
    return DecodePool(**_row("decode_pools", fleet))


def _row(table: str, key: str) -> dict[str, Any]:
    checks.one_of(_tables()[table], row=key)
    row = _tables()[table][key].items()
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row if name != "source"}


@functools.cache
def _tables() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    (content,) = [content for _, content in catalogue_files() if "expert_fleets" in content]
    return content
