"""Engine record: what an engine's log states of the engine, and its moments as columns.

>>> log = EngineRecord(engine="vLLM")
>>> log.enter(at_s=0.0, running=4.0, waiting=1.0, kv_usage=0.5)
>>> log.columns["running"].tolist(), log.columns["output_per_s"].tolist()
([4.0], [nan])
"""

import math
from array import array
from collections import Counter
from dataclasses import dataclass, field

# of a moment: when it was written; requests that run, that wait, and that wait deferred; share of the cache in use;
# prompt and output tokens a second; which of several engines or ranks wrote it
COLUMNS = ("at_s", "running", "waiting", "deferred", "kv_usage", "prompt_per_s", "output_per_s", "rank")
STAGES = ("waits", "prompt", "answer")  # of a request's time


@dataclass(slots=True, kw_only=True)
class EngineRecord:
    """An engine's log, read. What it does not state is None or empty."""

    engine: str
    version: str = ""
    model: str = ""
    hardware: str = ""
    dtype: str = ""
    weights: str = ""  # their format, where another than dtype
    cache: str = ""  # its format; "auto" is dtype
    tp: int | None = None
    max_model_len: int | None = None
    seats: int | None = None  # requests that may run at once
    step_tokens: int | None = None  # of one step at most
    block_tokens: int | None = None
    num_blocks: int | None = None
    kv_tokens: int | None = None  # that the cache holds
    kv_bytes: float | None = None  # of one GPU
    weights_bytes: float | None = None  # of one GPU
    layers_on_gpu: tuple[int, int] | None = None  # of how many
    preempted: int | None = None  # None where the log cannot say; 0 where it can and does not
    requests: float | None = None  # that ended
    asked_tokens: float = 0.0  # of prompts
    found_tokens: float = 0.0  # of these, in the prefix cache
    hit_rate: float | None = None  # where the log states it itself
    stages: dict[str, float] = field(default_factory=dict)  # seconds of all requests, by STAGES
    scraped: bool = False  # a scrape: moments are few
    columns: "dict[str, array[float]]" = field(default_factory=lambda: {name: array("d") for name in COLUMNS})
    tokens: Counter[str] = field(default_factory=Counter)  # prompt and output, where they are counted

    def enter(self, **values: float | None) -> None:
        """One moment; what it does not state is nan."""
        for name in COLUMNS:
            value = values.get(name)
            self.columns[name].append(math.nan if value is None else value)

    def mean(self, name: str) -> float | None:
        """Of a column, over the moments that state it."""
        known = [value for value in self.columns[name] if not math.isnan(value)]
        return sum(known) / len(known) if known else None

    @property
    def entries(self) -> int:
        return len(self.columns["running"])

    @property
    def prefix_hits(self) -> float | None:
        """Share of prompt tokens that the prefix cache had."""
        return self.found_tokens / self.asked_tokens if self.asked_tokens else self.hit_rate

    def least(self, name: str, value: float) -> None:
        """A statement of several workers: the smallest counts."""
        held = getattr(self, name)
        setattr(self, name, value if held is None else min(held, value))
