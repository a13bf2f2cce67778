"""Known truths: runs here whose trouble was put there and written down before anything was suspected of their traces.

Of torch's own profiler on a CPU, two gloo ranks included; the simulator's stand in
tests/inner_loop/test_profiled_suspects.py.
"""

import json
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
from tests.measure.test_measure_own_traces import Slowly, account, one_thread, traced, training  # noqa: F401
from torch import nn
from torch.utils.data import DataLoader

from threeloops import wall_clock
from threeloops.inner_loop.profiled.rank_account import RankAccount, held_together, rank_account
from threeloops.inner_loop.profiled.rank_record import read_record
from threeloops.measure.processes.ranks import run_ranks

STEPS = 4


class Truth(NamedTuple):
    """What was done to a run, and so what is to be suspected first; a word that has to stand in the reason."""

    steps: Callable[[], Iterator[None]]
    first: str
    word: str = ""
    with_stack: bool = False
    with_memory: bool = False


def repeated(step: Callable[[], object], *, number: int = STEPS + 1) -> Iterator[None]:
    for _ in range(number):
        step()
        yield


def many_products() -> Iterator[None]:
    return training([torch.ones(512, 256)] * (STEPS + 1))


def loader_alone() -> Iterator[None]:
    return training(DataLoader(Slowly(), batch_size=2))


def loader_with_a_worker() -> Iterator[None]:
    return training(DataLoader(Slowly(), batch_size=2, num_workers=1))


def kept_waiting() -> Iterator[None]:
    layer, one = nn.Linear(64, 64), torch.ones(1, 64)

    def request() -> None:
        wall_clock.pause(0.03)
        with torch.inference_mode():
            layer(one)

    return repeated(request)


def small_operators() -> Iterator[None]:
    def step() -> None:
        x = torch.ones(4)
        for _ in range(400):
            x = x + 1

    return repeated(step)


def a_graph_each_step() -> Iterator[None]:
    sizes = iter(range(100, 200))

    def step() -> None:
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: (x * 2).relu().sum(), backend="eager")
        compiled(torch.ones(next(sizes)))

    return repeated(step)


def passes_over_memory() -> Iterator[None]:
    x = torch.ones(5_000_000)

    def step() -> None:
        y = x
        for _ in range(4):
            y = torch.tanh(y * 1.01 + 0.5)

    return repeated(step)


def attention() -> Iterator[None]:
    q = torch.ones(1, 4, 1024, 64)
    return repeated(lambda: nn.functional.scaled_dot_product_attention(q, q, q))


def convolutions() -> Iterator[None]:
    layer, images = nn.Conv2d(16, 32, 5), torch.ones(16, 16, 96, 96)
    return repeated(lambda: layer(images))


def optimiser() -> Iterator[None]:
    model = nn.Embedding(1_000_000, 16)
    adam = torch.optim.Adam(model.parameters(), fused=True)
    model.weight.grad = torch.ones_like(model.weight)
    return repeated(adam.step)


def slow_python() -> Iterator[None]:
    """Words are counted between two operators, by Python that no operator sees."""
    layer, one, words = nn.Linear(64, 64), torch.ones(1, 64), "a step takes what it takes " * 20_000

    def counted_words() -> int:
        number = 0
        for letter in words:
            number += letter == " "
        return number

    def step() -> None:
        counted_words()
        layer(one)

    return repeated(step)


def loader_and_passes() -> Iterator[None]:
    """Both: 60 ms of a step are waited for, and 10 to 30 are passes over memory."""
    passes = torch.ones(1_000_000)
    for _ in DataLoader(Slowly(), batch_size=2):
        torch.tanh(passes)
        yield


# The six from here on, and one of ranks (two traces), were made without sight of the code that suspects.


def checkpoints() -> Iterator[None]:
    """The state is written as text in every step."""
    model, one = nn.Linear(512, 512), torch.ones(1, 512)
    state = {"weights": model.weight.tolist(), "seen": list(range(50_000))}

    def save_state() -> None:
        with tempfile.TemporaryFile("w") as file:
            file.write(json.dumps(state))

    def step() -> None:
        model(one)
        save_state()

    return repeated(step)


def served_tokens() -> Iterator[None]:
    """A server under load: eight requests decode together, and the head over a large vocabulary is most of a step."""
    embed, block, head = nn.Embedding(60_000, 256), nn.Linear(256, 256), nn.Linear(256, 60_000, bias=False)
    tokens = torch.arange(8)

    def step() -> None:
        with torch.inference_mode():
            tokens.copy_(head(torch.relu(block(embed(tokens)))).argmax(-1))

    return repeated(step)


def slow_collate() -> Iterator[None]:
    def collate(samples: list[torch.Tensor]) -> torch.Tensor:
        wall_clock.pause(0.05)
        return torch.stack(samples)

    return training(DataLoader([torch.ones(256)] * 12, batch_size=2, num_workers=1, collate_fn=collate))  # type: ignore[arg-type]


def sampling() -> Iterator[None]:
    """Top-p sampling that sorts all of a large vocabulary for each of eight requests."""
    logits = torch.rand(8, 50_000)

    def step() -> None:
        ordered, _ = logits.sort(descending=True)
        (ordered * (ordered.softmax(-1).cumsum(-1) < 0.9)).argmax(-1)

    return repeated(step)


def read_one_by_one() -> Iterator[None]:
    """A metric adds up a tensor's values by .item()."""
    losses = torch.ones(1_500)
    return repeated(lambda: sum(one.item() for one in losses))


