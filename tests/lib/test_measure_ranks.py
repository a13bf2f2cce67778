"""The launcher: results as data, one clear error for whatever goes wrong, in bounded time, with no process left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from threeloops.measure.ranks import RankError, run_ranks, warm_up

START_LIMIT_S = 120


def rank_and_sum(addend: int) -> tuple[int, int, float, int]:
    total = torch.tensor([float(dist.get_rank() + addend)])
    dist.all_reduce(total)
    return dist.get_rank(), dist.get_world_size(), total.item(), torch.get_num_threads()


def tensor_of_rank() -> torch.Tensor:
    return torch.full((3,), float(dist.get_rank()))


def note_pid(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    dist.barrier()


def raise_on_one(folder: str) -> None:
    note_pid(folder)
    if dist.get_rank() == 1:
        raise KeyError("gradient of layer 3")
    dist.barrier()  # the others wait for a rank that will not come


def die_on_two(folder: str) -> None:
    note_pid(folder)
    if dist.get_rank() == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def leave_on_zero(folder: str) -> None:
    note_pid(folder)
    if dist.get_rank() == 0:
        os._exit(0)
    dist.barrier()


def hang_on_one(folder: str) -> None:
    note_pid(folder)
    if dist.get_rank() == 1:
        time.sleep(3600)


def sum_and_hang(folder: str) -> None:
    Path(folder, str(os.getpid())).write_text(f"(0 + 1) + 2 * 5 = {rank_and_sum(5)[2]:g}")
    time.sleep(3600)


def unpicklable() -> object:
    return lambda: None


def gone(folder: Path, *, within_s: float = 5.0) -> bool:
    """Whether every process that noted its number has ended."""
    pids = [int(path.name) for path in folder.iterdir()]
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for left-over processes in /proc")


def test_results_come_back_in_rank_order():
    # 10 + 11 + 12 = 33
    assert run_ranks(rank_and_sum, 10, ranks=3) == [(0, 3, 33.0, 1), (1, 3, 33.0, 1), (2, 3, 33.0, 1)]


def test_tensors_are_data_that_outlives_its_rank():
    first, second = run_ranks(tensor_of_rank, ranks=2)
    assert first.tolist() == [0, 0, 0]
    assert second.tolist() == [1, 1, 1]


def test_one_rank_needs_no_partner():
    warm_up()  # also when the server is there already
    assert run_ranks(rank_and_sum, 7, ranks=1) == [(0, 1, 7.0, 1)]


@needs_proc
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (raise_on_one, r"(?s)^rank 1 of 3 failed: KeyError: 'gradient of layer 3'.*raise_on_one"),
        (die_on_two, "^rank 2 of 3 died with signal SIGKILL before it returned; the other ranks were stopped$"),
        (leave_on_zero, "^rank 0 of 3 died with exit code 0 before it returned; the other ranks were stopped$"),
    ],
)
def test_a_failing_rank_is_named_and_the_others_end(function, message, tmp_path):
    start = time.monotonic()
    with pytest.raises(RankError, match=message):
        run_ranks(function, str(tmp_path), ranks=3, timeout_s=30, start_limit_s=START_LIMIT_S)
    assert time.monotonic() - start < 25  # at once, not at the time limit
    assert len(list(tmp_path.iterdir())) == 3
    assert gone(tmp_path)


@needs_proc
def test_a_hung_rank_is_stopped_at_the_limit(tmp_path):
    with pytest.raises(RankError, match=r"^rank 1 of 3 did not finish within timeout_s=2; all ranks were stopped$"):
        run_ranks(hang_on_one, str(tmp_path), ranks=3, timeout_s=2, start_limit_s=START_LIMIT_S)
    assert len(list(tmp_path.iterdir())) == 3
    assert gone(tmp_path)


def test_a_result_that_cannot_travel_is_refused():
    with pytest.raises(RankError, match=r"rank [01] of 2 failed: .*[Pp]ickle"):
        run_ranks(unpicklable, ranks=2)


def test_functions_must_be_importable():
    def inner() -> None: ...

    for function in (lambda: None, inner):
        with pytest.raises(ValueError, match="must be a plain function at the top of a module"):
            run_ranks(function, ranks=2)


def test_a_script_under_spawn_and_a_killed_parent(tmp_path):
    """Under spawn every rank imports torch itself; when the calling process is killed, its ranks notice and end."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "if __name__ == '__main__':\n"
        "    import test_measure_ranks as t\n"
        "    t.run_ranks(t.sum_and_hang, sys.argv[2], ranks=2, method='spawn', timeout_s=600)\n"
    )
    path, pids = tmp_path / "calls_ranks.py", tmp_path / "pids"
    path.write_text(script)
    pids.mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # a killed process leaves its temporary folder
    with subprocess.Popen([sys.executable, str(path), str(Path(__file__).parent), str(pids)], env=environment) as parent:
        deadline = time.monotonic() + START_LIMIT_S
        while len(list(pids.iterdir())) < 2 and parent.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.2)  # for the second file's content
        assert [path.read_text() for path in pids.iterdir()] == ["(0 + 1) + 2 * 5 = 11", "(0 + 1) + 2 * 5 = 11"]
        parent.kill()
    if sys.platform.startswith("linux"):
        assert gone(pids)
