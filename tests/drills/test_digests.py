"""No number of a student moves unseen: the first draws of every idea are those that are committed.

Where one is meant to move, `python -m tests.drills.digests` names it among all, and `--write` commits what there is
now; the commit says which ideas and why. Sets in use keep their numbers.
"""

import pytest
from tests.drills.digests import FIRST, committed, digest, hashed

from threeloops.drills.engine.bank import FAMILIES


def test_what_is_committed_is_what_there_is() -> None:
    assert set(committed()) == set(hashed())


@pytest.mark.parametrize("family", FAMILIES)
def test_no_number_has_moved(family: str) -> None:
    ideas = {drill.key for drill in FAMILIES[family]}
    keys = [key for key in hashed() if key.partition(" ")[2] in ideas]
    assert not [key for key in keys if digest(key, FIRST) != committed()[key][0]]


def test_no_task_has_moved() -> None:
    assert not [key for key in hashed() if key.startswith("task ") and digest(key, FIRST) != committed()[key][0]]
