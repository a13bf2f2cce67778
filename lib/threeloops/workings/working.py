"""A calculation with its working shown: inputs, each formula with the numbers put in, the results, what is assumed, and where it comes from."""

import json
from dataclasses import dataclass, field
from typing import Any

from threeloops import units


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One step: a formula in words, the same with the numbers put in, and what comes out."""

    name: str
    formula: str
    numbers: str  # plain arithmetic: a test evaluates it and compares
    value: float  # base SI
    unit: str  # B, s, FLOP, FLOP/s, FLOP/B, B/s, or "" for a count or share
    binary: bool = False  # bytes of a capacity: shown in GiB first

    @property
    def shown(self) -> str:
        """The value in base units and as a person would say it."""
        return units.fmt(self.value, self.unit, binary=self.binary)


def plain(value: float) -> str:
    """A number as it stands in a formula: all its digits, grouped by thousands.

    >>> plain(989.4e12), plain(0.0005), plain(2)
    ('989,400,000,000,000', '0.0005', '2')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.12g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """A whole calculation."""

    title: str
    inputs: dict[str, str]  # name -> value with its unit, and where it comes from
    lines: tuple[Line, ...]
    conclusion: str  # one sentence
    assumes: tuple[str, ...]
    sources: tuple[str, ...]
    data: dict[str, Any] = field(default_factory=dict)  # further results in base SI, for --json

    def as_text(self) -> str:
        """For a terminal."""
        width = max(map(len, self.inputs), default=0)
        rows = [self.title, ""]
        rows += [f"  {name:<{width}}  {value}" for name, value in self.inputs.items()]
        for line in self.lines:
            rows += ["", f"  {line.name}", f"    = {line.formula}", f"    = {line.numbers}", f"    = {_base(line)}  →  {line.shown}"]
        rows += ["", self.conclusion, ""]
        rows += [f"  assumes: {sentence}" for sentence in self.assumes]
        rows += [f"  source:  {source}" for source in self.sources]
        return "\n".join(rows)

    def as_json(self) -> str:
        """For a script: base SI only."""
        results = {line.name: {"value": line.value, "unit": line.unit} for line in self.lines}
        return json.dumps({"title": self.title, "inputs": self.inputs, "results": results, **self.data}, indent=1, ensure_ascii=False)


def _base(line: Line) -> str:
    value = plain(line.value) if float(line.value).is_integer() else f"{line.value:,.6g}"
    return f"{value} {line.unit}".strip()
