"""A layer of experts: what a batch reads and computes, against tokens that are routed one by one."""

import random

import pytest

from threeloops.operations.expert_layers import expert_layer

SIZES = {"num_experts": 12, "top_k": 3, "hidden": 10, "intermediate": 14}


@pytest.mark.parametrize("ep", [1, 2, 4])
@pytest.mark.parametrize("tokens", [1, 5, 40])
def test_the_work_is_that_of_routed_tokens(tokens: int, ep: int) -> None:
    """Thousands of batches, dealt to GPUs that hold neighbouring experts; the first GPU's is counted."""
    rng, here, trials = random.Random(tokens), range(12 // ep), 4000
    flops = moved = 0
    for _ in range(trials):
        chosen = [rng.sample(range(12), 3) for _ in range(tokens)]
        mine = [expert for token in chosen for expert in token if expert in here]
        flops += sum(2 * 10 * 14 for _ in mine for _ in ("gate", "up", "down"))
        moved += sum(2 * 10 * 14 for _ in set(mine) for _ in ("gate", "up", "down")) + tokens * 2 * 10 * 2
    work = expert_layer(tokens=tokens, **SIZES, ep=ep, bytes_per_element=2)
    assert work.flops == pytest.approx(flops / trials, rel=0.03)
    assert work.moved_bytes == pytest.approx(moved / trials, rel=0.03)


def test_what_is_no_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="ep"):
        expert_layer(tokens=4, **SIZES, ep=0, bytes_per_element=2)
    with pytest.raises(ValueError, match="bytes_per_element"):
        expert_layer(tokens=4, **SIZES, ep=1, bytes_per_element=0)
