"""Step account: where the time of a run went by its log: its typical step, what was longer, what lay between steps,
what was skipped, and when the loss was not itself.

>>> log = StepRecord(software="torchtitan")
>>> for step, loss in enumerate([3.0, 2.9, 2.8, 2.8, 2.7, 2.7, 2.6, 2.6, 2.6, 7.5, 2.6, 2.6]):
...     log.enter(step=step, step_s=1.0 if step != 5 else 4.0, loss=loss)
>>> account = step_account(log)
>>> account.typical_s, round(account.stalls.share, 3), account.spikes
(1.0, 0.214, ((9.0, 7.5),))
"""

import itertools
import math
import statistics
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

from threeloops.training_loop.run.logged.step_record import BESIDE, STATED, StepRecord

LONG = 1.5  # times the typical step: a stall
SPIKE = 8.0  # deviations of the losses before, in the median, above their median
STEADY = 0.01  # of the median: losses that differ by less are as good as equal
BEFORE, FEWEST = 32, 8  # losses that a spike is held against, and how many there have to be
TREND = 20  # entries from which on it is asked whether steps get longer
SLOWER = 1.1  # times as long at the end as at the beginning
RATES_ALONE = "rates alone"  # tokens a second, and no tokens of a step: the clock has no seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LostTime:
    """Time that some entries took beyond the typical step."""

    seconds: float  # of an entry's mean step, for long steps; of the clock, for what lies between
    share: float  # of all of the logged time
    number: int  # of entries
    beside: str  # what stood in the log before most of them; empty where nothing did
    longest_at: float  # its step


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAccount:
    """A training log, taken apart."""

    entries: int
    typical_s: float | None  # of one step, in the median
    clock: str  # where the seconds come from
    first_ratio: float | None  # the first entry's step beside the typical one
    stalls: LostTime | None
    between: LostTime | None  # beside the steps that the log states, by when its lines were written
    slower: float | None  # a step in the last quarter beside one in the first
    skipped: float  # share of updates that were skipped
    skipped_number: int
    spikes: tuple[tuple[float, float], ...]  # step and loss of each spike's beginning
    in_spikes: float  # share of entries
    lost_since: float | None  # the step from which on the loss is no number
    after_loss: float  # share of entries since then


def step_account(log: StepRecord) -> StepAccount:
    """What the entries say together.

    Assumes:  the first entry is the start (compilation, first batches) and no typical one
    Raises:   ValueError for a log without an entry
    """
    if not log.entries:
        raise ValueError(f"the log has no entry of {log.software}'s steps")
    seconds, clock = _seconds(log)
    known = [value for value in seconds[1:] if not math.isnan(value)]
    typical = statistics.median(known) if known else None
    first = seconds[0] / typical if typical and not math.isnan(seconds[0]) else None
    spikes, in_spikes, lost_since, after = _losses(log)
    skipped, updates = sum(log.known("skipped")), _updates(log)
    return StepAccount(
        entries=log.entries,
        typical_s=typical,
        clock=clock,
        first_ratio=first,
        stalls=_stalls(log, seconds, typical) if typical else None,
        between=_between(log) if clock == STATED else None,
        slower=_slower(known),
        skipped=min(1.0, skipped / updates) if updates else 0.0,
        skipped_number=int(skipped),
        spikes=spikes,
        in_spikes=in_spikes,
        lost_since=lost_since,
        after_loss=after,
    )


def _seconds(log: StepRecord) -> tuple[list[float], str]:
    """Seconds of a step in every entry, and where they come from."""
    stated = log.columns["step_s"].tolist()
    if any(not math.isnan(value) for value in stated):
        return stated, log.clock
    rates = log.columns["tokens_per_s"]
    if log.global_batch and log.sequence and log.num_gpus:  # every GPU's share of a step's tokens at its rate
        tokens = log.global_batch * log.sequence / log.num_gpus
        return [tokens / rate if rate > 0 else math.nan for rate in rates], "tokens of a step, at its rate"
    return [1 / rate if rate > 0 else math.nan for rate in rates], RATES_ALONE


def _updates(log: StepRecord) -> float:
    steps = log.known("step")
    return max(steps) - min(steps) + _between_entries(steps) if steps else 0.0


