"""Every benchmark still starts: its smallest run, as a script, the way one calls it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.seeds import todays

ROOT = Path(__file__).parents[2]
BENCHES = sorted(path.stem for path in (ROOT / "tests" / "bench").glob("*.py") if path.stem != "__init__")
# What each prints when it has come to its end; a benchmark fails on no time.
LAST = {
    "grading": "workers killed",
    "jupyterlab": "a widget scrolled away and back: alive",
    "library": "memory.model_states: ",
    "machines": "workers killed",
    "own_trace": " of one core, at most ",
    "pipeline": ", 4 stages, 8 micro-batches: ",
    "planner": "tokens/s/GPU published",
    "ring": "ring all-reduce, 8 ranks",
    "room": "notebook in a browser: next to the next question",
    "serving_run": "continuous, prefill first, no limit: 2,000 requests in ",
    "site": "folder of pages: ",
    "term": " commands from the zip to marks and pages: ",
    "widget": " of 4 ",
}
BROWSER = ("jupyterlab", "room", "site", "widget")

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("name", todays(BENCHES, shares=len(BENCHES)))
def test_its_smallest_run_comes_to_its_end(name: str) -> None:
    if name in BROWSER:
        from tests.chapters.conftest import chromium_path

        chromium_path()
    command = [sys.executable, str(ROOT / "tests" / "bench" / f"{name}.py"), "--smoke"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "utf-8"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert LAST[name] in done.stdout.splitlines()[-1], done.stdout


def test_every_benchmark_is_run() -> None:
    assert set(LAST) == set(BENCHES)
