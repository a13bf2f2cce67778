"""The tests and cells in which chains of floating-point sums decide something, once more with the kernels of other
processors.

A vector unit of another width adds in another order, and after thirty steps of training the last bits have become
losses. ATEN_CPU_CAPABILITY makes torch choose the kernels of a lesser processor than the one it runs on; what is held
here has to hold with all of them, and with another number of threads.
"""

import copy
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import pytest
import torch
from tests.chapters.execute import executed, rounded_text

ROOT = Path(__file__).parents[2]
# By name: a test that moves to another file stays in the list, one that is gone is missed.
SENSITIVE = (
    "test_eight_bits_take_the_bytes_of_the_recipe_and_train_as_well",
    "test_a_real_gradient_has_the_token_weights",
    "test_the_four_ways_differ_as_they_should",
    "test_frozen_weights_are_those_that_the_formula_says",
    "test_each_fault_has_its_cure",
    "test_balancing_balances_and_training_learns",
    "test_bf16_weights_do_not_move_where_every_update_is_swallowed",
)
# The most sensitive cells of the book, and those that they need.
CELLS = (
    "stack-load",
    "stack-recipe-model",
    "stack-accumulate-prediction",
    "stack-accumulate-loops",
    "stack-accumulate-compare",
    "stack-muon-count",
    "stack-narrow-run",
)
THREADS = 1 if torch.get_num_threads() > 1 else 2
STARTED = (
    "import sys, torch, pytest; print(torch.backends.cpu.get_cpu_capability(), torch.get_num_threads(), flush=True);"
    " sys.exit(pytest.main(sys.argv[1:]))"
)

pytestmark = pytest.mark.timeout(600)


def others() -> list[str]:
    """What this processor can do, without that with which this run does it; where there is nothing else, the same
    with other threads.
    """
    known = {"default": True, "avx2": torch.cpu._is_avx2_supported(), "avx512": torch.cpu._is_avx512_supported()}
    here = torch.backends.cpu.get_cpu_capability().lower()
    return [name for name, there in known.items() if there and name != here] or ["default"]


def places(names: tuple[str, ...]) -> list[str]:
    """Where tests of these names are, as pytest is told them."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    found = {name: [path for path, text in texts.items() if f"def {name}(" in text] for name in names}
    assert {name: len(paths) for name, paths in found.items()} == dict.fromkeys(names, 1)
    return [f"{paths[0].relative_to(ROOT)}::{name}" for name, paths in found.items()]


def outcomes(tests: list[str], capability: str, report: Path) -> dict[str, bool]:
    """Name of each test that ran -> whether it passed, in a process of its own; a parametrised one passes if all of
    it does.
    """
    environment = os.environ | {"ATEN_CPU_CAPABILITY": capability, "OMP_NUM_THREADS": str(THREADS)}
    command = [sys.executable, "-c", STARTED, "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=500)
    assert done.stdout.splitlines()[0].lower() == f"{capability} {THREADS}", done.stdout + done.stderr
    passed: dict[str, bool] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = case.attrib["name"].partition("[")[0]
        passed[name] = passed.get(name, True) and not {child.tag for child in case} & {"failure", "error", "skipped"}
    assert (done.returncode == 0) == all(passed.values()), done.stdout + done.stderr
    if not all(passed.values()):
        print(done.stdout)  # shown by pytest where this test fails
    return passed


@pytest.mark.parametrize("capability", others())
def test_what_float_chains_decide_holds_with_other_kernels_and_threads(capability: str, tmp_path: Path) -> None:
    assert outcomes(places(SENSITIVE), capability, tmp_path / "report.xml") == dict.fromkeys(SENSITIVE, True)


def test_a_test_that_fails_over_there_is_seen(tmp_path: Path) -> None:
    """Two sums that this file forbids every test to compare: one order and another."""
    file = tmp_path / "test_wrong.py"
    file.write_text("def test_wrong(): assert 0.1 + 0.2 + 0.3 == 0.3 + 0.2 + 0.1\ndef test_right(): pass\n")
    assert outcomes([str(file)], others()[0], tmp_path / "report.xml") == {"test_wrong": False, "test_right": True}


def test_the_most_sensitive_cells_print_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of a notebook inherits this process's environment."""
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", others()[0])
    monkeypatch.setenv("OMP_NUM_THREADS", str(THREADS))
    chapter = nbformat.read(ROOT / "chapters" / "2_training_loop.ipynb", as_version=4)
    few = copy.copy(chapter)
    few.cells = [cell for cell in chapter.cells if cell.id in CELLS]
    assert [cell.id for cell in few.cells] == list(CELLS)
    assert rounded_text(executed(few)) == rounded_text(few)
