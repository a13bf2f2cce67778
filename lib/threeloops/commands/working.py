"""A calculation with its working shown: inputs, each formula with the numbers put in, the results, what is assumed,
and where it comes from.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from threeloops import checks, units
from threeloops.models.architecture import Model


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
    table: tuple[tuple[str, ...], ...] = ()  # a head and rows, where one line per item says more than one formula
    lines: tuple[Line, ...]
    reasons: tuple[tuple[str, str], ...] = ()  # what else was considered -> why not, a sentence each
    conclusion: str  # one sentence
    assumes: tuple[str, ...]
    sources: tuple[str, ...]
    data: dict[str, Any] = field(default_factory=dict)  # further results in base SI, for --json

    def as_text(self) -> str:
        """For a terminal."""
        width = max(map(len, self.inputs), default=0)
        rows = [self.title, ""]
        rows += [f"  {name:<{width}}  {value}" for name, value in self.inputs.items()]
        rows += ["", *aligned(self.table)] if self.table else []
        for line in self.lines:
            rows += [
                "",
                f"  {line.name}",
                f"    = {line.formula}",
                f"    = {line.numbers}",
                f"    = {_base(line)}  →  {line.shown}",
            ]
        rows += ["", *(f"  {name}: {why}" for name, why in self.reasons)] if self.reasons else []
        rows += ["", self.conclusion, ""]
        rows += [f"  assumes: {sentence}" for sentence in self.assumes]
        rows += [f"  source:  {source}" for source in self.sources]
        return "\n".join(rows)

    def as_json(self) -> str:
        """For a script: every result in base SI, under a name without spaces."""
        results = {slug(line.name): {"value": line.value, "unit": line.unit} for line in self.lines}
        said = {"conclusion": self.conclusion, "assumes": self.assumes, "sources": self.sources}
        why = {"reasons": dict(self.reasons)} if self.reasons else {}
        return json.dumps(
            {"title": self.title, "results": results, **self.data, **why, **said}, indent=1, ensure_ascii=False
        )


def slug(name: str) -> str:
    """A line's name as a script would write it.

    >>> slug("32 layers, window 4,096")
    '32_layers_window_4096'
    """
    return re.sub(r"[^a-z0-9]+", "_", name.lower().replace(",", "")).strip("_")


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """A table's rows: the first column to the left, figures to the right."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        "  "
        + "  ".join(
            f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]


def share_of_memory(share: float) -> float:
    """The share, if it is one."""
    checks.number(share=share)
    if not 0 < share <= 1:
        raise ValueError(f"share={share} is a share of the memory: give more than 0 and at most 1, for example 0.9")
    return share


def _base(line: Line) -> str:
    value = plain(line.value) if float(line.value).is_integer() else f"{line.value:,.6g}"
    return f"{value} {line.unit}".strip()


def said_of_positions(model: Model, tokens: int) -> str:
    """A sentence where a sequence is longer than the model was made for; empty where it is not.

    >>> from threeloops.models.catalogue import model
    >>> said_of_positions(model("gpt2"), 2048)
    ' gpt2 was made for 1,024 tokens at most: its table of positions ends there.'
    """
    if tokens <= model.max_context:
        return ""
    ends = ": its table of positions ends there" if model.learned_positions else ""
    return f" {model.name} was made for {model.max_context:,} tokens at most{ends}."
