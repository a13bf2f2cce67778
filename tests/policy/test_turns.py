"""Five runs in a row run everything that takes turns, and every name in the tables is a file."""

from pathlib import Path

from tests import turns
from tests.conftest import SECONDS

FILES = {path.name for path in (Path(__file__).parents[1]).rglob("test_*.py")}
NAMED = {*turns.WHOLE, *turns.ONE_BY_ONE, *turns.BY_SET, turns.DESK}
TESTS = [
    *(f"tests/a/{test}" for test in turns.BY_TEST),
    *(f"tests/a/{name}::test_{number}" for name in turns.WHOLE for number in range(3)),
    *(f"tests/a/{name}::test_b[{number}]" for name in turns.ONE_BY_ONE for number in range(7)),
    *(f"tests/a/{name}::test_c[set{number}]" for name in turns.BY_SET for number in range(6)),
    *(f"tests/a/test_browser_{name}.py::test_d" for name in "abcdefg"),
]


def test_every_name_in_the_tables_is_a_file() -> None:
    assert NAMED <= FILES
    assert set(SECONDS) <= FILES
    for test in turns.BY_TEST:
        file, _, name = test.partition("::")
        texts = [path.read_text(encoding="utf-8") for path in (Path(__file__).parents[1]).rglob(file)]
        assert sum(f"\ndef {name}(" in text for text in texts) == 1, test


def test_each_has_one_turn_and_every_turn_has_some() -> None:
    found = turns.turns([*TESTS, "tests/a/test_other.py::test_e[f]"])
    assert set(found) == set(TESTS)
    assert set(found.values()) == set(range(turns.TURNS))


def test_what_is_made_once_stays_in_one_turn() -> None:
    found = turns.turns(TESTS)
    for name in turns.WHOLE:
        assert len({turn for test, turn in found.items() if name in test}) == 1
    for number in range(6):
        assert len({turn for test, turn in found.items() if f"[set{number}]" in test}) == 1


def test_a_test_without_variants_in_such_a_file_belongs_to_every_run() -> None:
    assert not turns.turns(["tests/chapters/test_parts_run.py::test_there_is_something_to_run"])
