"""Joint training of two small modules: what holds on every machine."""

import pytest
import torch

from threeloops.measure.driving import joint_training as joint
from threeloops.measure.driving import repair_pairs


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_each_step_of_training_makes_a_better_plan() -> None:
    costs = [joint.cost(one.perception, one.planner) for one in joint.three_ways()]
    assert costs[0] > 1.7 * costs[1]
    assert costs[1] > 1.08 * costs[2]


def test_as_many_steps_for_the_planner_alone_do_not_make_the_joint_plan() -> None:
    control, both = joint.trained_in_turn(times=2), joint.trained_jointly()
    assert joint.cost(control.perception, control.planner) > 1.08 * joint.cost(both.perception, both.planner)


def test_the_better_perception_makes_the_worse_plan() -> None:
    apart, both = joint.trained_apart(), joint.trained_jointly()
    assert joint.error_m(apart.perception) < 0.9 * joint.error_m(both.perception)
    assert joint.cost(apart.perception, both.planner) > 1.15 * joint.cost(both.perception, both.planner)


def test_the_joint_message_says_less_of_the_gap_in_fog() -> None:
    clear, fog = (shift for _, shift in joint.bias_by_noise(joint.trained_jointly().perception, (0.5, 8.0)))
    assert fog < clear - 1.5
    clear, fog = (shift for _, shift in joint.bias_by_noise(joint.trained_apart().perception, (0.5, 8.0)))
    assert abs(fog - clear) < 1


def test_a_speed_too_high_costs_ten_times_one_too_low() -> None:
    gap = torch.full((1, 1), 27.0)  # 18 m/s stops in it
    assert float(joint.plan_cost(torch.full((1, 1), 17.0), gap)) == pytest.approx(1)
    assert float(joint.plan_cost(torch.full((1, 1), 19.0), gap)) == pytest.approx(10)


def test_training_leaves_the_random_state_alone() -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    joint.scenes(3, seed=1)
    joint._modules()
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_narrow_network_helps_in_a_batch_more_than_alone() -> None:
    clock = repair_pairs.seconds()
    batch, narrow = (frozenset({name}) for name in repair_pairs.REPAIRS)
    assert set(clock) == {frozenset(), batch, narrow, batch | narrow}
    assert clock[batch] > 2 * clock[batch | narrow]
    assert clock[frozenset()] > 3 * clock[batch]
    assert clock[frozenset()] / clock[narrow] < 0.7 * clock[batch] / clock[batch | narrow]
