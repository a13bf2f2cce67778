"""Request traces: when real users asked and how long prompts and answers were, as operators of services logged it.

>>> trace = request_trace("azure-conversation-2023")
>>> trace.requests, trace.answer.mean, trace.answer.p50  # a few long answers pull the mean far above the half
(19366, 211.13, 129.0)

Source: facts/asked/*.json; each says where it is from
"""

import functools
import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from threeloops import checks

KEYS = ("azure-code-2023", "azure-conversation-2023", "mooncake-conversation-2024")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Lengths in tokens, of all requests: their mean, and what half, nine tenths and 99 hundredths do not exceed."""

    mean: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    """What is said of a whole trace, and requests that stand for it."""

    name: str
    source: str
    licence: str
    stamp_s: float  # moments are rounded to so many seconds; 0 where they are exact
    requests: int
    seconds: float
    gap_cv: float  # standard deviation over mean of the gaps; of rounded moments it says nothing
    gap_cv_without_longest: float  # the same without the 50 longest gaps
    counts: dict[int, float]  # by window in seconds: variance over mean of the requests in one; Poisson has 1
    prompt: Spread
    answer: Spread
    correlation: float  # of both lengths
    sample: tuple[tuple[int, int], ...]  # prompt and answer of single requests, chosen by an even rule


@functools.cache
def request_trace(key: str) -> RequestTrace:
    """A trace by its key, one of KEYS.

    Raises:   ValueError for any other key
    """
    checks.one_of(KEYS, key=key)
    file = resources.files("threeloops.facts") / "asked" / f"{key}.json"
    content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    content |= {name: Spread(**content[name]) for name in ("prompt", "answer")}
    content |= {"counts": dict(content["counts"]), "sample": tuple(map(tuple, content["sample"]))}
    return RequestTrace(**content)
