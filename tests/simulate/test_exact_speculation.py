"""Speculation followed branch by branch: the output is the target's, and the formulas say how much a check yields."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.product_loop import speculative
from threeloops.simulate.product_loop import exact_speculation


def shares(numbers: list[int]) -> list[Fraction]:
    return [Fraction(number, sum(numbers)) for number in numbers]


rows = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any).map(shares)
models = st.lists(rows, min_size=3, max_size=3)


@settings(deadline=None, max_examples=30)
@given(target=models, draft=models, drafted=st.integers(0, 3))
def test_the_output_is_the_targets_whatever_the_draft(
    target: list[list[Fraction]], draft: list[list[Fraction]], drafted: int
) -> None:
    speculated = exact_speculation.speculated(target, draft, drafted=drafted, length=3)
    assert speculated == exact_speculation.sampled(target, length=3)


def test_a_rejection_answered_by_the_target_as_it_is_gives_another_output() -> None:
    target, draft = [shares([5, 5])] * 2, [shares([9, 1])] * 2
    wrong = exact_speculation.speculated(target, draft, drafted=1, length=1, always_from_target=True)
    assert wrong == {(0,): Fraction(7, 10), (1,): Fraction(3, 10)}


@given(fifths=st.lists(st.integers(0, 5), max_size=4))
def test_tokens_of_a_check_where_every_place_has_its_own_chance(fifths: list[int]) -> None:
    """All ways in which places may be accepted or not, each with its chance; what stands before a refusal counts."""
    mean = Fraction(0)
    for ways in itertools.product((True, False), repeat=len(fifths)):
        chances = [Fraction(fifth if taken else 5 - fifth, 5) for fifth, taken in zip(fifths, ways, strict=True)]
        mean += math.prod(chances) * (1 + len(list(itertools.takewhile(bool, ways))))
    told = speculative.tokens_per_check_by_place([fifth / 5 for fifth in fifths])
    assert told == pytest.approx(float(mean))
    if len(set(fifths)) == 1:
        alike = speculative.tokens_per_check(accepted_share=fifths[0] / 5, drafted=len(fifths))
        assert told == pytest.approx(alike)


@settings(deadline=None, max_examples=30)
@given(target=rows, draft=rows, drafted=st.integers(0, 4))
def test_tokens_of_a_check_where_every_place_is_alike(
    target: list[Fraction], draft: list[Fraction], drafted: int
) -> None:
    counted = exact_speculation.mean_tokens([target] * 3, [draft] * 3, drafted=drafted)
    share = speculative.acceptance([float(p) for p in target], [float(q) for q in draft])
    told = speculative.tokens_per_check(accepted_share=min(1.0, share), drafted=drafted)
    assert told == pytest.approx(float(counted))


def test_places_that_differ_yield_another_number_than_their_mean_says() -> None:
    """Easy places follow easy ones: longer runs than the mean share has by the formula."""
    easy, hard = shares([9, 1]), shares([1, 9])
    target = [easy, hard]  # after 0 mostly 0, after 1 mostly 1
    draft = [easy, shares([9, 1])]
    counted = float(exact_speculation.mean_tokens(target, draft, drafted=4))
    first = speculative.acceptance([float(p) for p in easy], [float(q) for q in easy])
    assert first == 1.0
    assert counted < speculative.tokens_per_check(accepted_share=first, drafted=4)


COSTS = {"cache_bytes_per_request": 1e7, "weights_bytes": 16e9, "flops_per_token": 16e9}
TARGET = speculative.DecodeCosts(**COSTS)
DRAFT = speculative.DecodeCosts(cache_bytes_per_request=2e6, weights_bytes=2e9, flops_per_token=2e9)
MACHINE = {"memory_bytes_per_s": 3e12, "peak_flops_per_s": 9e14}


def test_a_small_batch_has_the_papers_speedup_and_a_large_one_loses() -> None:
    few = speculative.batch_speedup(target=TARGET, draft=DRAFT, accepted_share=0.8, drafted=4, batch=1, **MACHINE)
    cost = (2e9 + 2e6) / (16e9 + 1e7)
    assert few == pytest.approx(speculative.speedup(accepted_share=0.8, drafted=4, draft_cost=cost))
    many = speculative.batch_speedup(target=TARGET, draft=DRAFT, accepted_share=0.8, drafted=4, batch=2000, **MACHINE)
    assert many < 1 < few
    long = speculative.DecodeCosts(cache_bytes_per_request=4e9, weights_bytes=16e9, flops_per_token=16e9)
    still = speculative.batch_speedup(target=long, draft=DRAFT, accepted_share=0.8, drafted=4, batch=2000, **MACHINE)
    assert still > 2  # long contexts keep the step reading


@pytest.mark.parametrize("batch", [1, 60, 400])
def test_the_speedup_in_a_batch_by_adding_up_what_is_read_and_computed(batch: int) -> None:
    """A check on a clock: the matmuls, the longer of reading and computing, and then every request's cache."""
    seconds = {}
    for name, costs, tokens in (("plain", TARGET, 1), ("check", TARGET, 5), ("draft", DRAFT, 1)):
        computed = sum(costs.flops_per_token for _ in range(batch * tokens))
        seconds[name] = max(costs.weights_bytes / 3e12, computed / 9e14)
        seconds[name] += sum(costs.cache_bytes_per_request / 3e12 for _ in range(batch))
    shares_of_five = [Fraction(4, 5) ** taken for taken in range(5)]  # places 0 to 4 of a check are reached
    yielded = float(sum(shares_of_five))
    spent = seconds["check"] + sum(seconds["draft"] for _ in range(4))
    told = speculative.batch_speedup(target=TARGET, draft=DRAFT, accepted_share=0.8, drafted=4, batch=batch, **MACHINE)
    assert told == pytest.approx(yielded * seconds["plain"] / spent)


