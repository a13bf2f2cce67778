"""The date and the time of day, and waiting: read and done here and nowhere else, so that a test can set the clock.

What takes how long is measured elsewhere, by clocks that nobody sets (`time.perf_counter`, `time.monotonic`).

>>> now().tzinfo is dt.UTC, abs(now().timestamp() - now_s()) < 60
(True, True)
"""

import datetime as dt
import os
import time
from collections.abc import Callable

SET = "THREELOOPS_CLOCK_S"  # in the environment of a process that a test starts: where its clock stands when it begins
_ahead_s = float(os.environ[SET]) - time.time() if SET in os.environ else 0.0


def _read() -> float:  # what a test puts a clock of its own in place of
    return time.time() + _ahead_s


def now_s() -> float:
    """Seconds since the first of January 1970, UTC (Unix time)."""
    return _read()


def now() -> dt.datetime:
    """This moment, in UTC."""
    return dt.datetime.fromtimestamp(_read(), dt.UTC)


def here() -> dt.datetime:
    """This moment in the time zone of the machine, as its owner reads it off the wall."""
    return now().astimezone()


def today() -> dt.date:
    """The day on this machine's calendar."""
    return here().date()


def pause(seconds: float) -> None:
    """Do nothing for so many seconds; none below zero."""
    time.sleep(max(0.0, seconds))


def until(holds: Callable[[], object], *, limit_s: float, step_s: float = 0.05) -> bool:
    """Look again every `step_s` seconds until something holds: True as soon as it does, False when `limit_s` seconds
    have passed without it.

    >>> looks = iter([False, False, True])
    >>> until(lambda: next(looks), limit_s=60, step_s=0.001), until(lambda: False, limit_s=0.01, step_s=0.001)
    (True, False)
    """
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() >= end:
            return False
        time.sleep(step_s)
    return True
