"""What is made once is made by one worker: a run with two of them, watched."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = (
    "tests/policy/test_each.py",
    "tests/policy/test_seeds.py",
    "tests/lib/test_units.py",
    "tests/lib/test_checks.py",
)


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one worker alone keeps everything together")
def test_a_files_tests_go_to_one_worker() -> None:
    words = ["-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "-v", "-p", "no:cacheprovider", "--no-header"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *FILES], cwd=ROOT, capture_output=True, text=True, env=environment
    )
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("[gw")]
    workers = {file: {line[0] for line in lines if line[-1].startswith(file)} for file in FILES}
    assert all(len(of) == 1 for of in workers.values()), done.stdout
    assert set.union(*workers.values()) == {"[gw0]", "[gw1]"}
