"""Every drill, by key and by family."""

import importlib
import pkgutil
from dataclasses import replace

from threeloops import checks, drills
from threeloops.drills.engine.drill import Drill
from threeloops.drills.engine.fair_draws import fair

ENGINE = "engine"  # what all families share; every other folder beside it is one


def families() -> list[str]:
    """The names of all families, which are those of the folders; a new folder is a new family."""
    return [one.name for one in pkgutil.iter_modules(drills.__path__) if one.ispkg and one.name != ENGINE]


def _listed(family: str) -> tuple[Drill, ...]:
    """What a family's folder lists, in its own order."""
    listed: tuple[Drill, ...] = importlib.import_module(f"{drills.__name__}.{family}").DRILLS
    return tuple(replace(drill, family=family) for drill in listed)


AS_DEFINED: dict[str, tuple[Drill, ...]] = {family: _listed(family) for family in families()}
FAMILIES: dict[str, tuple[Drill, ...]] = {family: tuple(map(fair, drills_)) for family, drills_ in AS_DEFINED.items()}
DRILLS: dict[str, Drill] = {drill.key: drill for drills_ in FAMILIES.values() for drill in drills_}


def drill(key: str) -> Drill:
    """The drill of that key; an unknown key is refused with the nearest ones."""
    checks.one_of(DRILLS, see="`threeloops drills list` names all.", drill=key)
    return DRILLS[key]


def defined(key: str) -> Drill:
    """The same as its module defines it, whose draws may be ones that cannot be asked."""
    return next(one for one in AS_DEFINED[drill(key).family] if one.key == key)
