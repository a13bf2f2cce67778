"""Refusals: one sentence that says what came, what was expected and, where one exists, what would work.

Every function that takes a value from outside checks it once, by name:

>>> positive(sequence=4096)
>>> positive(sequence=0)
Traceback (most recent call last):
    ...
ValueError: sequence=0 must be greater than 0
"""

import difflib
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real

_LONGEST = 60  # characters of a value inside a sentence


def shortened(value: object) -> str:
    """A value as a sentence shows it: what is longer than a line holds is cut, and a list's length said.

    >>> shortened("fp8"), shortened([32] * 62)
    ("'fp8'", '[32, 32, 32, 32, 32, 32, 32, 32, 32, … (62 in all)]')
    """
    text = repr(value)
    if len(text) <= _LONGEST:
        return text
    if isinstance(value, list | tuple):
        first = repr(value[:1])[1:].rstrip("],)")
        held = text[1 : _LONGEST - 20].rpartition(", ")[0] or first[: _LONGEST - 20]
        return f"[{held}, … ({len(value)} in all)]"
    return f"{text[: _LONGEST - 1]}…"


def number(**values: object) -> None:
    """Refuse what is not a finite real number (True and "3" included)."""
    for name, value in values.items():
        if type(value) is int:  # the common case: abstract classes such as Real are slow to ask
            continue
        if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
            raise ValueError(f"{name}={shortened(value)} must be a number")
        if not math.isfinite(value):
            raise ValueError(f"{name}={value!r} must be finite")


def positive(**values: object) -> None:
    """Refuse anything but finite numbers above 0."""
    number(**values)
    for name, value in values.items():
        if not value > 0:  # type: ignore[operator]
            raise ValueError(f"{name}={value!r} must be greater than 0")


def non_negative(**values: object) -> None:
    """Refuse anything but finite numbers of at least 0."""
    number(**values)
    for name, value in values.items():
        if value < 0:  # type: ignore[operator]
            raise ValueError(f"{name}={value!r} must be at least 0")


def fraction(**values: object) -> None:
    """Refuse anything but numbers from 0 to 1: shares are never percent inside the library."""
    number(**values)
    for name, value in values.items():
        if not 0 <= value <= 1:  # type: ignore[operator]
            raise ValueError(f"{name}={value!r} must lie between 0 and 1 (a share, not a percentage)")


def count(*, at_least: int = 1, **values: object) -> None:
    """Refuse anything but whole numbers of at least `at_least`.

    >>> count(layers=32)
    >>> count(layers=2.5)
    Traceback (most recent call last):
        ...
    ValueError: layers=2.5 must be a whole number of at least 1
    """
    for name, value in values.items():
        if type(value) is int and value >= at_least:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
            raise ValueError(f"{name}={shortened(value)} must be a whole number of at least {at_least}")


def table(**values: object) -> None:
    """Refuse what is not a table of names and values (a TOML table, a JSON object)."""
    for name, value in values.items():
        if not isinstance(value, Mapping):
            raise ValueError(f"{name}={shortened(value)} must be a table of names and values")


_MOST_TO_FACTOR = 1_000_000_000  # beyond it, finding all divisors takes longer than anybody waits for a sentence


def divides(*, part: str, part_value: int, whole: str, whole_value: int, times: int = 1) -> None:
    """Refuse a split that leaves a remainder, and say which splits would work; `times` is how many pieces each part
    gets.

    >>> divides(part="tp", part_value=6, whole="num_kv_heads", whole_value=8)
    Traceback (most recent call last):
        ...
    ValueError: tp=6 must divide num_kv_heads=8; try tp in {1, 2, 4, 8}
    >>> divides(part="cp", part_value=3, whole="sequence", whole_value=8, times=2)
    Traceback (most recent call last):
        ...
    ValueError: 2*cp=6 must divide sequence=8; try cp in {1, 2, 4}
    """
    if whole_value % (times * part_value):
        written = part if times == 1 else f"{times}*{part}"
        said = f"{written}={times * part_value} must divide {whole}={whole_value}"
        pieces, left_over = divmod(whole_value, times)
        if left_over:
            raise ValueError(f"{said}; no {part} does before {whole} is a multiple of {times}")
        if whole_value > _MOST_TO_FACTOR:
            raise ValueError(said)
        small = [n for n in range(1, math.isqrt(pieces) + 1) if pieces % n == 0]
        fits = ", ".join(map(str, sorted({*small, *(pieces // n for n in small)})))
        raise ValueError(f"{said}; try {part} in {{{fits}}}")


def one_of(known: Iterable[str], *, see: str = "", **values: object) -> None:
    """Refuse a word that is not in the list; name the nearest ones, and the whole list unless `see` says where it can
    be read.

    >>> one_of(["ring", "tree"], algorithm="rings")
    Traceback (most recent call last):
        ...
    ValueError: algorithm='rings' is not known; did you mean 'ring'? Known: ring, tree
    """
    words = list(known)
    for name, value in values.items():
        if value not in words:
            raise ValueError(unknown(words, what=name, value=value, read_as=str(value).lower(), see=see))


def unknown(
    known: Iterable[str], *, what: str, value: object, read_as: str, see: str, meant: Iterable[str] | None = None
) -> str:
    """The sentence that one_of refuses with; the nearest words are those that begin with `read_as`, else those nearest
    to it, among those that may be `meant`, if not all may.

    >>> unknown(["ring", "tree"], what="algorithm", value="Rings!", read_as="rings", see="")
    "algorithm='Rings!' is not known; did you mean 'ring'? Known: ring, tree"
    """
    words = [str(word) for word in known]
    possible = words if meant is None else list(meant)
    near = [word for word in words if read_as and word.startswith(read_as)][:3]
    near = near or difflib.get_close_matches(read_as, possible, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    return f"{what}={value!r} is not known{hint} {see or 'Known: ' + ', '.join(words)}"
