"""One environment in three files: pyproject.toml states it, requirements.lock pins it, environment.yml is the same
for conda.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from rattler import MatchSpec

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = [
    Requirement(line)
    for line in (ROOT / "requirements.lock").read_text().splitlines()
    if line and not line.startswith("#")
]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())


def stated() -> list[Requirement]:
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    optional = [line for name in ("book", "machines", "hub", "test") for line in extras[name]]
    return [Requirement(line) for line in project["dependencies"] + optional]


@pytest.mark.parametrize("requirement", stated(), ids=str)
def test_every_stated_dependency_is_pinned_within_what_was_stated(requirement: Requirement) -> None:
    pins = [pin for pin in LOCK if pin.name == requirement.name]
    assert pins, f"{requirement.name} is missing from requirements.lock"
    for pin in pins:
        (version,) = [specifier.version for specifier in pin.specifier if specifier.operator == "=="]
        assert requirement.specifier.contains(version)


def test_the_lock_pins_everything_and_names_no_place() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|@|\bfile:|--(index|find|extra)", text)
    for pin in LOCK:
        assert [specifier.operator for specifier in pin.specifier] == ["=="], str(pin)


def test_torch_is_pinned_once_and_not_in_the_lock() -> None:
    (line,) = PROJECT["project"]["optional-dependencies"]["torch"]
    assert re.fullmatch(r"torch==\d+\.\d+\.\d+", line)
    assert "torch" not in {pin.name for pin in LOCK}, "the lock would choose torch's build; set-up does (book.py)"
    assert line in CONDA["dependencies"][-1]["pip"]


def test_the_conda_section_is_what_conda_can_read() -> None:
    assert CONDA["channels"] == ["conda-forge"]
    *conda, pip = CONDA["dependencies"]
    names = {MatchSpec(line).name.normalized for line in conda}
    assert names == {"python", "pip"}
    python = next(MatchSpec(line) for line in conda if line.startswith("python"))
    assert str(python.version).startswith("==3.11") or "3.11" in str(python.version)
    assert pip["pip"] == ["-r requirements.lock", PROJECT["project"]["optional-dependencies"]["torch"][0], "-e ."]


def test_conda_syntax_errors_are_noticed() -> None:
    with pytest.raises(Exception, match="bracket|invalid|parse"):
        MatchSpec("python=3.11 = = oops [")


def test_book_py_can_speak_on_an_old_python() -> None:
    source = (ROOT / "book.py").read_text()
    ast.parse(source, feature_version=(3, 6))
    with pytest.raises(SyntaxError):
        ast.parse("def f(x, /): return (y := x)", feature_version=(3, 6))


def test_book_py_uses_the_standard_library_alone() -> None:
    import sys

    tree = ast.parse((ROOT / "book.py").read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_ci_calls_the_readers_own_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines[-1] == "exec python3 book.py test"
