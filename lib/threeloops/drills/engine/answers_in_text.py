"""Questions that hold their answer, and draws that do not.

Who copies a figure out of a question may not be right by it. Where the numbers of a draw happen to come out so, others
are drawn.

>>> held("700 ms for the loader and 300 ms after it", 0.704, unit="s", tolerance=0.02)
'700 ms'
>>> held("700 GB for the loader", 700.0, unit="s", tolerance=0.02)
''
"""

import functools
import random
import re
from collections.abc import Callable, Iterable, Iterator

from threeloops import units
from threeloops.drills.engine.drill import Draw, Drill
from threeloops.drills.engine.judge import close

TRIES = 200  # where no draw is fair in as many, something else is wrong
_FIGURE = re.compile(
    r"(?<![\d.])(?P<number>\d+(?:,\d{3})*(?:\.\d+)?)"
    r"(?:[ -]?(?P<unit>%|(?:million|billion)\b|[A-Za-zµ]+(?:/[A-Za-z]+| per (?:second|token)\b)?))?"
)
_PREFIXES = {
    "": 1.0,
    "n": units.ns,
    "µ": units.us,
    "m": units.ms,
    "k": units.kB,
    "M": units.MB,
    "G": units.GB,
    "T": units.TB,
    "P": units.PFLOP,
    "Ki": units.KiB,
    "Mi": units.MiB,
    "Gi": units.GiB,
    "Ti": units.TiB,
}
_BASES = ("B", "s", "FLOP", "token", "m", "dollar", "W")
# how else a unit is written, and what it comes to
_SPELLED = {
    "bytes": ("B", 1.0),
    "byte": ("B", 1.0),
    "tokens": ("token", 1.0),
    "dollars": ("dollar", 1.0),
    "cents": ("dollar", 0.01),
    "metres": ("m", 1.0),
    "cm": ("m", 0.01),
    "km": ("m", units.km),
    "second": ("s", 1.0),
    "seconds": ("s", 1.0),
    "min": ("s", units.minute),
    "minutes": ("s", units.minute),
    "h": ("s", units.hour),
    "hours": ("s", units.hour),
    "days": ("s", units.day),
}
_SIZES = {f"{prefix}{base}": (base, scale) for base in _BASES for prefix, scale in _PREFIXES.items()} | _SPELLED
_COUNTS = {"%": 0.01, "million": float(units.million), "billion": float(units.billion)}  # of a plain number


def held(text: str, value: float, *, unit: str, tolerance: float) -> str:
    """The figure of a text that would be taken for the answer, as it stands there; empty where there is none. For a
    plain number every figure counts, whatever it measures; for a size those that measure the same.
    """
    return next((figure for figure, amount in figures(text, unit) if close(amount, value, tolerance)), "")


def figures(text: str, unit: str) -> Iterator[tuple[str, float]]:
    """(as written, in the base unit) of every figure that could be an answer in this unit."""
    for found in _FIGURE.finditer(text):
        scale = _scale(found["unit"] or "", unit)
        if scale is not None:
            yield found[0], float(found["number"].replace(",", "")) * scale


@functools.cache
def _scale(written: str, unit: str) -> float | None:
    """What one of a written unit is in the unit asked for; None where it measures something else."""
    if not unit:
        return _COUNTS.get(written, 1.0)
    size = _size(written)
    return size[1] if size and size[0] == unit else None


def _size(written: str) -> tuple[str, float] | None:
    """A written unit as (base unit, how many of it): 3 GB/s are 3e9 of B/s."""
    top, _, below = written.replace(" per ", "/").partition("/")
    base, scale = _SIZES.get(top, ("", 0.0))
    if not base:
        return None
    return (f"{base}/{_SIZES.get(below, (below, 1.0))[0]}" if below else base), scale


def unheld(
    rng: random.Random,
    draw: Callable[[random.Random], Draw],
    asked: Callable[[Draw], Iterable[tuple[Drill, Draw, str]]],
    *,
    of: str,
) -> Draw:
    """Draw again until no answer stands in its question: `asked` gives each drill, its numbers and its words."""
    for _ in range(TRIES):
        p = draw(rng)
        if not any(
            held(text, drill.derive(q).value, unit=drill.unit, tolerance=drill.tolerance) for drill, q, text in asked(p)
        ):
            return p
    raise ValueError(f"{of}: the question holds its answer in each of {TRIES} draws")
