"""Every drill, by key and by family."""

import importlib
import pkgutil
from collections.abc import Iterable
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


def _by_key(drills_: Iterable[Drill]) -> dict[str, Drill]:
    found: dict[str, Drill] = {}
    for one in drills_:
        if found.setdefault(one.key, one) is not one:
            raise ValueError(f"key={one.key!r} is used twice, in {found[one.key].family} and in {one.family}")
    return found


DRILLS: dict[str, Drill] = _by_key(one for drills_ in FAMILIES.values() for one in drills_)


def drill(key: str) -> Drill:
    """The drill of that key; an unknown key is refused with the nearest ones."""
    checks.one_of(DRILLS, see="`threeloops drills list` names all.", drill=key)
    return DRILLS[key]


def defined(key: str) -> Drill:
    """The same as its module defines it, whose draws may be ones that cannot be asked."""
    return next(one for one in AS_DEFINED[drill(key).family] if one.key == key)
