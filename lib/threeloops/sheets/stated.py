"""What a function says about itself: its formula, what it assumes and where it comes from, read out of its docstring.

>>> from threeloops.operations import roofline
>>> stated(roofline.ridge_point).formula
'peak_flops_per_s / memory_bytes_per_s'
"""

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_FIELD = re.compile(
    r"^(Formula|Shapes|Units|Assumes|Raises|Source|Counted|Measured): *(.*(?:\n[ \t]+.*)*)", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """One formula as the library documents it."""

    name: str
    says: str  # the first sentence
    formula: str
    assumes: str
    source: str

    @property
    def by_definition(self) -> bool:
        """Whether it needs no source to be believed."""
        return self.source.startswith("by definition")


def fields(text: str | None) -> dict[str, str]:
    """Field -> content of a docstring, each on one line."""
    return {
        name: re.sub(r"\s+", " ", content).strip() for name, content in _FIELD.findall(inspect.cleandoc(text or ""))
    }


def stated(function: Callable[..., Any]) -> Stated:
    """The documented formula. Its source may stand once for the whole module; arithmetic holds by definition.

    Raises:   ValueError for a function that states no formula
    """
    own, module = fields(function.__doc__), fields(sys.modules[function.__module__].__doc__)
    name = f"{function.__module__.removeprefix('threeloops.')}.{function.__name__}"
    source = own.get("Source") or module.get("Source", "")
    if not own.get("Formula"):
        raise ValueError(f"{name} states no formula")
    return Stated(
        name=name,
        says=inspect.cleandoc(function.__doc__ or "").split("\n\n")[0].replace("\n", " ").rstrip("."),
        formula=own["Formula"],
        assumes=own.get("Assumes", ""),
        source=source,
    )
