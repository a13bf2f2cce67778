"""Log suspect: one thing that a log shows the time to have gone to, with its share and what a repair could bring."""

from collections.abc import Iterable
from dataclasses import dataclass

WORTH_SAYING = 0.01  # of the time; less is no suspect


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSuspect:
    """One suspect."""

    illness: str
    share: float | None  # of what `because` says; None where the log does not say how much
    because: str
    at_most: float | None  # times as fast, if all that a repair can take away is gone; None where no limit is known
    first_try: str
    record_next: str = ""  # what would decide, where the log does not
    first: bool = False  # to be looked at before all others, whatever its share


def worst_first(found: Iterable[LogSuspect]) -> tuple[LogSuspect, ...]:
    """What has to be looked at first, then by share; what takes less than a hundredth is left out.

    >>> of = {"because": "", "at_most": None, "first_try": ""}
    >>> some = [LogSuspect(illness=name, share=share, **of) for name, share in (("a", 0.1), ("b", 0.4), ("c", 0.001))]
    >>> [one.illness for one in worst_first(some)]
    ['b', 'a']
    """
    worth = (one for one in found if one.first or one.share is None or one.share >= WORTH_SAYING)
    return tuple(sorted(worth, key=lambda one: (not one.first, -(one.share or 0.0))))
