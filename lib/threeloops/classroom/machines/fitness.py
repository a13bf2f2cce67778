"""What a worker on another machine must have to grade as this one does: the same edition of the book, the same
packages, the sandbox, one thread.
"""

import functools
import hashlib
import importlib.metadata
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops import contents
from threeloops.sandbox import walls

PACKAGES = ("distributed", "nbgrader", "pint")
EDITION, SANDBOX, THREADS = "edition of the book", "sandbox", "threads"


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a worker has to know of a course. The key is the teacher's secret: a worker is trusted with it."""

    name: str  # of the drill set
    code: str
    key: bytes
    same: tuple[tuple[str, str], ...]  # what must be the same there as here
    trusting: bool  # grade without a sandbox where there is none
    functions: str = "all"  # what earns a function its points


class UnfitError(ValueError):
    """A worker that must not grade; the sentence says which and why."""


def identity(name: str) -> dict[str, str]:
    """What a grade comes from besides the hand-in: the book's own files, Python and the packages.

    >>> sorted(identity("kv_cache"))
    ['Python', 'distributed', 'edition of the book', 'nbgrader', 'pint']
    """
    root, package = contents.book_root(), Path(contents.__file__).parent
    files = [root / "nbgrader_config.py", root / "solutions" / name / f"{name}.ipynb"]
    files += sorted(path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    versions = {package: importlib.metadata.version(package) for package in PACKAGES}
    return {EDITION: digest.hexdigest(), "Python": ".".join(platform.python_version_tuple()[:2])} | versions


def unfit(who: str, fit: Any, order: Order) -> str:
    """Why a worker must not grade, in a sentence; empty if it may."""
    if not isinstance(fit, dict):
        return f"{who} cannot load the book ({fit}); start it in the book's folder, with .venv/bin/dask worker"
    for what, here in order.same:
        if fit[what] != here:
            other = f"another {EDITION}" if what == EDITION else f"{what} {fit[what]} and not {here}"
            return f"{who} has {other}; give it this folder and its environment, and start it again"
    if fit[THREADS] != 1:
        return f"{who} has {fit[THREADS]} threads, and grades on one: start it with --nthreads 1 --nworkers CORES"
    if fit[SANDBOX] and not order.trusting:
        return (
            f"students' code should not run without a sandbox, and at {who} {fit[SANDBOX]}; --no-sandbox grades all the"
            " same"
        )
    return ""


def fitness(name: str, dask_worker: Any = None) -> dict[str, Any]:
    """What decides whether this worker may grade; Dask puts in which one it is."""
    return _fitness(name) | {THREADS: dask_worker.state.nthreads}


@functools.cache
def _fitness(name: str) -> dict[str, Any]:
    return {**identity(name), SANDBOX: walls.problem()}
