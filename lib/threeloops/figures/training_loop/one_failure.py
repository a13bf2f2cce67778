"""One failure on a timeline: work, a save, work that is lost, time in which nobody works, and the same work again.

>>> clock = {"interval_s": 2400, "save_s": 280, "fails_after_s": 1200, "detect_s": 600, "restart_s": 300}
>>> print(one_failure(**clock, title="Half an hour", caption="A run.").alt)
The failure costs 35.0 min: 20.0 min of work done twice, 10.0 min until it is noticed, 5.00 min of restart. It comes 20.0 min after a save.
"""  # noqa: E501

from dataclasses import replace

from threeloops import checks
from threeloops.figures.figure import Figure
from threeloops.figures.overlap_rows import Busy, overlap_rows
from threeloops.units import fmt_seconds, minute


def one_failure(
    *,
    interval_s: float,
    save_s: float,
    fails_after_s: float,
    detect_s: float,
    restart_s: float,
    title: str,
    caption: str,
) -> Figure:
    """Four rows in minutes: training, saving, and the time-out and restart in which nobody works.

    Raises:   ValueError for a failure that comes after the next save is due
    """
    checks.positive(
        interval_s=interval_s, save_s=save_s, fails_after_s=fails_after_s, detect_s=detect_s, restart_s=restart_s
    )
    if fails_after_s > interval_s:
        raise ValueError(
            f"fails_after_s={fails_after_s!r} must be at most interval_s={interval_s!r}: then the next save is due"
        )
    pieces = (
        ("training", "kept", "compute", interval_s),
        ("saving", "save", "memory", save_s),
        ("training", "lost", "off", fails_after_s),
        ("time-out", "hangs", "control", detect_s),
        ("restart", "starts", "control", restart_s),
        ("training", "again", "compute", fails_after_s),
    )
    spans, now = [], 0.0
    for row, text, kind, seconds in pieces:
        spans.append(Busy(row=row, text=text, start_s=now / minute, end_s=(now + seconds) / minute, kind=kind))
        now += seconds
    told = (
        f"The failure costs {fmt_seconds(fails_after_s + detect_s + restart_s)}:"
        f" {fmt_seconds(fails_after_s)} of work done twice, {fmt_seconds(detect_s)} until it is noticed,"
        f" {fmt_seconds(restart_s)} of restart. It comes {fmt_seconds(fails_after_s)} after a save."
    )
    return replace(overlap_rows(spans, title=title, caption=caption, unit="min"), alt=told)
