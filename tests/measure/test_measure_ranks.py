"""The launcher: results as data, one clear error for whatever goes wrong, in bounded time, with no process left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from threeloops import wall_clock
from threeloops.measure.processes import ranks as ranks_module
from threeloops.measure.processes.ranks import RankError, dismiss, run_ranks, warm_up

START_LIMIT_S = 300  # on a machine that is busy with other work
PATIENCE_S = 60  # for what a quiet machine does at once


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
        wall_clock.pause(3600)


def sum_and_hang(folder: str) -> None:
    Path(folder, str(os.getpid())).write_text(f"(0 + 1) + 2 * 5 = {rank_and_sum(5)[2]:g}")
    wall_clock.pause(3600)


def unpicklable() -> object:
    return lambda: None


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether it is so within our patience. A test asks again and again, since nobody can promise when another
    process gets its turn.
    """
    return wall_clock.until(condition, limit_s=PATIENCE_S)


def runs(pid: int) -> bool:
    """Whether a process has not ended. One whose parent was killed may stay in /proc as a zombie until somebody else
    waits for it: it has ended.
    """
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # gone before the file was opened, or before it was read
        return False


def gone(folder: Path) -> bool:
    """Whether every process that noted its number ends."""
    pids = [int(path.name) for path in folder.iterdir()]
    return comes_true(lambda: not any(map(runs, pids)))


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
        run_ranks(function, str(tmp_path), ranks=3, timeout_s=600, start_limit_s=START_LIMIT_S)
    assert time.monotonic() - start < 500  # at once, not at the time limit
    assert len(list(tmp_path.iterdir())) == 3
    assert gone(tmp_path)


@needs_proc
def test_a_hung_rank_is_stopped_at_the_limit(tmp_path):
    with pytest.raises(RankError, match=r"^rank 1 of 3 did not finish within timeout_s=4; all ranks were stopped$"):
        run_ranks(hang_on_one, str(tmp_path), ranks=3, timeout_s=4, start_limit_s=START_LIMIT_S)
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
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, str(path), str(Path(__file__).parent), str(pids)], env=environment
    ) as parent:
        wall_clock.until(
            lambda: sum(path.stat().st_size > 0 for path in pids.iterdir()) >= 2 or parent.poll() is not None,
            limit_s=START_LIMIT_S,
        )
        assert [path.read_text() for path in pids.iterdir()] == ["(0 + 1) + 2 * 5 = 11", "(0 + 1) + 2 * 5 = 11"]
        parent.kill()
    if sys.platform.startswith("linux"):
        assert gone(pids)
        assert not list(tmp_path.glob("threeloops-ranks-*")), "a killed process cannot tidy up: its ranks do"


def pid_and_luck() -> tuple[int, float, float]:
    total = torch.ones(1)
    dist.all_reduce(total)
    return os.getpid(), torch.rand(1).item(), total.item()


def wait_for_the_others(folder: str, others: str) -> None:
    """Not done before a pool of the same size is at work in the other folder."""
    note_pid(folder)
    if dist.get_rank() == 0:
        assert comes_true(lambda: len(list(Path(others).iterdir())) == 2)


@pytest.fixture
def no_crew():
    dismiss()
    yield
    dismiss()


def pids_of(results: list[tuple[int, float, float]]) -> list[int]:
    return [pid for pid, _, _ in results]


@pytest.mark.usefixtures("no_crew")
def test_a_crew_that_did_its_job_does_the_next_one():
    first = run_ranks(pid_and_luck, ranks=2, start_limit_s=START_LIMIT_S)
    for _ in range(3):
        # the same processes, and their random numbers start where they did
        assert run_ranks(pid_and_luck, ranks=2) == first
    assert {total for _, _, total in first} == {2.0}
    assert run_ranks(rank_and_sum, 0, ranks=3)[2] == (2, 3, 3.0, 1)  # a pool of another size does not mix with it
    assert pids_of(run_ranks(pid_and_luck, ranks=2)) == pids_of(first)