def _between_entries(steps: Sequence[float]) -> float:
    """Steps from one entry to the next, mostly."""
    gaps = Counter(after - before for before, after in itertools.pairwise(steps) if after > before)
    return gaps.most_common(1)[0][0] if gaps else 1.0


def _stalls(log: StepRecord, seconds: Sequence[float], typical: float) -> LostTime:
    """Time beyond the typical step in entries of more than 1.5 times its length.

    Formula:  sum(seconds - typical) / sum(seconds) over entries of equally many steps, the first left out
    Source:   by definition
    Counted:  tests.training_loop.test_step_logs.test_the_time_of_stalls_is_what_was_put_in
    """
    entries = [(place, value) for place, value in enumerate(seconds) if place and not math.isnan(value)]
    long = [(place, value - typical) for place, value in entries if value > LONG * typical]
    return _lost(log, long, total=sum(value for _, value in entries))


def _between(log: StepRecord) -> LostTime | None:
    """Time between two lines beyond the steps that the second one states.

    Formula:  (written - written before) - steps * seconds of a step; less than a second is the stamps' rounding
    Source:   by definition
    Counted:  tests.training_loop.test_step_logs.test_time_between_steps_is_what_was_put_in
    """
    step, each, at = (log.columns[name] for name in ("step", "step_s", "at_s"))
    lost, total = [], 0.0
    for place in range(1, log.entries):
        wall = at[place] - at[place - 1]
        beyond = wall - (step[place] - step[place - 1]) * each[place]
        if math.isnan(beyond) or wall < 0:
            continue
        total += wall
        if beyond > 1.0:
            lost.append((place, beyond))
    return _lost(log, lost, total=total) if total else None


def _lost(log: StepRecord, long: Sequence[tuple[int, float]], *, total: float) -> LostTime:
    lost, beside = sum(value for _, value in long), Counter[int]()
    for place, value in long:
        beside[int(log.columns["beside"][place])] += value  # type: ignore[assignment]
    most = beside.most_common(1)[0] if long else (0, 0.0)
    named = BESIDE[most[0]] if most[0] and most[1] > lost / 2 else ""
    place = max(long, key=lambda one: one[1])[0] if long else 0
    return LostTime(
        seconds=lost,
        share=lost / total if total else 0.0,
        number=len(long),
        beside=named,
        longest_at=log.columns["step"][place],
    )


def _slower(seconds: Sequence[float]) -> float | None:
    """A typical step of the last quarter beside one of the first; None where they are too few or not longer."""
    if len(seconds) < TREND:
        return None
    quarter = len(seconds) // 4
    ratio = statistics.median(seconds[-quarter:]) / statistics.median(seconds[:quarter])
    return ratio if ratio >= SLOWER else None


def _losses(log: StepRecord) -> tuple[tuple[tuple[float, float], ...], float, float | None, float]:
    """Where spikes begin, the share of entries in them, from where on the loss is no number, the share since then."""
    before, spikes, inside, number = deque[float](maxlen=BEFORE), [], 0, 0
    edge, lost_at = math.inf, None
    loss, steps = log.columns["loss"], log.columns["step"]
    stated = any(not math.isnan(value) for value in loss)
    for place, value in enumerate(loss):
        if math.isnan(value) or math.isinf(value):
            lost_at = place if lost_at is None else lost_at
            continue
        lost_at, number = None, number + 1
        if value > edge or (edge == math.inf and value > _edge(before)):
            if edge == math.inf:
                spikes.append((steps[place], value))
                edge = _edge(before)
            inside += 1
        else:
            edge = math.inf
            before.append(value)
    since = None if lost_at is None or not stated or not log.nan_losses else steps[lost_at]
    after = (log.entries - lost_at) / log.entries if since is not None and lost_at is not None else 0.0
    return tuple(spikes), inside / number if number else 0.0, since, after


def _edge(before: Sequence[float]) -> float:
    """What a loss has to exceed to be a spike after these."""
    if len(before) < FEWEST:
        return math.inf
    middle = statistics.median(before)
    spread = statistics.median(abs(value - middle) for value in before)
    return middle + SPIKE * max(spread, STEADY * abs(middle))
