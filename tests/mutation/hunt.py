"""A hunt: are the tests of a module red when one operator, constant or bound of it is changed?

python -m tests.mutation.hunt inner_loop.padding              every mutant, by the tests of its room that import it
python -m tests.mutation.hunt inner_loop.padding --some 6     six of them, drawn
python -m tests.mutation.hunt inner_loop.padding --some 6 --seconds 10     none begun after ten seconds of tests
python -m tests.mutation.hunt inner_loop                      a room, module by module
python -m tests.mutation.hunt inner_loop --equal              what is said to change nothing: does it?

The tests are collected once; each mutant is tried in a fork, where the changed function gets its new code and the
tests run until the first is red. Ends with 1 where a mutant outlives them that `equal.tsv` does not name: there stands
what changes nothing, with the reason.
"""

import argparse
import functools
import gc
import importlib
import math
import os
import random
import re
import signal
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

# Kept by no cache: these are run in forks, and a fork's cache is gone with it.
from _pytest.runner import runtestprotocol
from tests import touched
from tests.conftest import SECONDS
from tests.mutation.mutants import Mutant, mutants

from threeloops.drills.engine.bank import DRILLS

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "lib/threeloops"
EQUAL = Path(__file__).parent / "equal.tsv"
LIMIT_S = 60  # of the processor, beyond what the tests take: a mutant that never ends is found out as well
FORMULAS = tuple(
    f"lib/threeloops/{room}/" for room in ("foundations", "inner_loop", "training_loop", "product_loop", "driving")
)
DRILLED = "tests/drills/test_every_drill.py::test_the_independent_count_agrees"
FAMILIES = {drill.family for drill in DRILLS.values()}