@pytest.mark.parametrize(
    ("target", "draft", "told"),
    [
        ([0.5, 0.5], [1.0], "both need the same vocabulary"),
        ([0.5, 0.4], [0.5, 0.5], "target sums to 0.9"),
        ([0.5, 0.5], [1.5, -0.5], "draft sums to 1"),
    ],
)
def test_nonsense_is_refused(target: list[float], draft: list[float], told: str) -> None:
    for formula in (speculative.acceptance, speculative.after_refusal):
        with pytest.raises(ValueError, match=told):
            formula(target, draft)
    with pytest.raises(ValueError, match="accepted_share=80 must lie between 0 and 1"):
        speculative.whole_draft_chance(accepted_share=80, drafted=3)


@settings(deadline=None, max_examples=30)
@given(target=rows, draft=rows)
def test_after_a_refusal_tokens_come_as_often_as_branch_by_branch(
    target: list[Fraction], draft: list[Fraction]
) -> None:
    refused = {
        new[0]: chance for new, chance in exact_speculation.checked([target] * 3, [draft] * 3, 0, 1) if len(new) == 1
    }
    shares_given = [float(p) for p in target], [float(q) for q in draft]
    if target == draft:
        with pytest.raises(ValueError, match="a draft like that is never refused"):
            speculative.after_refusal(*shares_given)
    else:
        counted = [float(refused.get(token, 0) / sum(refused.values())) for token in range(3)]
        assert speculative.after_refusal(*shares_given) == pytest.approx(counted)


@settings(deadline=None, max_examples=30)
@given(target=rows, draft=rows, drafted=st.integers(0, 4))
def test_a_whole_draft_is_accepted_as_often_as_branch_by_branch(
    target: list[Fraction], draft: list[Fraction], drafted: int
) -> None:
    branches = exact_speculation.checked([target] * 3, [draft] * 3, 0, drafted)
    whole = sum(chance for new, chance in branches if len(new) == drafted + 1)
    share = sum(min(p, q) for p, q in zip(target, draft, strict=True))
    assert speculative.whole_draft_chance(accepted_share=float(share), drafted=drafted) == pytest.approx(float(whole))
