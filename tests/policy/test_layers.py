"""A module imports only from its own layer or below; layers 0 to 2 load nothing but the standard library."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

LIB = Path(__file__).parents[2] / "lib" / "threeloops"
LAYERS = {
    0: {"units", "dtypes", "checks"},
    1: {
        "facts",
        "hardware",
        "models",
        "hf_config",
        "hf_families",
        "hf_fields",
        "hf_layers",
        "model_catalogue",
        "convnets",
        "convnet_config",
        "compute_capability",
        "trace",
        "clock_history",
    },
    # 2: every other module at the top
    3: {"simulate", "measure"},
    4: {"figures", "widgets", "drills", "room", "paper", "sheets"},
    5: {"classroom", "workings", "desk", "stand_in", "doctor", "cli"},
}
FORBIDDEN_NAMES = {"utils.py", "helpers.py", "common.py", "misc.py"}


def layer(module: str) -> int:
    """Layer of a module named by its first component below threeloops."""
    return next((number for number, names in LAYERS.items() if module in names), 2)


def imported(source: str) -> set[str]:
    """First components below threeloops that a module's source imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "threeloops":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("threeloops."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("threeloops.")}
    return found


def modules() -> list[Path]:
    return sorted(path for path in LIB.rglob("*.py") if path.name != "__init__.py")


def own_component(path: Path) -> str:
    return path.relative_to(LIB).with_suffix("").parts[0]


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(LIB).as_posix())
def test_imports_point_down(path: Path) -> None:
    own = own_component(path)
    upward = {name for name in imported(path.read_text()) if layer(name) > layer(own)}
    assert not upward, f"{own} (layer {layer(own)}) imports upward: {upward}"


def test_the_import_reader_sees_every_way_to_import() -> None:
    source = "import threeloops.cli\nfrom threeloops import measure\nfrom threeloops.drills.judge import judge"
    assert imported(source) == {"cli", "measure", "drills"}


def loaded_by(statement: str) -> set[str]:
    """Third-party packages that a fresh interpreter holds after a statement."""
    code = f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*{{name.split('.')[0] for name in set(sys.modules) - before}})"
    names = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    return {name for name in names if name not in sys.stdlib_module_names and name != "threeloops"}


def light_modules() -> list[str]:
    return [own_component(path) for path in modules() if layer(own_component(path)) <= 2]


def test_formula_modules_load_only_the_standard_library() -> None:
    assert loaded_by("import " + ", ".join(f"threeloops.{name}" for name in light_modules())) == set()


def test_that_check_can_fail() -> None:
    assert "numpy" in loaded_by("import numpy")


def test_counting_needs_no_torch_and_no_formula() -> None:
    for path in LIB.glob("simulate/*.py"):
        source = path.read_text()
        assert "torch" not in {word for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for word in [node.names[0].name]}
        formulas = {name for name in imported(source) if layer(name) == 2}
        assert not formulas, f"{path.name} counts with the formula it is meant to check: {formulas}"


def test_no_module_is_called_by_a_name_that_says_nothing() -> None:
    assert not [path for path in LIB.rglob("*.py") if path.name in FORBIDDEN_NAMES]
