"""Operating a service: limits of the formulas, published rules, what is refused. Drills' walks count the rest."""

import itertools

import pytest

from threeloops.product_loop.operating import (
    agents,
    canaries,
    guided,
    image_prompts,
    prefix_routes,
    repeats,
    retrieval,
    scaling_out,
    tenants,
    wall_power,
)


def test_one_copy_has_every_turn_and_many_copies_have_next_to_none() -> None:
    assert prefix_routes.random_cached_turns(turns=7, copies=1) == 7
    assert prefix_routes.random_cached_turns(turns=7, copies=10_000) < 0.01


def test_no_share_can_grow_without_shrinking_one_that_is_no_larger() -> None:
    for capacity in (5.0, 20.0, 47.0):
        for demands in itertools.product((0.0, 1.5, 8.0, 20.0), repeat=4):
            shares = tenants.fair_shares(capacity=capacity, demands=demands)
            assert sum(shares) == pytest.approx(min(capacity, sum(demands)))
            for share, demand in zip(shares, demands, strict=True):
                assert share <= demand
                if share < demand - 1e-9:  # who gets less than asked for gets no less than any other
                    assert share == pytest.approx(max(shares))


def test_a_request_that_its_bucket_holds_does_not_wait() -> None:
    assert tenants.bucket_wait_s(wanted=5, left=5, refill_per_s=1) == 0


def test_where_nothing_fails_each_request_comes_once_and_where_all_fail_with_all_its_retries() -> None:
    assert tenants.attempts_per_request(failing=0, retries=4) == 1
    assert tenants.attempts_per_request(failing=1, retries=4) == 5


def test_masks_that_are_quick_are_hidden() -> None:
    assert guided.guided_step_s(gpu_s=0.02, mask_s=1e-5, sequences=8, workers=1, sample_s=0.001) == pytest.approx(0.021)


def test_the_rule_of_three() -> None:
    """No fault in n requests leaves, with 95 %, a share of faults up to about 3 / n."""
    assert canaries.canary_requests(fault_share=0.003, chance=0.95) == pytest.approx(3 / 0.003, rel=0.01)


def test_half_of_the_runs_agree_for_as_long_as_tokens_alike_says() -> None:
    tokens = round(repeats.tokens_alike(flip=1e-4, share=0.5))
    assert repeats.alike_share(flip=1e-4, tokens=tokens) == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: scaling_out.load_to_order_at(capacity_per_s=5, growth_per_s2=1, cold_start_s=10), "keep copies warm"),
        (lambda: canaries.canary_requests(fault_share=0, chance=0.9), "both left out"),
        (lambda: repeats.tokens_alike(flip=0.1, share=1), "both left out"),
        (lambda: tenants.fair_shares(capacity=3, demands=[]), "demands is empty"),
        (lambda: image_prompts.image_tokens(height=20, width=900, patch=14, merged=2), "at least 28"),
        (lambda: agents.step_reliability(whole=0, steps=3), "greater than 0"),
        (
            lambda: retrieval.retrieved_ttft_s(
                embed_s=-1, search_s=0, found=1, reranked_at_once=1, rerank_s=0, prompt_tokens=1, token_s=0
            ),
            "embed_s",
        ),
        (
            lambda: wall_power.answer_energy_j(
                num_gpus=1, gpu_w=1, host_share=0, facility_overhead=0.9, tokens=1, tokens_per_s=1
            ),
            "at least 1",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()
