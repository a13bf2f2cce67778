"""A few mutants at every commit, of one module after another; `python -m tests.mutation.hunt` tries them all."""

import re
import subprocess
import sys
import warnings

import pytest
from tests import seeds
from tests.mutation import hunt

# Rooms whose every mutant has been tried and is caught.
THROUGH = ("foundations.", "inner_loop.")
# Of the others what outlives is printed; a room goes up when its survivors have their tests.
NOT_YET = ("training_loop", "product_loop", "operations", "models", "driving", "inner_loop.profiled")
MODULES = [
    module
    for room in ("foundations", "inner_loop", *NOT_YET[:-1])
    for module in hunt.modules(room)
    if hunt.mutants_of(module)
]
SOME, SECONDS = 6, 10


def found(*words: str) -> tuple[str, int, int]:
    """What a hunt says, how many mutants it tried, and how many outlived the tests."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.mutation.hunt", *words], cwd=hunt.ROOT, capture_output=True, text=True
    )
    said = re.search(r"(\d+) mutants of \S+ tried, (\d+) outlived the tests", told.stdout)
    assert said, told.stdout + told.stderr
    return told.stdout, int(said[1]), int(said[2])


@pytest.mark.timeout(600)
def test_no_mutant_of_this_commits_module_outlives_its_tests() -> None:
    module = MODULES[seeds.counted() // seeds.TURNS % len(MODULES)]
    said, tried, outlived = found(
        module, "--some", str(SOME), "--seconds", str(SECONDS), "--seed", str(seeds.counted())
    )
    assert tried
    if outlived and module.startswith(NOT_YET):
        warnings.warn(said, stacklevel=1)
        assert outlived < max(tried, 4), said
    else:
        assert not outlived, said


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("module", [one for one in MODULES if one.startswith(THROUGH) and not one.startswith(NOT_YET)])
def test_no_mutant_of_any_module_outlives_its_tests(module: str) -> None:
    said, _, outlived = found(module)
    assert not outlived, said


def test_what_is_said_to_change_nothing_is_there_and_outlives_its_tests() -> None:
    rows = hunt.equal()
    for module in {module for module, _ in rows}:
        told = {mutant.key for mutant in hunt.mutants_of(module, same=True)}
        assert told == {key for own, key in rows if own == module}, f"{module}: a row names no mutant any more"
    assert found("foundations.chain_rule", "--equal")[1:] == (1, 1)


def test_no_mutant_is_begun_after_the_seconds_that_are_given() -> None:
    assert found("foundations.chain_rule", "--seconds", "0")[1] == 1


def test_a_name_of_no_module_is_refused() -> None:
    with pytest.raises(SystemExit, match="inner_loop.paddings is no module of the library"):
        hunt.modules("inner_loop.paddings")
