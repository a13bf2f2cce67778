"""Suspects of a log on a page and in JSON: share, limit, what to try, what to record, where it is taught, a drill."""

from collections.abc import Sequence
from typing import Any

from threeloops.product_loop.logged.engine_suspects import (
    ANSWERS,
    CACHE_FULL,
    HELD_BACK,
    NO_DEMAND,
    NO_SEATS,
    OFFLOADED,
    PROMPTS,
)
from threeloops.training_loop.run.logged.log_suspect import LogSuspect
from threeloops.training_loop.run.logged.step_suspects import (
    BETWEEN,
    NAN,
    RETRIES,
    SKIPPED,
    SLOWING,
    SPIKES,
    STALLS,
    STEP,
)

# Each suspect, and a drill on it; the drill says which part teaches it.
DRILL = {
    CACHE_FULL: "kv-largest-batch",
    NO_SEATS: "batching-more-slots",
    HELD_BACK: "batching-budget-ttft",
    NO_DEMAND: "capacity-busy-enough",
    PROMPTS: "serving-prefix-savings",
    ANSWERS: "measured-over-the-floor",
    OFFLOADED: "compression-fewest-gpus",
    NAN: "failure-lost-time",
    SKIPPED: "precision-scale-recovery",
    SPIKES: "failure-lost-time",
    STALLS: "failure-rare-stalls",
    BETWEEN: "failure-saving-share",
    SLOWING: "failure-slowest-rank",
    RETRIES: "memory-largest-micro-batch",
    STEP: "measured-mfu-long-sequences",
}
ORDINALS = ("First suspect", "Second", "Third")


def suspect_rows(suspects: Sequence[LogSuspect]) -> list[str]:
    """The first three."""
    from threeloops import contents
    from threeloops.drills.engine.bank import DRILLS

    rows: list[str] = []
    for ordinal, one in zip(ORDINALS, suspects, strict=False):
        drill = DRILLS[DRILL[one.illness]]
        taught = contents.taught_here(drill.section, drill.loop)[0]
        rows += ["", f"{ordinal}: {one.illness}. {one.because[0].upper()}{one.because[1:]}."]
        rows += [f"  at most    {one.at_most:.2f} times as fast"] if one.at_most is not None else []
        rows += [f"  try first  {one.first_try}"]
        rows += [f"  record     {one.record_next}"] if one.record_next else []
        rows += [f"  taught in  {taught}", f"  drill      threeloops drill {drill.key}"]
    return rows or ["", "No suspect: the log shows nothing that takes a hundredth of the time."]


def suspects_told(suspects: Sequence[LogSuspect]) -> list[dict[str, Any]]:
    """For a script."""
    return [
        {"illness": one.illness, "share": one.share, "at_most": one.at_most, "because": one.because,
         "try_first": one.first_try, "record": one.record_next or None, "drill": DRILL[one.illness]}
        for one in suspects
    ]  # fmt: skip
