"""Controls: what can be turned on an explorer, as a list that Python writes and the page draws.

>>> batch = slider("batch", "batch", (1, 8, 64))
>>> batch.place(8), batch.at(2), batch.told()["options"]
(1, 64, ['1', '8', '64'])
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Options = Mapping[str, Any] | Iterable[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One control: the words that the page shows, and the value of the state that each of them stands for.

    slider   ordered options on a line; with `plays_ms`, one that steps by itself, so many milliseconds a step
    menu     options without an order
    several  any number of the options
    tiles    boxes in a row, of which one is chosen; each with a note below its word
    """

    name: str  # of the state's field
    label: str
    words: tuple[str, ...]
    values: tuple[Hashable, ...]
    kind: Literal["slider", "menu", "several", "tiles"]
    plays_ms: int = 0
    notes: tuple[str, ...] = ()
    marked: int | None = None  # the tile that stands out, whichever is chosen

    def place(self, value: Any) -> Any:
        """Where a value stands among the options; of several values, where all of them stand."""
        if self.kind == "several":
            return [self._index(one) for one in value]
        return self._index(value)

    def _index(self, value: Any) -> int:
        if value not in self.values:
            known = ", ".join(map(repr, self.values[:20])) + (", …" if len(self.values) > 20 else "")
            raise ValueError(f"{self.name}={value!r} must be one of {known}")
        return self.values.index(value)

    def at(self, place: Any) -> Any:
        """The value at a place; of several places, all their values."""
        if self.kind == "several":
            return tuple(self.values[one] for one in sorted(place))
        return self.values[min(place, len(self.values) - 1)]

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values at both ends; of several, the first alone, the last alone, and all."""
        if self.kind == "several":
            return (self.values[:1], self.values[-1:], self.values)
        return (self.values[0], self.values[-1])

    def told(self) -> dict[str, Any]:
        """What the page is told: words, no values."""
        return {
            "name": self.name,
            "label": self.label,
            "kind": self.kind,
            "options": list(self.words),
            "plays": self.plays_ms,
            "notes": list(self.notes),
            "marked": self.marked,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Drag:
    """Something in the drawing that can be taken hold of: it turns a control, as far as the pointer goes."""

    control: str
    along: Literal["x", "y", "y/x"]  # what of the pointer's place counts, in the units of the axes
    places: tuple[float, ...]  # where that stands for each option of the control
    hold: tuple[tuple[float, float], ...]  # the point, or the ends of the line, that the pointer takes hold of
    drawn: bool = False  # a point of a curve: a pointer that goes on takes hold of the next such point

    def told(self) -> dict[str, Any]:
        """What the page is told."""
        told = {"control": self.control, "along": self.along, "places": list(self.places), "hold": list(self.hold)}
        return {**told, "drawn": self.drawn}


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A place of the book that belongs to what is shown."""

    words: str
    notebook: str  # of the reader, from the folder that holds chapters/

    def told(self) -> dict[str, str]:
        """What the page is told."""
        return {"words": self.words, "notebook": self.notebook}


def slider(name: str, label: str, options: Options, *, plays_ms: int = 0) -> Control:
    """A line of options: a mapping of words to values, (word, value) pairs, or values that are their own words."""
    words, values = _parted(options)
    return Control(name=name, label=label, words=words, values=values, kind="slider", plays_ms=plays_ms)


def menu(name: str, label: str, options: Options) -> Control:
    """A list that opens."""
    words, values = _parted(options)
    return Control(name=name, label=label, words=words, values=values, kind="menu")


def several(name: str, label: str, options: Sequence[str]) -> Control:
    """A box to tick for each option."""
    return Control(name=name, label=label, words=tuple(options), values=tuple(options), kind="several")


def _parted(options: Options) -> tuple[tuple[str, ...], tuple[Hashable, ...]]:
    pairs = [
        one if isinstance(one, tuple) else (one if isinstance(one, str) else f"{one:,}", one)
        for one in (options.items() if isinstance(options, Mapping) else options)
    ]
    return tuple(word for word, _ in pairs), tuple(value for _, value in pairs)
