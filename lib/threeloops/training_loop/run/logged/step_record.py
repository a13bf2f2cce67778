"""Step record: the entries of a training log as columns, and what the log states of the run.

>>> log = StepRecord(software="torchtitan")
>>> log.enter(step=10, step_s=0.5, loss=2.25)
>>> log.enter(step=20, step_s=0.5, tokens_per_s=9000.0)
>>> log.columns["step"].tolist(), log.columns["loss"].tolist()
([10.0, 20.0], [2.25, nan])
"""

import math
from array import array
from dataclasses import dataclass, field

# of an entry: its step; seconds of one step; tokens per second and FLOP per second of one GPU; share of the peak; bytes
# and share of the memory; loss; when it was written; how many updates were skipped; what stood between it and the entry
# before, as a number of BESIDE
COLUMNS = (
    *("step", "step_s", "tokens_per_s", "flops_per_s", "mfu", "memory_bytes", "memory_share", "loss", "at_s"),
    *("skipped", "beside"),
)
STATED = "what the log states"
BESIDE = ("nothing", "a checkpoint", "an evaluation")


@dataclass(slots=True, kw_only=True)
class StepRecord:
    """A training log, read. What it does not state is None or empty."""

    software: str
    version: str = ""
    model: str = ""
    hardware: str = ""
    num_parameters: float | None = None
    num_gpus: int | None = None
    sequence: int | None = None
    global_batch: int | None = None
    dtype: str = ""
    peak_flops_per_s: float | None = None  # that the log's own MFU is a share of
    memory_bytes: float | None = None  # of a GPU, as the framework reports it
    layout: dict[str, int] = field(default_factory=dict)  # dp, tp, pp, cp, ep, as far as it is stated
    total_s: float | None = None  # of the whole run, by its summary
    rates: dict[str, float] = field(default_factory=dict)  # samples and steps a second, by its summary
    nan_losses: int = 0  # entries that state a loss which is no number
    retries: int = 0  # lines that say that the allocator had to ask again
    clock: str = ""  # where step_s comes from: STATED or "a progress bar"
    columns: "dict[str, array[float]]" = field(default_factory=lambda: {name: array("d") for name in COLUMNS})

    def enter(self, **values: float | None) -> None:
        """One entry; what it does not state is nan, and nothing stood beside it."""
        loss = values.get("loss")
        self.nan_losses += loss is not None and not math.isfinite(loss)
        for name in COLUMNS:
            value = values.get(name, 0.0 if name == "beside" else None)
            self.columns[name].append(math.nan if value is None else value)

    def known(self, name: str) -> list[float]:
        """A column without what was not stated."""
        return [value for value in self.columns[name] if not math.isnan(value)]

    @property
    def entries(self) -> int:
        return len(self.columns["step"])
