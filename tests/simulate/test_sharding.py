"""The value-by-value deal keeps its own laws, whatever the formulas say."""

import pytest

from threeloops.simulate.training_loop.sharding import Grid, Parameter, stored_bytes

BYTES = {"matrix_bytes": (2, 4, 12), "other_bytes": (2, 4, 16)}


def model(*, expert=True):
    dense = [
        Parameter(name="projection", size=70, kind="split", stage=0),
        Parameter(name="norm", size=11, kind="whole", stage=1, hidden_matrix=False),
        Parameter(name="output", size=50, kind="split", stage=1),
    ]
    experts = [Parameter(name=f"expert {n}", size=13, kind="expert", stage=1, expert=n) for n in range(6)]
    return dense + experts if expert else dense


def test_without_parallelism_one_rank_stores_everything():
    stored = stored_bytes(model(), Grid(dp=1, tp=1, pp=2), zero_stage=0, **BYTES)[1, 0]
    # Stage 1: 50 + 6 * 13 matrix values, 11 others.
    assert stored.weights == 2 * (50 + 78 + 11)
    assert stored.optimiser == 12 * 128 + 16 * 11


@pytest.mark.parametrize(
    "grid", [Grid(dp=3, tp=2, pp=2, ep=6), Grid(dp=6, tp=1, pp=2, ep=2), Grid(dp=2, tp=3, pp=2, ep=2, expert_tp=3)]
)
def test_zero_stores_every_value_exactly_once(grid):
    """With uneven sizes too: 11 and 13 divide by nothing here. Whole tensors are stored once per tensor rank."""
    dealt = stored_bytes(model(), grid, zero_stage=3, **BYTES)
    values = 70 + 50 + 6 * 13 + 11 * grid.tp
    assert sum(stored.weights for stored in dealt.values()) == 2 * values
    assert sum(stored.gradients for stored in dealt.values()) == 4 * values


def test_stage_0_repeats_every_value_on_every_replica():
    grid = Grid(dp=3, tp=2, pp=2, ep=3)
    dealt = stored_bytes(model(), grid, zero_stage=0, **BYTES)
    # Dense values on 3 data-parallel ranks (the norm on both tensor ranks too); each expert on dp * tp / ep = 2
    # ranks.
    assert sum(stored.weights for stored in dealt.values()) == 2 * (3 * (70 + 50) + 6 * 11 + 2 * 6 * 13)


def test_replicas_share_within_one_value_per_tensor():
    dealt = stored_bytes(model(expert=False), Grid(dp=5, tp=2, pp=2), zero_stage=1, **BYTES)
    for stage in (0, 1):
        stores = [stored.optimiser for (place, _), stored in dealt.items() if place == stage]
        assert max(stores) - min(stores) <= 16