@needs_proc
@pytest.mark.usefixtures("no_crew")
def test_a_fresh_crew_is_new_and_does_not_stay():
    kept, fresh = run_ranks(pid_and_luck, ranks=2), run_ranks(pid_and_luck, ranks=2, fresh=True)
    assert not set(pids_of(kept)) & set(pids_of(fresh))
    assert not any(map(runs, pids_of(fresh)))
    assert all(map(runs, pids_of(kept)))
    dismiss()
    assert not any(map(runs, pids_of(kept)))


@needs_proc
@pytest.mark.usefixtures("no_crew")
@pytest.mark.parametrize(("function", "limit_s"), [(raise_on_one, 600), (die_on_two, 600), (hang_on_one, 4)])
def test_a_crew_that_failed_is_ended_and_the_next_call_works(function, limit_s, tmp_path):
    before = run_ranks(pid_and_luck, ranks=3)
    start = time.monotonic()
    with pytest.raises(RankError):
        run_ranks(function, str(tmp_path), ranks=3, timeout_s=limit_s)
    assert time.monotonic() - start < 300  # at once, not at the time limit
    # it was the kept pool that failed
    assert {path.name for path in tmp_path.iterdir()} == {str(pid) for pid in pids_of(before)}
    assert gone(tmp_path)
    after = run_ranks(pid_and_luck, ranks=3)
    assert not set(pids_of(before)) & set(pids_of(after))
    assert [total for _, _, total in after] == [3.0, 3.0, 3.0]


@needs_proc
@pytest.mark.usefixtures("no_crew")
def test_a_rank_killed_while_it_waited_is_replaced():
    before = pids_of(run_ranks(pid_and_luck, ranks=2))
    os.kill(before[1], signal.SIGKILL)
    waiting = ranks_module._idle[os.getpid(), 2]
    assert comes_true(lambda: not waiting.alive)  # its server has waited for it, and said so
    after = pids_of(run_ranks(pid_and_luck, ranks=2))
    assert not set(before) & set(after)
    assert not runs(before[0])


@pytest.mark.usefixtures("no_crew")
def test_two_threads_do_not_share_a_crew(tmp_path):
    run_ranks(pid_and_luck, ranks=2)
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(2) as threads:
        for done in [
            threads.submit(run_ranks, wait_for_the_others, *map(str, pair), ranks=2)
            for pair in (folders, folders[::-1])
        ]:
            done.result()
    one, two = ({path.name for path in folder.iterdir()} for folder in folders)
    assert len(one) == len(two) == 2
    assert not one & two


@pytest.mark.usefixtures("no_crew")
def test_spawned_ranks_are_kept_too(monkeypatch):
    monkeypatch.setattr(ranks_module, "start_method", lambda: "spawn")
    first = run_ranks(pid_and_luck, ranks=2, start_limit_s=START_LIMIT_S)
    assert run_ranks(pid_and_luck, ranks=2) == first


@needs_proc
@pytest.mark.parametrize("end", ["", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_an_idle_crew_ends_with_its_caller(end, tmp_path):
    """At a normal end, which must not wait for the pool, and when the caller is killed."""
    (tmp_path / "pids").mkdir()
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "if __name__ == '__main__':\n"
        "    import test_measure_ranks as t\n"
        "    t.run_ranks(t.note_pid, sys.argv[2], ranks=2, timeout_s=600)\n"
        f"    {end}\n"
    )
    path = tmp_path / "leaves.py"
    path.write_text(script)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run(
        [sys.executable, str(path), str(Path(__file__).parent), str(tmp_path / "pids")],
        env=environment,
        timeout=START_LIMIT_S,
        check=not end,
    )
    assert len(list((tmp_path / "pids").iterdir())) == 2
    assert gone(tmp_path / "pids")
    assert not list(tmp_path.glob("threeloops-ranks-*"))
