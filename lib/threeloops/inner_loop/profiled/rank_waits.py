"""Rank waits: an exchange begins on a rank when it arrives and ends on all when the last has come, so that the length
of the same exchange on every rank says who was waited for, without any two clocks that agree.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from threeloops.inner_loop.profiled.rank_record import RankRecord
from threeloops.inner_loop.profiled.rank_timeline import device_of, window

LAGS = 0.05  # of a step: below this, ranks that differ are as alike as ranks are
ONE_WAY = re.compile(r"send|recv|broadcast|_Reduce_", re.I)  # not everybody waits for everybody


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWaits:
    """What the ranks of a run waited for each other."""

    ranks: tuple[int, ...]
    waited_s: tuple[float, ...]  # by rank
    span_s: tuple[float, ...]
    matched: int  # exchanges that were found on every rank of their group
    unmatched: int  # that were not, on the first rank
    by_step: tuple[tuple[str, int, float], ...]  # step, the rank that was waited for, seconds (median of the others)
    since: str  # the step from which on the slowest was always waited for; empty if there is none

    @property
    def slowest(self) -> int:
        """The rank that waited least."""
        return min(zip(self.waited_s, self.ranks, strict=True))[1]

    @property
    def shares(self) -> dict[int, float]:
        """Of its time, what each rank waited."""
        return dict(
            zip(self.ranks, (w / span for w, span in zip(self.waited_s, self.span_s, strict=True)), strict=True)
        )

    @property
    def lag(self) -> float:
        """Share of their time that the others waited longer than the slowest did, on average."""
        own = self.shares[self.slowest]
        return fmean(share - own for rank, share in self.shares.items() if rank != self.slowest)


def waited_s(lengths_s: Sequence[float]) -> tuple[float, ...]:
    """What each rank waits in one exchange, from the lengths that its ranks give it.

    Formula:  length on this rank - shortest length on any rank
    Assumes:  the exchange itself takes equally long everywhere, and the last to arrive waits for nobody
    Source:   by definition
    Counted:  tests.inner_loop.test_profiled_ranks.arrivals

    >>> waited_s([5.0, 2.0, 4.0])
    (3.0, 0.0, 2.0)
    """
    shortest = min(lengths_s)
    return tuple(length - shortest for length in lengths_s)


def rank_waits(records: Sequence[RankRecord]) -> RankWaits | None:
    """The same exchanges on all ranks, held against each other; None where no exchange can be matched.

    Assumes:  exchanges of one name and group come in the same order on every rank
    Raises:   ValueError for two records of one rank
    """
    ranks = [number if record.rank is None else record.rank for number, record in enumerate(records)]
    if len(set(ranks)) < len(ranks):
        said = ", ".join(map(str, sorted(ranks)))
        raise ValueError(f"two files are of one rank (ranks {said}); give the files of one run, one a rank")
    exchanges = [_exchanges(record) for record in records]
    waits, by_step, matched = [0.0] * len(ranks), dict[str, list[tuple[int, list[float]]]](), 0
    for key in dict.fromkeys(key for own in exchanges for key in own):
        members = [place for place, own in enumerate(exchanges) if key in own]
        if len(members) < 2 or len({len(exchanges[place][key]) for place in members}) > 1:
            continue
        for same in zip(*(exchanges[place][key] for place in members), strict=True):
            matched += 1
            own_waits = waited_s([end - start for start, end in same])
            last = own_waits.index(0.0)
            for place, seconds in zip(members, own_waits, strict=True):
                waits[place] += seconds
            step = _step_of(records[members[last]], same[last][0])
            by_step.setdefault(step, [(place, []) for place in range(len(ranks))])
            for place, seconds in zip(members, own_waits, strict=True):
                by_step[step][place][1].append(seconds)
    if not matched:
        return None
    spans = [end - start for start, end in map(window, records)]
    steps = [_judged(step, rows, ranks) for step, rows in by_step.items() if step]
    steps.sort(key=lambda row: (len(row[0]), row[0]))
    total = sum(len(some) for some in exchanges[0].values())
    found = RankWaits(
        ranks=tuple(ranks),
        waited_s=tuple(waits),
        span_s=tuple(spans),
        matched=matched,
        unmatched=max(0, total - matched),
        by_step=tuple(steps),
        since="",
    )
    return replace(found, since=_since(found))


def _exchanges(record: RankRecord) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Exchanges by kind and group, each in order."""
    device = device_of(record)
    spans = record.devices[device].exchanges if device else record.host_exchanges
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for start, end, name, group in zip(spans.start, spans.end, spans.name, spans.link, strict=True):
        if not ONE_WAY.search(record.names[name]):
            key = record.names[name], record.names[group] if group >= 0 else ""
            found.setdefault(key, []).append((start, end))
    return {key: sorted(some) for key, some in found.items()}


def _step_of(record: RankRecord, at_s: float) -> str:
    return next((step for step, start, end in record.steps if start <= at_s < end), "")


def _judged(step: str, rows: list[tuple[int, list[float]]], ranks: list[int]) -> tuple[str, int, float]:
    """The rank that waited least in a step, and how much longer the others did."""
    sums = [(sum(seconds), ranks[place]) for place, seconds in rows if seconds]
    least, rank = min(sums)
    return step, rank, median(total - least for total, other in sums if other != rank) if len(sums) > 1 else 0.0


def _since(found: RankWaits) -> str:
    """The first of the last steps in all of which the slowest was waited for by more than LAGS of a step."""
    if not found.by_step:
        return ""
    step_s = median(found.span_s) / len(found.by_step)
    since = ""
    for step, rank, lag_s in reversed(found.by_step):
        if rank != found.slowest or lag_s < LAGS * step_s:
            break
        since = step
    return since
