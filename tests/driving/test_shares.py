"""Shares of a speed-up, held against every order of the repairs, and the story's own numbers against what it says."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.driving import shares, three_stories
from threeloops.simulate.driving import repair_orders

factors = st.dictionaries(st.sampled_from("abcde"), st.fractions(1, 5, max_denominator=20), min_size=1, max_size=4)


@given(factors, st.integers(1, 100))
def test_the_mean_over_orders_is_the_mean_of_all_accounts(made: dict[str, Fraction], whole: int) -> None:
    def saved(of: frozenset[str]) -> float:
        return whole - whole / math.prod(float(made[name]) for name in of)

    counted = repair_orders.mean(made, whole=Fraction(whole))
    told = shares.mean_over_orders(saved, list(made))
    assert told == pytest.approx({name: float(one) for name, one in counted.items()}, abs=1e-9)
    assert math.fsum(told.values()) == pytest.approx(saved(frozenset(made)), abs=1e-9)


@given(factors, st.integers(1, 100))
def test_an_order_is_what_happens_in_it(made: dict[str, Fraction], whole: int) -> None:
    counted = repair_orders.brought(made, list(made), whole=Fraction(whole))
    told = shares.saved_in_order({name: float(one) for name, one in made.items()}, whole=whole)
    assert told == pytest.approx({name: float(one) for name, one in counted.items()}, abs=1e-9)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4).filter(any))
def test_shares_of_the_logarithm_are_halvings(halvings: list[int]) -> None:
    told = shares.log_shares({str(place): 2.0**times for place, times in enumerate(halvings)})
    assert list(told.values()) == pytest.approx([times / sum(halvings) for times in halvings])


def test_no_speed_up_is_refused() -> None:
    with pytest.raises(ValueError, match="above 1"):
        shares.log_shares({"a": 2.0, "b": 0.5})


def test_the_three_stories_are_those_of_the_first_page() -> None:
    assert three_stories.hours_after() == pytest.approx(22, abs=0.01)
    assert three_stories.car_latency_s(()) == pytest.approx(0.042)
    assert three_stories.car_latency_s(three_stories.CAR_REPAIRS) == pytest.approx(0.033)
    assert three_stories.step_after_s() == pytest.approx(0.018)
    assert three_stories.requests_per_s_after() == pytest.approx(1400)


def test_the_car_is_repaired_one_repair_after_the_other() -> None:
    stages = dict(three_stories.CAR_STAGES_S)
    for count, repair in enumerate(three_stories.CAR_REPAIRS, start=1):
        stages[repair.stage] -= stages[repair.stage] * (1 - 1 / repair.factor)  # what it saves
        assert three_stories.car_stages_s(three_stories.CAR_REPAIRS[:count]) == pytest.approx(stages)


def test_a_run_loses_the_same_hours_whatever_the_order() -> None:
    told = shares.mean_over_orders(three_stories.hours_saved, ["inner", "training"])
    exact = {"inner": Fraction(77, 40), "training": Fraction(17, 10)}
    counted = repair_orders.mean(exact, whole=Fraction(72))
    assert told == pytest.approx({name: float(hours) for name, hours in counted.items()})


def test_each_stage_is_repaired_by_itself() -> None:
    """Repairs of different stages save the same in every order; two of one stage do not."""
    one, two = three_stories.CAR_REPAIRS[0], three_stories.CAR_REPAIRS[3]
    alone = [three_stories.car_latency_s(()) - three_stories.car_latency_s([repair]) for repair in (one, two)]
    assert three_stories.car_latency_s(()) - three_stories.car_latency_s([one, two]) == pytest.approx(sum(alone))
    backbone = [repair for repair in three_stories.CAR_REPAIRS if repair.stage == "backbone"]
    alone = [three_stories.car_latency_s(()) - three_stories.car_latency_s([repair]) for repair in backbone]
    assert three_stories.car_latency_s(()) - three_stories.car_latency_s(backbone) < sum(alone) - 1e-4


def test_an_answer_of_the_car_is_as_old_as_a_clock_says() -> None:
    """One frame at a time, a tick of 10 us: the newest answer's age, asked at every tick of a long drive."""
    for made in ((), three_stories.CAR_REPAIRS):
        busy, period = round(three_stories.car_latency_s(made) * 1e5), 1e5 / three_stories.FRAMES_PER_S
        taken, free, answers = 0, 0.0, []
        for frame in range(400):
            if frame * period >= free:
                taken, free = frame, frame * period + busy
                answers.append((free, taken * period))
        ages = [
            now - picture
            for (ready, picture), (until, _) in itertools.pairwise(answers)
            for now in range(math.ceil(ready), math.ceil(until))
        ]
        mean, largest = three_stories.car_ages_s(made)
        assert [sum(ages) / len(ages), max(ages)] == pytest.approx([mean * 1e5, largest * 1e5], abs=2)


def test_the_chain_is_one_stage_and_the_others() -> None:
    for stage in three_stories.CAR_STAGES_S:
        assert sum(three_stories.car_split_s(stage)) == pytest.approx(three_stories.car_latency_s(()))
    with pytest.raises(ValueError, match="stage"):
        three_stories.car_split_s("lidar")


def test_the_loops_share_what_the_car_saves() -> None:
    told = shares.mean_over_orders(three_stories.car_saved_s, ["inner", "training", "product"])
    assert math.fsum(told.values()) == pytest.approx(0.009)
    assert math.prod(three_stories.by_loop(three_stories.SERVICE_REPAIRS).values()) == pytest.approx(7)
