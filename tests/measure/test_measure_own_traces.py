"""Traces that torch's profiler writes here, of runs whose trouble somebody made: what is suspected of them."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, schedule
from torch.utils.data import DataLoader, Dataset

from threeloops import wall_clock
from threeloops.inner_loop.profiled.rank_account import RankAccount, held_together, rank_account
from threeloops.inner_loop.profiled.rank_record import read_record
from threeloops.measure.inner_loop import profile
from threeloops.measure.processes.ranks import run_ranks

SLOW_FROM, STEPS = 2, 5


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def traced(path: Path, steps, *, number: int, skip: int = 1, **asked) -> None:
    """The profiler's own file of what `steps` yields after each step; the first `skip` are not recorded."""
    plan = schedule(wait=0, warmup=skip, active=number, repeat=1)

    def write(recorder) -> None:
        recorder.export_chrome_trace(str(path))

    with (
        profile.quiet(),
        torch.profiler.profile(
            activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=write, **asked
        ) as recorder,
    ):
        for _ in steps:
            recorder.step()


def account(path: Path) -> RankAccount:
    return rank_account(read_record(str(path)), rank=0)


def training(batches):
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in batches:
        model(batch).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        yield


class Slowly(Dataset):
    """Samples of which each takes a while."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> torch.Tensor:
        wall_clock.pause(0.03)
        return torch.ones(256)


def test_a_training_step_computes_products(tmp_path) -> None:
    traced(tmp_path / "t.json.gz", training([torch.ones(512, 256)] * 4), number=3, record_shapes=True)
    found = account(tmp_path / "t.json.gz")
    assert len(found.record.steps) == 3
    assert next(iter(found.by_family)) == "matmuls"
    sizes = {(one.product.m, one.product.n, one.product.k, one.calls) for one in found.products}
    # forward and the gradient of the weights of both layers, and the gradient between them
    assert sizes == {(512, 1024, 256, 6), (512, 256, 1024, 3), (1024, 256, 512, 3), (256, 1024, 512, 3)}
    assert found.suspects[0].of == "kernels"


def test_a_loader_that_starves_the_step(tmp_path) -> None:
    traced(tmp_path / "t.json", training(DataLoader(Slowly(), batch_size=3)), number=3)
    first = account(tmp_path / "t.json").suspects[0]
    assert first.illness == "starved loader"
    assert "the loader has no workers" in first.because


def test_a_server_that_is_kept_waiting_outside_of_all_operators(tmp_path) -> None:
    """Requests come far apart; the trace cannot say why nothing runs, and says what would."""
    model = nn.Linear(64, 64)

    def serve():
        for _ in range(8):
            wall_clock.pause(0.03)
            with torch.inference_mode():
                model(torch.ones(1, 64))
            yield

    traced(tmp_path / "t.json", serve(), number=7)
    first = account(tmp_path / "t.json").suspects[0]
    assert first.illness == "unexplained pauses"
    assert first.share > 0.5
    assert "with_stack=True" in first.record_next


def test_operators_too_small_for_the_python_between_them(tmp_path) -> None:
    def step():
        x = torch.ones(4)
        for _ in range(4):
            for _ in range(300):
                x = x + 1
            yield

    traced(tmp_path / "t.json", step(), number=3)
    found = account(tmp_path / "t.json")
    assert "small operators" in [one.illness for one in found.suspects[:3]]
    assert found.by_name["aten::add"].kernels == 900


def straggling(folder: str) -> None:
    """Steps with an all-reduce each; the last rank sleeps in each from SLOW_FROM on."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    gradient = torch.ones(1000)

    def steps():
        for step in range(STEPS + 1):
            if rank == ranks - 1 and step > SLOW_FROM:
                wall_clock.pause(0.15)
            (gradient @ gradient).item()
            dist.all_reduce(gradient)
            gradient.fill_(1.0)
            yield

    traced(Path(folder) / f"rank{rank}.json", steps(), number=STEPS)


def test_two_gloo_ranks_with_a_straggler(tmp_path) -> None:
    run_ranks(straggling, str(tmp_path), ranks=2)
    records = [read_record(str(path)) for path in sorted(tmp_path.glob("*.json"))]
    assert [record.rank for record in records] == [0, 1]
    waits, accounts = held_together([rank_account(one, rank=one.rank) for one in records])
    assert (waits.slowest, waits.matched) == (1, STEPS)
    last_before = waits.by_step[SLOW_FROM - 1][0]
    assert waits.since
    assert int(waits.since) <= int(last_before) + 1  # a machine that is busy may hold rank 1 up before
    assert accounts[0].suspects[0].illness == "straggling rank"
    assert waits.waited_s[0] > 3 * 0.15 * 0.9
