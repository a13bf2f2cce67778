"""A run that was killed for real goes on from its checkpoint as if nothing had happened; with a part forgotten, it
does not.
"""

import pickle
import signal
import sys

import pytest

torch = pytest.importorskip("torch")

from threeloops.measure.training_loop import resumed_run  # noqa: E402  (torch must be there first)


@pytest.fixture(scope="module")
def run():
    return resumed_run.killed_and_resumed(steps=45, save_every=12, kill_at=29, forget=resumed_run.PARTS)


def test_the_process_was_killed_and_not_asked(run):
    assert run.exit_code == (-signal.SIGKILL if sys.platform != "win32" else run.exit_code) != 0
    assert run.killed == run.uninterrupted[:29]
    assert run.saved_at == 24


def test_everything_restored_is_the_same_run_bit_for_bit(run):
    assert run.resumed["nothing"] == run.uninterrupted[24:]
    assert run.first_difference("nothing") is None
    assert run.largest_difference("nothing") == 0


@pytest.mark.parametrize("part", resumed_run.PARTS)
def test_every_part_is_needed(run, part):
    # A wrong update shows one step later than a wrong input: the loss of a step is known before its update.
    assert run.first_difference(part) == (25 if part in ("optimiser", "schedule") else 24)
    assert run.largest_difference(part) > 1e-3


def test_a_kill_while_saving_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    resumed_run.save({"step": 1}, path)
    monkeypatch.setattr(resumed_run.os, "fsync", lambda number: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        resumed_run.save({"step": 2}, path)
    assert torch.load(path)["step"] == 1


def test_a_checkpoint_is_data(tmp_path):
    assert pickle.dumps(resumed_run._Run().state())


@pytest.mark.parametrize(
    ("wrong", "said"), [({"kill_at": 3}, "kill_at"), ({"kill_at": 60}, "kill_at"), ({"forget": ["luck"]}, "luck")]
)
def test_refusals(wrong, said):
    with pytest.raises(ValueError, match=said):
        resumed_run.killed_and_resumed(**({"steps": 40, "save_every": 10, "kill_at": 15, "forget": ()} | wrong))
