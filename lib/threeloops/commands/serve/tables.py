"""Tables: a row for each layout, under a rate or with users."""

from collections.abc import Sequence

from threeloops import units
from threeloops.commands.serve.fleets import Fleet

LATE = ("TTFT p99", "ITL p99", "TPOT p99")
RATE_HEAD = ("seats", "max-num-seqs", "a copy carries", "copies", "GPUs", "at least", *LATE)
SEEN = ("TTFT p50", "p99", "ITL p50", "p99")
USERS_HEAD = ("copies", "seats", "step at least", "expected", *SEEN, "tokens/s per user", "per GPU")


def rate_row(fleet: Fleet) -> tuple[str, ...]:
    assert fleet.largest is not None
    carries = f"{'' if fleet.copy.expected else '≤ '}{fleet.largest.requests_per_s:.3g}/s"
    numbers = (str(fleet.copies), str(fleet.gpus), str(fleet.at_least))
    late = (units.fmt_seconds(fleet.seen.late_s(name)) for name in ("ttft", "itl", "tpot"))
    return (*_groups(fleet), str(fleet.copy.seats), str(fleet.limits.max_num_seqs), carries, *numbers, *late)


def users_row(fleet: Fleet) -> tuple[str, ...]:
    inside, copy, seen = fleet.limits.max_num_seqs, fleet.copy, fleet.seen
    expected = units.fmt_seconds(copy.expected.step_s(inside)) if copy.expected else "-"
    times = (*seen.ttft_s, *seen.itl_s)
    return (
        *_groups(fleet),
        str(fleet.copies),
        str(copy.seats),
        units.fmt_seconds(copy.bound.step_s(inside)),
        expected,
        *map(units.fmt_seconds, times),
        f"{seen.tokens_per_s / seen.inside:.1f}",
        f"{fleet.tokens_per_s / fleet.gpus:,.0f}",
    )


def with_groups(head: Sequence[str], fleets: Sequence[Fleet]) -> tuple[str, ...]:
    """The head of a table, with the groups of a copy where there are several."""
    return ("tp", *(("dp",) if fleets[0].copy.layout.dp > 1 else ()), *head)


def _groups(fleet: Fleet) -> tuple[str, ...]:
    layout = fleet.copy.layout
    return (str(layout.tp), *((str(layout.dp),) if layout.dp > 1 else ()))
