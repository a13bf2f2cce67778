"""The clock of one question: monotonic, so that nothing but waiting moves it, and honest about a lid that was closed.

>>> clock = QuestionClock(target_s=60, extra=1.5)
>>> clock.allowed_s
90.0
"""

import time
from collections.abc import Callable

from threeloops import checks, wall_clock

GAP_S = 600.0  # longer than this away from the desk is no slow answer but an interruption
SPOKEN_S = (60, 30, 10)  # seconds left at which the clock speaks
EXTRA_TIMES = (1.0, 1.25, 1.5, 2.0)


class QuestionClock:
    """Seconds since a question was put, and whether they can be believed.

    The monotonic clock stands still on some machines while they sleep and the wall clock jumps when it is set, so the
    two are compared: a difference of more than ten minutes, or ten minutes beyond the time allowed, means that nobody
    sat there. `started_wall_s` puts the start back to when the question was first shown, by a process that has since
    been killed.
    """

    def __init__(
        self,
        *,
        target_s: float,
        extra: float = 1.0,
        started_wall_s: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = wall_clock.now_s,
    ) -> None:
        checks.positive(target_s=target_s)
        if extra not in EXTRA_TIMES:
            raise ValueError(
                f"extra time {extra!r} is not offered; choose one of {', '.join(f'{times:g}' for times in EXTRA_TIMES)}"
            )
        self.allowed_s = target_s * extra
        self._monotonic, self._wall = monotonic, wall
        now = wall()
        already_s = max(0.0, now - started_wall_s) if started_wall_s is not None else 0.0
        self._start, self._wall_start = monotonic() - already_s, now - already_s

    @property
    def elapsed_s(self) -> float:
        """Seconds on the monotonic clock, and the seconds of a shorter sleep that it missed."""
        ticked, wall = self._monotonic() - self._start, self._wall() - self._wall_start
        return max(ticked, wall) if abs(wall - ticked) <= GAP_S else ticked

    @property
    def left_s(self) -> float:
        return self.allowed_s - self.elapsed_s

    @property
    def interrupted(self) -> str:
        """Why this question's time cannot be judged, in a sentence; empty when it can."""
        ticked, wall = self._monotonic() - self._start, self._wall() - self._wall_start
        if abs(wall - ticked) > GAP_S:
            return (
                f"The clock jumped by {abs(wall - ticked) / 60:.0f} minutes (a closed lid, or the time was set):"
                " interrupted, not wrong."
            )
        if ticked > self.allowed_s + GAP_S:
            return f"Nobody answered for {ticked / 60:.0f} minutes: interrupted, not wrong."
        return ""

    def spoken(self, before_s: float) -> str:
        """What the clock says aloud when the seconds left have just fallen from `before_s` past 60, 30 or 10: nothing
        at any other moment.

        >>> clock = QuestionClock(target_s=60, monotonic=iter([0.0, 31.0]).__next__, wall=iter([0.0, 31.0]).__next__)
        >>> clock.spoken(before_s=30.5)
        '30 seconds left'
        """
        left = self.left_s
        for mark in SPOKEN_S:
            if left <= mark < before_s and mark < self.allowed_s:
                return f"{mark} seconds left"
        return "time is up" if left <= 0 < before_s else ""
