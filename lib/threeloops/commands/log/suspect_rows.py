"""Suspects of a log: the drill on each, the page that ends with them, and what a script reads of them."""

import functools
from collections.abc import Sequence
from typing import Any

from threeloops.commands.trace.own_drill import Asks, Question, of_half, question_of
from threeloops.commands.trace.told_page import Table, as_rows, html_page, suspect_rows, told_suspects
from threeloops.product_loop.logged.engine_account import Pace
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
from threeloops.training_loop.run.logged.step_account import RATES_ALONE, StepAccount
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
from threeloops.units import day, fmt_seconds

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
NO_SUSPECT = "No suspect: the log shows nothing that takes a hundredth of the time."


def pace_question(paced: Pace | None) -> Question | None:
    """Of an engine: the time from token to token, by what runs and what comes out."""
    if not paced:
        return None
    what = f"{paced.running:,.1f} run, and {paced.running / paced.step_s:,.1f} tokens come out a second"
    asked = f"{what}. How long does one request take from token to token? "
    return Question(asked, paced.step_s, "s", "how long one request takes from token to token")


def day_question(account: StepAccount) -> Question | None:
    """Of a training run: steps a day, by the typical one."""
    if not account.typical_s or account.clock == RATES_ALONE:
        return None
    asked = f"A typical step takes {fmt_seconds(account.typical_s)}. How many fit into a day? "
    return Question(asked, float(int(day / account.typical_s)), "", "how many steps fit into a day")


def log_asks(beside: Question | None) -> Asks:
    """What `--drill` asks of a log's suspects: `beside` of one without a limit, whose share is of no time."""
    return functools.partial(question_of, otherwise=lambda one: of_half(one) if one.at_most else beside)


def log_as_text(
    blocks: Sequence[str | Table], suspects: Sequence[LogSuspect], footer: Sequence[str], *, asks: Asks
) -> str:
    """The page for a terminal."""
    rows = as_rows(blocks)
    rows += suspect_rows(told_suspects(suspects, DRILL, asks)) or ["", NO_SUSPECT]
    return "\n".join(row.rstrip() for row in (*rows, "", *footer))


def log_as_html(
    blocks: Sequence[str | Table], suspects: Sequence[LogSuspect], footer: Sequence[str], *, asks: Asks, name: str
) -> str:
    """The same for a browser; `name` is the log's."""
    told = told_suspects(suspects, DRILL, asks)
    return html_page(blocks, title=f"What {name} says", suspects=told, none=NO_SUSPECT, footer=footer)


def suspects_told(suspects: Sequence[LogSuspect]) -> list[dict[str, Any]]:
    """For a script."""
    return [
        {"illness": one.illness, "share": one.share, "at_most": one.at_most, "because": one.because,
         "try_first": one.first_try, "record": one.record_next or None, "drill": DRILL[one.illness]}
        for one in suspects
    ]  # fmt: skip
