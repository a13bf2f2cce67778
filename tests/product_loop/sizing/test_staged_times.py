"""Stages: played batch by batch, memory counted layer by layer, handovers by hand."""

import random
from dataclasses import replace
from typing import Any

import pytest

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.product_loop.sizing.request_times import RequestTimes
from threeloops.product_loop.sizing.served_layout import ServedLayout
from threeloops.product_loop.sizing.staged_times import Stages, handover_s, staged_times
from threeloops.simulate.product_loop.serving_steps import StepContents
from threeloops.simulate.product_loop.sizing.replica_runs import ReplicaStep

WHOLE = RequestTimes(decode_s=((1, 0.010), (64, 0.016)), prompt_s=0.110, new=1000)
CUT: dict[str, Any] = {"hidden": 8192, "tp": 8, "num_layers": 80, "most": 128}
LLAMA = ServedLayout(
    model=catalogue.model("llama-3-70b"),
    part=hardware.part("h100-sxm5"),
    weights="bf16",
    cache="bf16",
    tp=8,
    memory_utilisation=0.92,
    other_bytes=3e9,
)


def test_a_handover_by_hand() -> None:
    """1,000 tokens x 8,192 x 2 bytes from eight GPUs at 50 GB/s; engines send two such at 0.8 of it, after 5 µs."""
    stages = Stages(number=2, network_bytes_per_s=50e9)
    of_all = {"hidden": 8192, "tp": 8, "tokens": 1000}
    assert handover_s(stages, **of_all, real=False) == pytest.approx(1000 * 8192 * 2 / 8 / 50e9)
    assert handover_s(stages, **of_all, real=True) == pytest.approx(2 * 1000 * 8192 * 2 / 8 / 40e9 + 5e-6)


def played_s(stages: int, *, stage_s: float, sent_s: float, reads_s: list[list[float]]) -> float:
    """Mean seconds of a round: every stage works on one batch at a time, in order; a batch begins its next round when
    its tokens have come back.
    """
    free, ready, ended = [0.0] * stages, [0.0] * stages, 0.0
    for round_s in reads_s:
        for batch in range(stages):
            now = ready[batch]
            for stage in range(stages):
                now = max(now, free[stage]) + stage_s + round_s[batch] / stages
                free[stage] = now
                now += sent_s
            ready[batch] = ended = now
    return ended / len(reads_s)


@pytest.mark.parametrize("stages", [2, 4])
def test_batches_that_go_from_stage_to_stage(stages: int) -> None:
    """Without prompts exactly. With prompts of 0.1 s in some batches the steps of a replica are too long, by a few per
    cent where prompts are rare and a quarter where there are 1.5 in a round; those of the bound are short.
    """
    network = Stages(number=stages, network_bytes_per_s=50e9)
    real, bound = (staged_times(WHOLE, network, **CUT, real=real) for real in (True, False))
    batch, rng = 128 // stages, random.Random(3)
    sent: dict[str, Any] = {"hidden": 8192, "tp": 8, "real": True}
    given = {
        "stage_s": WHOLE.step_s(batch) / stages,
        "sent_s": handover_s(network, **sent, tokens=batch),
    }
    assert real.step_s(128) == pytest.approx(played_s(stages, **given, reads_s=[[0.0] * stages] * 500), rel=0.005)
    for prompts, most in ((0.3, 1.06), (1.5, 1.3)):
        read = [[0.1 if rng.random() < prompts / stages else 0.0 for _ in range(stages)] for _ in range(2000)]
        took_s = played_s(stages, **given, reads_s=read)
        assert 0.99 < told_s(real, read) / took_s < most
        assert told_s(bound, read) < took_s
    assert real.prompt_s == pytest.approx(0.110 + (stages - 1) * handover_s(network, **sent, tokens=1000))
    assert bound.prompt_s == pytest.approx(bound.step_s(1) + 0.1 / stages)


def told_s(times: RequestTimes, reads_s: list[list[float]]) -> float:
    """Mean seconds of a replica's steps with the same prompts, of 1,000 tokens in 0.1 s."""
    step = ReplicaStep(
        decode_s=(times.step_s(128),) * 200,
        per_new_token_s=times.per_new_token_s,
        groups=times.groups,
        per_shared_token_s=times.per_shared_token_s,
        prompt=1000,
    )
    return sum(step(StepContents(round(sum(one) * 10_000), 128, 0)) for one in reads_s) / len(reads_s)


def test_an_uneven_cut_makes_everyone_wait_for_the_fullest_stage() -> None:
    """Five layers in two stages, three and two of them: one request alone hardly notices."""
    fast = Stages(number=2, network_bytes_per_s=1e15)
    times = staged_times(WHOLE, fast, **CUT | {"num_layers": 5}, real=False)
    assert times.step_s(128) == pytest.approx(2 * 3 / 5 * 0.016)
    assert times.step_s(1) == pytest.approx(0.010)


def test_the_fullest_stage_holds_its_layers_and_one_table() -> None:
    """Llama 3 70B: 80 layers of 855,654,400 in 16 bits, two tables of 128,256 x 8,192; on eight GPUs 1/8 of each."""
    layer, table = 855_654_400, 128_256 * 8192
    for pp, layers in ((2, 40), (3, 27), (80, 1)):
        staged = replace(LLAMA, pp=pp)
        assert staged.gpus == 8 * pp
        assert staged.weights_bytes == pytest.approx(2 * (layers * layer + table) / 8, rel=1e-5)
    one = LLAMA.cached_bytes / (2 * 80 * 128 * 2)  # tokens that a GPU's KV head of every layer has room for
    two = replace(LLAMA, pp=2)
    assert two.cached_bytes / (2 * 80 * 128 * 2) == pytest.approx(2 * two.free_bytes / LLAMA.free_bytes * one)
    assert two.seats(4096) > 2 * LLAMA.seats(4096)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Stages(number=0, network_bytes_per_s=1.0), "pp=0"),
        (lambda: Stages(number=2, network_bytes_per_s=0.0), "network_bytes_per_s=0"),
        (lambda: replace(LLAMA, pp=81), "pp=81 stages are more than the 80 layers"),
        (
            lambda: staged_times(WHOLE, Stages(number=81, network_bytes_per_s=1.0), **CUT, real=False),
            "more than the 80 layers",
        ),
    ],
)
def test_stages_that_cannot_be(made: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        made()