def equal() -> set[tuple[str, tuple[str, str]]]:
    """(module, key) of the mutants that change nothing."""
    rows = [line.split("\t") for line in EQUAL.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return {(module, (function, becomes)) for module, function, becomes, _ in rows}


def modules(name: str) -> list[str]:
    """The modules that a name stands for: itself, or those of a room.

    >>> modules("inner_loop.padding"), modules("foundations")[:2]
    (['inner_loop.padding'], ['foundations.caches', 'foundations.chain_rule'])
    """
    path = LIBRARY / name.replace(".", "/")
    if path.is_dir():
        return sorted(
            each.relative_to(LIBRARY).with_suffix("").as_posix().replace("/", ".") for each in path.rglob("[a-z]*.py")
        )
    if not path.with_suffix(".py").exists():
        raise SystemExit(f"{name} is no module of the library; a room and a file, as inner_loop.padding, would be one")
    return [name]


def tests_of(module: str) -> list[str]:
    """What may see a change of the module, the nearest first: its own examples, the quick tests that import it, those
    that its docstrings name, those that import what imports it, the counts of the drills that ask for it; where none
    imports it, also what takes long in its room.
    """
    file, imports = f"lib/threeloops/{module.replace('.', '/')}.py", _imports()
    users, room = _users({file}, imports), f"tests/{module.partition('.')[0]}/"
    quick = [test for test in imports if _quick(test)]
    near = [test for test in quick if file in imports[test]]
    named = [
        test
        for words in re.findall(r"(?:Counted|Measured): +(.+)", (ROOT / file).read_text(encoding="utf-8"))
        for test in (f"{name.rpartition('.')[0].replace('.', '/')}.py" for name in words.split(", "))
        if test in quick
    ]
    own = f"lib/threeloops/{module.partition('.')[0]}/"
    formulas = {user for user in users if user.startswith((*FORMULAS, *(() if near else (own,))))}
    if not near:
        formulas |= _users(formulas, imports)
    beyond = [test for test in quick if imports[test] & (formulas | users if test.startswith(room) else formulas)]
    families = sorted({user.split("/")[3] for user in users if user.startswith("lib/threeloops/drills/")} & FAMILIES)
    asked = [f"{DRILLED}[{family}]" for family in families]
    slow = [test for test in imports if test.startswith(room) and _is_test(test) and imports[test] & formulas]
    return [
        *dict.fromkeys([file, *sorted(near), *sorted(named), *sorted(beyond), *asked, *sorted([] if near else slow)])
    ]


_imports = functools.cache(touched.imports)  # of a thousand and more files: once for a room


def _users(files: set[str], imports: Mapping[str, set[str]]) -> set[str]:
    return {user for user, imported in imports.items() if imported & files}


def _quick(file: str) -> bool:
    elsewhere = file.startswith(("tests/chapters/", "tests/site/", "tests/policy/"))
    return _is_test(file) and not elsewhere and file.rpartition("/")[2] not in SECONDS


def _is_test(file: str) -> bool:
    return file.startswith("tests/") and file.rpartition("/")[2].startswith("test_")


class Hunt:
    """What pytest does with the collected tests: all of them once, then until the first red one, mutant by mutant."""

    def __init__(self, module: str, wanted: list[Mutant], limit_s: float) -> None:
        self.module, self.wanted, self.limit_s = module, wanted, limit_s
        self.tried, self.outlived = list[Mutant](), list[Mutant]()
        self.green, self.tests_s, self.used_s = False, 0.0, 0.0  # of the processor: of all tests once, of all mutants
        self.cached: list[functools._lru_cache_wrapper[object]] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # A fork copies what it touches. So what is cached is looked up once, and no fork walks through all objects.
        gc.unfreeze()
        self.cached = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
        gc.freeze()
        gc.disable()
        self.green = self._fork(session, None)
        for mutant in self.wanted if self.green else ():
            if self.used_s > self.limit_s:
                break
            self.tried.append(mutant)
            self.outlived += [mutant] * self._fork(session, mutant)
        return True

    def _fork(self, session: pytest.Session, mutant: Mutant | None) -> bool:
        """Are all tests green in a process with this mutant?"""
        child = os.fork()
        if not child:
            signal.setitimer(signal.ITIMER_PROF, LIMIT_S + self.tests_s if mutant else 0)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            try:
                if mutant is not None:
                    put(self.module, mutant, self.cached)
                os._exit(0 if all(_green(item) for item in session.items) else 1)
            finally:
                os._exit(1)
        _, status, used = os.wait4(child, 0)
        if mutant is None:
            self.tests_s = used.ru_utime + used.ru_stime
        else:
            self.used_s += used.ru_utime + used.ru_stime
        return status == 0


def _green(item: pytest.Item) -> bool:
    return not any(report.failed for report in runtestprotocol(item, nextitem=None, log=False))


def put(module: str, mutant: Mutant, cached: Iterable["functools._lru_cache_wrapper[object]"]) -> None:
    """Give the function its changed code, wherever it has been imported to, and forget what was cached."""
    changed = compile(mutant.tree, f"<{module}, changed>", "exec")
    code = {each.co_qualname: each for each in _codes(changed)}[mutant.function]
    holder: object = importlib.import_module(f"threeloops.{module}")
    *classes, name = mutant.function.split(".")
    for each in classes:
        holder = vars(holder)[each]
    _plain(vars(holder)[name]).__code__ = code
    for wrapper in cached:
        wrapper.cache_clear()


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _codes(each)


def _plain(function: object) -> types.FunctionType:
    """The function behind a property, a class method or a cache."""
    for name in ("fget", "func", "__func__", "__wrapped__"):
        while getattr(function, name, None) is not None:
            function = getattr(function, name)
    assert isinstance(function, types.FunctionType)
    return function


def mutants_of(module: str, *, same: bool = False) -> list[Mutant]:
    """The mutants of a module that change something, or those that `equal.tsv` says do not."""
    source = (LIBRARY / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    return [mutant for mutant in mutants(source) if ((module, mutant.key) in equal()) is same]


def hunted(module: str, wanted: list[Mutant], limit_s: float = math.inf) -> Hunt:
    """A module's mutants, of which none is begun after so many seconds of the processor."""
    hunt = Hunt(module, wanted, limit_s)
    pytest.main(
        ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--no-summary", *tests_of(module)], [hunt]
    )
    if not hunt.green:
        raise SystemExit(f"{module}: its tests are red before anything is changed")
    return hunt


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a module or a room of the library: inner_loop.padding, foundations")
    parser.add_argument("--some", type=int, help="so many mutants of each, drawn")
    parser.add_argument("--seed", type=int, default=0, help="for another draw")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none of a module's after so many")
    parser.add_argument("--equal", action="store_true", help="those alone that are said to change nothing")
    chosen = parser.parse_args(words)
    tried, outlived = 0, 0
    os.chdir(ROOT)
    for module in modules(chosen.name):
        some = mutants_of(module, same=chosen.equal)
        if chosen.some is not None:
            some = random.Random(chosen.seed).sample(some, min(chosen.some, len(some)))
        if not some:
            continue
        hunt = hunted(module, some, chosen.seconds)
        tried, outlived = tried + len(hunt.tried), outlived + len(hunt.outlived)
        for mutant in hunt.outlived:
            print(f"{module}:{mutant.line}  {mutant.function}  {mutant.change}:  {mutant.becomes}", flush=True)
    print(f"{tried} mutants of {chosen.name} tried, {outlived} outlived the tests")
    return 1 if outlived != (tried if chosen.equal else 0) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
