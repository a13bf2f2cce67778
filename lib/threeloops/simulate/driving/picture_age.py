"""Pictures and answers on a clock: who asks at a moment gets the newest answer that is ready, and looks how old its
picture is. Knows no formula for ages.
"""

import itertools
from collections.abc import Collection, Sequence
from fractions import Fraction

from threeloops.simulate.driving import vehicle

Answers = Sequence[tuple[Fraction, Fraction]]  # (exposure, ready) of every picture that got an answer


def regular(
    *, latency: Fraction, period: Fraction, frames: int, lost: Collection[int] = ()
) -> list[tuple[Fraction, Fraction]]:
    """A picture every period, an answer after each latency, except for the frames that are lost.

    >>> [tuple(map(int, answer)) for answer in regular(latency=Fraction(40), period=Fraction(100), frames=3, lost={1})]
    [(0, 40), (200, 240)]
    """
    return [(n * period, n * period + latency) for n in range(frames) if n not in lost]


def one_at_a_time(*, busy: Fraction, period: Fraction, frames: int) -> list[tuple[Fraction, Fraction]]:
    """One worker, one frame; what arrives while it works is dropped.

    >>> [tuple(map(int, answer)) for answer in one_at_a_time(busy=Fraction(120), period=Fraction(100), frames=4)]
    [(0, 120), (200, 320)]
    """
    return vehicle.frames_through([busy], period=period, frames=frames)


def queued(*, busy: Fraction, period: Fraction, frames: int) -> list[tuple[Fraction, Fraction]]:
    """One worker; every frame waits for its turn.

    >>> [tuple(map(int, answer)) for answer in queued(busy=Fraction(120), period=Fraction(100), frames=3)]
    [(0, 120), (100, 240), (200, 360)]
    """
    free, answers = Fraction(0), []
    for frame in range(frames):
        free = max(free, frame * period) + busy
        answers.append((frame * period, free))
    return answers


def buffered(*, busy: Fraction, period: Fraction, frames: int) -> list[tuple[Fraction, Fraction]]:
    """One worker and a buffer of one picture: what arrives while it works overwrites what waits there.

    >>> [tuple(map(int, answer)) for answer in buffered(busy=Fraction(120), period=Fraction(100), frames=3)]
    [(0, 120), (100, 240)]
    """
    free, waiting, answers = Fraction(0), None, []
    for frame in range(frames):
        if waiting is not None and free <= frame * period:  # the worker took it before this one came
            free = max(free, waiting * period) + busy
            answers.append((waiting * period, free))
        waiting = frame
    return answers


def ages(answers: Answers, *, begin: Fraction, end: Fraction, step: Fraction) -> list[Fraction]:
    """The age at the middle of every step: exact for the mean wherever answers arrive between two steps."""
    found, moment, newest, place = [], begin + step / 2, None, 0
    while moment < end:
        while place < len(answers) and answers[place][1] <= moment:
            newest = answers[place][0]
            place += 1
        if newest is None:
            raise ValueError(f"no answer is ready at {float(begin)} s; begin later")
        found.append(moment - newest)
        moment += step
    return found


def mean_age(answers: Answers, *, begin: Fraction, end: Fraction, step: Fraction) -> Fraction:
    """The mean over the moments from begin to end."""
    seen = ages(answers, begin=begin, end=end, step=step)
    return sum(seen, Fraction(0)) / len(seen)


def age_before_each(answers: Answers) -> list[Fraction]:
    """How old the newest picture is at the moment when the next answer replaces it."""
    return [later[1] - earlier[0] for earlier, later in itertools.pairwise(answers)]
