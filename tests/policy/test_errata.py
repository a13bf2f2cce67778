"""What the list of errors says of its own history: every commit that it names is there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = sorted(set(re.findall(r"\| ([0-9a-f]{7}) \|", (ROOT / "ERRATA.md").read_text(encoding="utf-8"))))


def test_every_commit_that_the_errata_name_is_in_the_history() -> None:
    assert NAMED
    asked = ["git", "-C", str(ROOT), "rev-list", "HEAD"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    if told.returncode or (ROOT / ".git" / "shallow").exists():
        pytest.skip("this copy of the book has no history, or not all of it; a full `git clone` has it")
    history = {commit[:7] for commit in told.stdout.split()}
    assert [commit for commit in NAMED if commit not in history] == []
