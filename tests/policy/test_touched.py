"""What --fast runs: the tests nearest to a change, within its time."""

import subprocess
from pathlib import Path

import pytest
from tests import touched


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    return touched.imports()


def test_a_modules_own_tests_come_before_those_of_what_uses_it(imports: dict[str, set[str]]) -> None:
    found = touched.reached(["lib/threeloops/product_loop/kv_cache.py"], imports=imports, seconds={}, left_out=())
    assert found[0] == "lib/threeloops/product_loop/kv_cache.py"
    assert "tests/product_loop/test_kv_cache.py" in found


def test_what_takes_too_long_is_left_out_and_the_rest_is_not() -> None:
    known = {"lib/a.py": set(), "tests/test_a.py": {"lib/a.py"}, "tests/test_b.py": {"lib/a.py"}}
    taken = {"tests/test_a.py": 2 * touched.BUDGET_S}
    assert touched.reached(["lib/a.py"], imports=known, seconds=taken, left_out=()) == ["lib/a.py", "tests/test_b.py"]
    assert touched.reached(["lib/a.py"], imports=known, seconds={}, left_out=["test_b.py"]) == [
        "lib/a.py",
        "tests/test_a.py",
    ]


def test_a_changed_helper_reaches_the_tests_that_import_it(imports: dict[str, set[str]]) -> None:
    assert "tests/policy/test_seeds.py" in touched.reached(["tests/seeds.py"], imports=imports, seconds={}, left_out=())


def test_rules_of_the_tree_are_files() -> None:
    assert all((touched.ROOT / file).exists() for file in touched.ALWAYS)


def test_changed_and_new_files_are_seen_and_ignored_ones_are_not(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    for name, text in ((".gitignore", "out\n"), ("a b.py", ""), ("c.py", "")):
        (tmp_path / name).write_text(text)
    git("add", ".")
    git("commit", "-m", "first")
    assert touched.changed(tmp_path) == []
    for name in ("a b.py", "new.py", "out"):
        (tmp_path / name).write_text("x = 1\n")
    assert sorted(touched.changed(tmp_path)) == ["a b.py", "new.py"]
