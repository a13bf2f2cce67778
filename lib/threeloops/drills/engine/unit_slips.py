"""Mistakes that belong to no idea: a binary figure under a decimal name, bits for bytes, minutes for seconds, a
thousand too many, per cent more in place of times as much.

>>> Mistaken(value=120.0, target=2.0, like="s").named().slip
'minutes-and-seconds'
"""

import math
import re
from dataclasses import dataclass

from threeloops import units
from threeloops.drills.engine.exactness import Beside

_TIMES = ("s", "token/s", "B/s", "FLOP/s", "token", "dollar", "")  # in which a duration may have been mistaken
_SIZES = re.compile(r"\b(?:[kKMGTP]i?)?(?:B|bits?|bytes?)\b|bits?/s|bytes?")
_RATES = re.compile(r"(?:B|bits?|bytes?)(?:/s| per second)\b|\bHow many bits does\b")
_WAYS = ((1, "large"), (-1, "small"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistaken:
    """An answer that is not right, in the question's unit, with the prefix it was written with."""

    value: float
    target: float
    like: str
    unit: str = ""  # as it was written
    tolerance: float = 0.02
    question: str = ""

    def named(self) -> Beside | None:
        """Which of these mistakes leads there, if one does."""
        return self._other_base() or self._bits() or self._thousand() or self._clock() or self._powers_of_two()

    def _close(self, value: float, target: float, *, share: float = 1.0) -> bool:
        return abs(value - target) <= self.tolerance * share * abs(target)

    @property
    def _prefixed(self) -> re.Match[str] | None:
        return re.search(r"([kKMGTP])(i?)B", self.unit)

    def _other_base(self) -> Beside | None:
        found = self._prefixed
        if not found:
            return None
        ratio = (units.KiB / units.kB) ** (1 + "kMGTP".index(found[1].replace("K", "k")))
        worth = units.fmt_percent(ratio - 1)
        if not found[2] and self._close(self.value * ratio, self.target, share=0.5):
            story = f"binary unit: {found[1]}iB is not {found[0]}. Mind the i, it is worth {worth}."
            return Beside("binary-as-decimal", f"The digits are right for the {story}")
        if found[2] and self._close(self.value / ratio, self.target, share=0.5):
            story = f"decimal unit: {found[1]}B is not {found[0]}. Drop the i, it is worth {worth}."
            return Beside("decimal-as-binary", f"The digits are right for the {story}")
        return None

    def _bits(self) -> Beside | None:
        """In sizes, in times and rates of a question that names sizes, and in shares and counts of one that names a
        rate of bits or bytes, or asks how many bits something takes.
        """
        named = _SIZES if self.like in ("s", "token/s") else _RATES if self.like in ("", "token") else None
        if "B" not in self.like and not (named and named.search(self.question)):
            return None
        way = self._times(units.BITS_PER_BYTE)
        return Beside("bits-and-bytes", f"Exactly 8 times too {way}: bits or bytes?") if way else None

    def _thousand(self) -> Beside | None:
        thousand = units.KiB if self._prefixed and self._prefixed[2] else units.kB  # from GiB to TiB it is 1,024
        for factor, size in ((thousand, "a thousand"), (thousand**2, "a million")):
            if way := self._times(factor):
                return Beside("prefix", f"The digits are right, the prefix is not: too {way} by {size}.")
        return None

    def _clock(self) -> Beside | None:
        if self.like not in _TIMES:
            return None
        for seconds, slip, unit in ((units.minute, "minutes", "minutes"), (units.hour, "hours", "hours")):
            if way := self._times(seconds):
                return Beside(f"{slip}-and-seconds", f"Exactly {seconds:,} times too {way}: {unit} or seconds?")
        return None

    def _powers_of_two(self) -> Beside | None:
        """A thousand that was 1,024, once or twice, and sizes in GiB that were taken for GB on the way to a time."""
        for factor, power in ((units.KiB, 10), (units.MiB, 20)):
            if way := self._times(factor):
                story = f"Exactly 2^{power} times too {way}: k, M and G without an i are powers of 1,000, not of 1,024."
                return Beside("prefix", story)
        if self.like in ("s", "token/s", "B/s", "") and _SIZES.search(self.question):
            for power, name in ((2, "MiB"), (3, "GiB"), (4, "TiB")):
                ratio = (units.KiB / units.kB) ** power
                if way := self._times(ratio, share=0.25):
                    story = (
                        f"Too {way} by the {units.fmt_percent(ratio - 1)} between {name} and {name[0]}B: mind the i."
                    )
                    return Beside("binary-as-decimal", story)
        return None

    def _times(self, factor: float, *, share: float = 1.0) -> str:
        """Whether it is so many times too large, or too small; empty for neither."""
        return next(
            (way for sign, way in _WAYS if self._close(self.value, self.target * factor**sign, share=share)), ""
        )


def more_for_times(value: float, target: float, unit: str, *, tolerance: float) -> Beside | None:
    """Per cent that were added, where times as much were asked: 111 % faster is 2.11 times.

    >>> more_for_times(1.11, 2.11, "%", tolerance=0.02).slip
    'percent-more'
    """
    if unit.strip() != "%" or target <= 1 or not math.isclose(value + 1, target, rel_tol=tolerance):
        return None
    return Beside("percent-more", "That is by how much it is more. Asked is how many times as much it is.")


def turned(value: float, target: float, *, tolerance: float) -> Beside | None:
    """A ratio the other way round, or the part of the whole that was not asked.

    >>> turned(0.5, 2.0, tolerance=0.02).slip, turned(0.3, 0.7, tolerance=0.02).slip, turned(0.3, 0.8, tolerance=0.02)
    ('upside-down', 'the-other-part', None)
    """
    if value <= 0 or target <= 0:
        return None
    if math.isclose(value, 1 / target, rel_tol=tolerance):
        return Beside("upside-down", "Upside down: which of the two belongs on top?")
    if target < 1 and math.isclose(value, 1 - target, rel_tol=tolerance):
        return Beside("the-other-part", "That is the rest of the whole. The other part is asked.")
    return None
