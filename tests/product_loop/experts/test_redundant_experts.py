"""Copies of experts: the bound against copies given out one by one, and against EPLB's own example."""

import pytest

from threeloops.models import catalogue, parameters
from threeloops.product_loop.experts import redundant_experts
from threeloops.simulate.product_loop.experts import placed_experts
from threeloops.training_loop.parallelism.expert_load import imbalance

# EPLB's README at commit d52c72d: loads of two layers, and what it prints for 16 copies, 4 groups, 2 nodes, 8 GPUs.
EXAMPLE = (
    (
        (90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86),
        ((5, 6), (5, 7), (8, 4), (3, 4), (10, 9), (10, 2), (0, 1), (11, 1)),
    ),
    (
        (20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27),
        ((7, 10), (6, 8), (6, 11), (8, 9), (2, 4), (5, 1), (5, 0), (3, 1)),
    ),
)


def skewed(seed: int, *, tokens: int = 20_000) -> list[int]:
    return placed_experts.drawn_loads(num_experts=256, top_k=8, skew=0.8, tokens=tokens, seed=seed)


@pytest.mark.parametrize("slots", [256, 257, 272, 288, 320, 512])
def test_the_best_copies_are_those_given_out_one_by_one(slots: int) -> None:
    for seed in range(4):
        loads = skewed(seed, tokens=2000)
        copies = placed_experts.copied(loads, slots=slots)
        counted = max(load / n for load, n in zip(loads, copies, strict=True))
        assert redundant_experts.busiest_copy(loads, slots=slots) == pytest.approx(counted)


@pytest.mark.parametrize(("gpus", "slots"), [(32, 288), (144, 288), (72, 288), (64, 320)])
def test_no_placement_beats_the_bound_and_the_packing_comes_close(gpus: int, slots: int) -> None:
    for seed in range(3):
        loads = skewed(seed)
        bound = redundant_experts.least_imbalance(loads, slots=slots, num_gpus=gpus)
        found = imbalance(placed_experts.placed(loads, slots=slots, gpus=gpus).loads(loads))
        assert bound <= found * (1 + 1e-9)
        assert found < 1.12 * bound


def test_the_example_of_eplb_is_placed_as_its_readme_prints_it() -> None:
    for loads, printed in EXAMPLE:
        found = placed_experts.placed(loads, slots=16, gpus=8, groups=4, nodes=2)
        theirs = placed_experts.Placed(gpus=printed)
        assert sorted(found.loads(loads)) == pytest.approx(sorted(theirs.loads(loads)))
        bound = redundant_experts.least_imbalance(loads, slots=16, num_gpus=8)
        assert bound <= imbalance(theirs.loads(loads)) < 1.35


def test_a_copy_a_gpu_costs_what_vllm_prints() -> None:
    """About 2.4 GB, it says, in units of 2**30."""
    held = parameters.model_parameters(catalogue.model("deepseek-v3")).routed_experts / 256
    told = redundant_experts.copies_bytes(copies_per_gpu=1, num_layers=58, expert_bytes=3 * 7168 * 2048)
    assert told == held
    assert told / 2**30 == pytest.approx(2.4, abs=0.05)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: redundant_experts.busiest_copy([3, 1], slots=1), "at least one copy"),
        (lambda: redundant_experts.busiest_copy([0, 0], slots=2), "at least one token"),
        (lambda: redundant_experts.least_imbalance([3, 1], slots=3, num_gpus=2), "divide"),
        (lambda: placed_experts.placed([3, 1], slots=4, gpus=2, nodes=2), "divide"),
    ],
)
def test_refusals(wrong, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        wrong()
