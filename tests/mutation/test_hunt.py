"""A few mutants at every commit, of one module after another; `python -m tests.mutation.hunt` tries them all."""

import subprocess
import sys

import pytest
from tests import seeds
from tests.mutation import hunt

# The rooms whose every mutant has been tried; the next one joins when its survivors have their tests.
ROOMS = ("foundations", "inner_loop")
NOT_YET = ("inner_loop.profiled",)
MODULES = [
    module
    for room in ROOMS
    for module in hunt.modules(room)
    if not module.startswith(NOT_YET) and hunt.mutants_of(module)
]
SOME = 6


def found(*words: str) -> str:
    told = subprocess.run([sys.executable, "-m", "tests.mutation.hunt", *words], cwd=hunt.ROOT, capture_output=True)
    assert told.returncode == 0, told.stdout.decode() + told.stderr.decode()
    return told.stdout.decode()


@pytest.mark.timeout(600)
def test_no_mutant_of_this_commits_module_outlives_its_tests() -> None:
    module = MODULES[seeds.counted() // seeds.TURNS % len(MODULES)]
    said = found(module, "--some", str(SOME), "--seed", str(seeds.counted()))
    assert f"mutants of {module} tried, 0 outlived" in said


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("module", MODULES)
def test_no_mutant_of_any_module_outlives_its_tests(module: str) -> None:
    assert "tried, 0 outlived" in found(module)


def test_what_is_said_to_change_nothing_is_there_and_outlives_its_tests() -> None:
    rows = hunt.equal()
    for module in {module for module, _ in rows}:
        told = {mutant.key for mutant in hunt.mutants_of(module, same=True)}
        assert told == {key for own, key in rows if own == module}, f"{module}: a row names no mutant any more"
    assert "1 mutants of foundations.chain_rule tried, 1 outlived" in found("foundations.chain_rule", "--equal")


def test_a_name_of_no_module_is_refused() -> None:
    with pytest.raises(SystemExit, match="inner_loop.paddings is no module of the library"):
        hunt.modules("inner_loop.paddings")
