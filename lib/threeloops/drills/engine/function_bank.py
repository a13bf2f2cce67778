"""The drills that also ask for a function: what each family says in its functions.py."""

import importlib
import importlib.util

from threeloops import drills
from threeloops.drills.engine.bank import families
from threeloops.drills.engine.functions import FunctionDrill


def _defined(family: str) -> tuple[FunctionDrill, ...]:
    """What a family asks to be written; nothing where it has no such file."""
    name = f"{drills.__name__}.{family}.functions"
    if importlib.util.find_spec(name) is None:
        return ()
    asked: tuple[FunctionDrill, ...] = importlib.import_module(name).FUNCTIONS
    return asked


FUNCTIONS: dict[str, FunctionDrill] = {one.key: one for family in families() for one in _defined(family)}