def kept_graphs() -> Iterator[None]:
    """Every step's output is kept, with what backward would need."""
    layer, kept = nn.Linear(256, 256), list[torch.Tensor]()
    return repeated(lambda: kept.append(layer(torch.ones(2000, 256))))


TRUTHS = {
    "products": Truth(many_products, "kernels of unknown roof", "matmuls"),
    "loader": Truth(loader_alone, "starved loader", "no workers"),
    "loader with a worker": Truth(loader_with_a_worker, "starved loader"),
    "requests far apart": Truth(kept_waiting, "unexplained pauses"),
    "small operators": Truth(small_operators, "small operators"),
    "a graph each step": Truth(a_graph_each_step, "compilation", "graph"),
    "passes": Truth(passes_over_memory, "vector kernels"),
    "attention": Truth(attention, "kernels of unknown roof", "attention"),
    "convolutions": Truth(convolutions, "kernels of unknown roof", "convolutions"),
    "optimiser": Truth(optimiser, "vector kernels", "optimiser"),
    "slow Python": Truth(slow_python, "unexplained pauses"),
    "slow Python, with its stack": Truth(slow_python, "host at work", "counted_words", with_stack=True),
    "loader and passes": Truth(loader_and_passes, "starved loader"),
    "checkpoints": Truth(checkpoints, "host at work", "save_state", with_stack=True),
    "served tokens": Truth(served_tokens, "kernels of unknown roof", "matmuls"),
    "slow collate": Truth(slow_collate, "starved loader"),
    "sampling": Truth(sampling, "vector kernels", "sort"),
    "values read one by one": Truth(read_one_by_one, "small operators"),
    "kept graphs": Truth(kept_graphs, "memory leak", "4.10 MB", with_memory=True),
}


def exchanging(folder: str) -> None:
    """Both ranks add 16 MB in each step, and compute next to nothing."""
    large, small = torch.ones(4_000_000), torch.ones(1000)

    def step() -> None:
        (small @ small).item()
        dist.all_reduce(large)

    traced(Path(folder) / f"rank{dist.get_rank()}.json", repeated(step), number=STEPS)


def one_loader_is_slow(folder: str) -> None:
    """The last rank waits for its data in each step, and the other for the last rank."""
    rank, gradient = dist.get_rank(), torch.ones(1000)
    batches = DataLoader(Slowly(), batch_size=2) if rank else [torch.ones(2, 256)] * 6

    def steps() -> Iterator[None]:
        for batch in batches:
            (batch @ batch.T).sum()
            dist.all_reduce(gradient)
            yield

    traced(Path(folder) / f"rank{rank}.json", steps(), number=STEPS)


def one_computes_more(folder: str) -> None:
    """The last rank has ten times the other's products to compute between two exchanges."""
    rank, gradient, square = dist.get_rank(), torch.ones(1000), torch.ones(400, 400)

    def step() -> None:
        for _ in range(40 if rank else 4):
            square @ square
        dist.all_reduce(gradient)

    traced(Path(folder) / f"rank{rank}.json", repeated(step), number=STEPS)


RANKS = {
    "exchanges": (exchanging, ("exposed communication", "exposed communication")),
    "a slow loader of one rank": (one_loader_is_slow, ("straggling rank", "starved loader")),
    "products of one rank": (one_computes_more, ("straggling rank", "kernels of unknown roof")),
}


def of_ranks(folder: Path, work: Callable[[str], None]) -> list[RankAccount]:
    run_ranks(work, str(folder), ranks=2)
    records = [read_record(str(path)) for path in sorted(folder.glob("*.json"))]
    return held_together([rank_account(one, rank=one.rank) for one in records])[1]


def found_in(folder: Path) -> dict[str, tuple[RankAccount, str, str]]:
    """Every run's account, what is to be suspected first, and the word."""
    found = {}
    for place, (name, truth) in enumerate(TRUTHS.items()):
        asked = {"with_stack": truth.with_stack, "profile_memory": truth.with_memory}
        traced(folder / f"{place}.json", truth.steps(), number=STEPS, **asked)
        found[name] = account(folder / f"{place}.json"), truth.first, truth.word
    for name, (work, firsts) in RANKS.items():
        (own := folder / name.replace(" ", "-")).mkdir()
        for rank, (one, first) in enumerate(zip(of_ranks(own, work), firsts, strict=True)):
            found[f"{name}, rank {rank}"] = one, first, ""
    return found


@pytest.mark.clock
def test_the_first_suspect_is_what_was_put_there(tmp_path) -> None:
    """The bar: right in thirteen of fifteen, and among the first three in all."""
    found = found_in(tmp_path)
    told = {name: [one.illness for one in account.suspects[:3]] for name, (account, _, _) in found.items()}
    right = sum(told[name][0] == first for name, (_, first, _) in found.items())
    among = sum(first in told[name] for name, (_, first, _) in found.items())
    print(f"{len(found)} known truths: first suspect right in {right}, among the first three in {among}")
    missed = {name: told[name] for name, (_, first, _) in found.items() if first not in told[name]}
    assert not missed
    wrong = {name: told[name] for name, (_, first, _) in found.items() if told[name][0] != first}
    assert len(found) >= 15
    assert len(wrong) <= math.floor(len(found) * 2 / 15), wrong
    for name, (one, first, word) in found.items():
        reason = next(suspect.because for suspect in one.suspects if suspect.illness == first)
        assert word in reason, (name, reason)
