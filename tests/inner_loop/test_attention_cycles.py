"""Cycles per unit in one multiprocessor: against the papers' own figures and a clock on which groups of warps take
turns.
"""

import itertools

import pytest

from threeloops.inner_loop.attention_cycles import TileCycles, UnitRates, tile_cycles
from threeloops.simulate.inner_loop.unit_turns import play

HOPPER = UnitRates(matrix_flops_per_clock=4096, exponentials_per_clock=16)
BLACKWELL = UnitRates(matrix_flops_per_clock=8192, exponentials_per_clock=16)
TILE = {"query_rows": 128, "key_rows": 128, "head_dim": 128}


def test_hopper_spends_half_as_long_on_exponentials_as_on_products() -> None:
    # FlashAttention-3, section 3.1: at head dimension 128 there are 512 matmul FLOPs per exponential, at 1/256 of the
    # rate: 50 % of the cycles.
    cycles = tile_cycles(**TILE, rates=HOPPER)
    assert cycles.exponential / cycles.matrix == 0.5
    assert cycles.matrix_share_in_turn == pytest.approx(2 / 3)
    assert cycles.bound == "matrix"


def test_blackwell_is_bound_by_both() -> None:
    # FlashAttention-4, section 3.1: 1024 cycles of MMA and 1024 of exponentials for a tile of 128 x 128 x 128.
    cycles = tile_cycles(**TILE, rates=BLACKWELL)
    assert (cycles.matrix, cycles.exponential, cycles.bound) == (1024, 1024, "both")
    assert tile_cycles(**TILE | {"head_dim": 64}, rates=BLACKWELL).bound == "exponential"
    assert tile_cycles(**TILE, rates=BLACKWELL, emulated_share=0.25).bound == "matrix"


def test_in_8_bits_hopper_is_where_blackwell_is_in_16() -> None:
    fp8 = UnitRates(matrix_flops_per_clock=2 * 4096, exponentials_per_clock=16)
    assert tile_cycles(**TILE, rates=fp8) == tile_cycles(**TILE, rates=BLACKWELL)


@pytest.mark.parametrize("rates", [HOPPER, BLACKWELL])
def test_one_group_takes_turns_and_two_overlap(rates: UnitRates) -> None:
    cycles, tiles = tile_cycles(**TILE, rates=rates), 200
    alone = play(groups=1, tiles=tiles, matrix_cycles=cycles.matrix, exponential_cycles=cycles.exponential)
    assert alone.finished_cycles == tiles * cycles.in_turn
    assert alone.matrix_busy == pytest.approx(cycles.matrix_share_in_turn)
    # Two groups with half of the rows each: the same work.
    pair = play(groups=2, tiles=tiles, matrix_cycles=cycles.matrix / 2, exponential_cycles=cycles.exponential / 2)
    assert pair.finished_cycles == pytest.approx(tiles * cycles.overlapped, rel=0.01)
    assert pair.matrix_busy == pytest.approx(cycles.matrix_share_overlapped, rel=0.01)


@pytest.mark.parametrize("groups", [1, 2, 3, 5])
@pytest.mark.parametrize(("matrix", "exponential"), [(4, 1), (1, 1), (1, 4), (2, 3)])
def test_no_schedule_beats_the_busier_unit_or_loses_to_taking_turns(
    groups: int, matrix: float, exponential: float
) -> None:
    played = play(groups=groups, tiles=30, matrix_cycles=matrix, exponential_cycles=exponential)
    work = groups * 30
    assert work * max(matrix, exponential) <= played.finished_cycles <= work * (matrix + exponential)
    for unit, cycles in (("matrix", matrix), ("exponential", exponential)):
        turns = sorted((turn for turn in played.turns if turn.unit == unit), key=lambda turn: turn.start)
        assert sum(turn.end - turn.start for turn in turns) == pytest.approx(work * cycles)
        assert all(first.end <= second.start for first, second in itertools.pairwise(turns)), (
            "a unit served two at once"
        )


def test_every_group_does_its_steps_in_order() -> None:
    played = play(groups=3, tiles=4, matrix_cycles=2, exponential_cycles=3)
    for group in range(3):
        turns = [turn for turn in played.turns if turn.group == group]
        assert [turn.unit for turn in turns] == ["matrix", "exponential", "matrix"] * 4
        assert all(first.end <= second.start for first, second in itertools.pairwise(turns))


def test_rates_scale_and_limits() -> None:
    twice = UnitRates(matrix_flops_per_clock=8192, exponentials_per_clock=32)
    slow, fast = tile_cycles(**TILE, rates=HOPPER), tile_cycles(**TILE, rates=twice)
    assert (slow.matrix, slow.exponential) == (2 * fast.matrix, 2 * fast.exponential)
    assert tile_cycles(**TILE, rates=HOPPER, emulated_share=1.0) == TileCycles(matrix=2048, exponential=0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"emulated_share=25 must lie between 0 and 1"):
        tile_cycles(**TILE, rates=HOPPER, emulated_share=25)
    with pytest.raises(ValueError, match="exponentials_per_clock=0 must be greater than 0"):
        UnitRates(matrix_flops_per_clock=4096, exponentials_per_clock=0)
