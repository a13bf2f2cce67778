"""Bytes and copies of expert exchanges: formulas against walked tokens, and against DeepEP's printed tables."""

import numpy as np
import pytest

from threeloops.facts.expert_fleets import exchange_times
from threeloops.product_loop.experts import exchange_bytes
from threeloops.simulate.product_loop.experts import token_copies

PRINTED = exchange_times("low-latency")
THERE = exchange_bytes.vector_bytes(7168, bits=8, elements_per_scale=128, scale_bytes=4, header_bytes=16)
BACK = exchange_bytes.vector_bytes(7168, bits=16)


@pytest.mark.parametrize(("hidden", "group", "header"), [(7168, 128, 16), (512, 32, 0), (256, 256, 4)])
def test_a_message_has_the_bytes_of_the_formula(hidden: int, group: int, header: int) -> None:
    vector = np.random.default_rng(1).normal(size=hidden).astype(np.float32)
    message = token_copies.written_bytes(vector, elements_per_scale=group, header=bytes(header))
    told = exchange_bytes.vector_bytes(hidden, bits=8, elements_per_scale=group, scale_bytes=4, header_bytes=header)
    assert len(message) == told


@pytest.mark.parametrize(
    ("ranks", "limit"), [(16, None), (32, None), (64, 4), (64, None), (128, 4)], ids=lambda value: str(value)
)
def test_walked_copies_are_those_of_the_formulas(ranks: int, limit: int | None) -> None:
    layout = {"top_k": 8, "ranks": ranks, "ranks_per_node": 8}
    drawn = {"num_experts": 256, "tokens": 2048 // ranks, "seed": ranks, "node_limit": limit}
    told = exchange_bytes.node_copies(num_experts=256, node_limit=limit, **layout)
    counted = token_copies.walk(**layout, **drawn, by_node=True)
    assert counted == pytest.approx((told.network, told.inside), rel=0.02)
    told = exchange_bytes.choice_copies(**layout)
    counted = token_copies.walk(**layout, **drawn, by_node=False)
    assert counted == pytest.approx((told.network, told.inside), rel=0.02, abs=0.06)


def test_printed_rates_are_the_bytes_of_all_copies_over_printed_times() -> None:
    """DeepEP's test leaves ten of its 1,024 choices open, so it sends a hundredth less than we count."""
    errors = []
    for seconds, rates, size in (
        (PRINTED.dispatch_s, PRINTED.dispatch_bytes_per_s, THERE),
        (PRINTED.combine_s, PRINTED.combine_bytes_per_s, BACK),
    ):
        for took, rate in zip(seconds, rates, strict=True):
            errors.append(PRINTED.tokens * PRINTED.top_k * size / (took * rate) - 1)
    assert max(map(abs, errors)) < 0.025
    assert 0.005 < sum(errors) / len(errors) < 0.02


def test_no_exchange_beats_its_links() -> None:
    """A bound: what leaves a node, over its cards. Measured exchanges reach 64 to 82 % of it."""
    shares = []
    for seconds, size in ((PRINTED.dispatch_s, THERE), (PRINTED.combine_s, BACK)):
        for ranks, took in list(zip(PRINTED.ranks, seconds, strict=True))[1:]:
            copies = exchange_bytes.choice_copies(top_k=8, ranks=ranks, ranks_per_node=8)
            floor = exchange_bytes.exchange_floor_s(
                copies,
                tokens=PRINTED.tokens,
                sent_bytes=size,
                card_bytes_per_s=PRINTED.card_bytes_per_s,
                link_bytes_per_s=160e9,
            )
            shares.append(floor / took)
    assert 0.64 < min(shares) < max(shares) < 0.83


@pytest.mark.parametrize(("card", "link"), [(50e9, 160e9), (400e9, 60e9)])
@pytest.mark.parametrize("by_node", [True, False])
def test_messages_sent_one_after_the_other_take_as_long_as_the_bound(by_node: bool, card: float, link: float) -> None:
    """Every walked copy occupies the link that it crosses, and both links work at once."""
    layout = {"top_k": 8, "ranks": 32, "ranks_per_node": 8}
    network, inside = token_copies.walk(num_experts=256, tokens=64, seed=3, by_node=by_node, **layout)
    busy_s = {"card": 0.0, "link": 0.0}
    for name, copies, rate in (("card", network, card), ("link", inside, link)):
        for _message in range(round(64 * copies)):
            busy_s[name] += THERE / rate
    way = exchange_bytes.node_copies(num_experts=256, **layout) if by_node else exchange_bytes.choice_copies(**layout)
    rates = {"card_bytes_per_s": card, "link_bytes_per_s": link}
    floor = exchange_bytes.exchange_floor_s(way, tokens=64, sent_bytes=THERE, **rates)
    assert max(busy_s.values()) == pytest.approx(floor, rel=0.03)


def test_printed_rates_of_the_normal_way_count_copies_that_stay_in_the_node() -> None:
    """On 32 GPUs 58 GB/s are printed for a card of 50: without the token's own node, one of four, it is 43.5."""
    printed = exchange_times("normal")
    over = [max(pair) for pair in zip(printed.dispatch_bytes_per_s, printed.combine_bytes_per_s, strict=True)]
    assert max(over) > printed.card_bytes_per_s
    for ranks, rate in zip(printed.ranks, over, strict=True):
        layout = {"num_experts": 256, "top_k": 8, "ranks": ranks, "ranks_per_node": 8}
        copies = exchange_bytes.node_copies(**layout, node_limit=min(4, ranks // 8))
        visited = copies.network / (1 - 8 / ranks)
        on_card = rate * copies.network / visited
        assert 0.4 * printed.card_bytes_per_s < on_card < 0.9 * printed.card_bytes_per_s


def test_a_node_limit_saves_network_bytes_and_nvlink_keeps_up() -> None:
    """NVLink carries 3.2 times what the card does (the report); a token goes to fewer GPUs than that a node."""
    layout = {"num_experts": 256, "top_k": 8, "ranks": 64, "ranks_per_node": 8}
    limited, free = exchange_bytes.node_copies(**layout, node_limit=4), exchange_bytes.node_copies(**layout)
    assert limited.network == pytest.approx(0.69 * free.network, rel=0.02)
    assert limited.inside / (limited.network / (1 - 1 / 8)) < 160 / 50


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: exchange_bytes.vector_bytes(7168, bits=8, elements_per_scale=128), "go together"),
        (lambda: exchange_bytes.vector_bytes(7168, bits=8, elements_per_scale=100, scale_bytes=4), "divide"),
        (lambda: exchange_bytes.choice_copies(top_k=8, ranks=12, ranks_per_node=8), "divide"),
        (
            lambda: exchange_bytes.node_copies(num_experts=256, top_k=8, ranks=16, ranks_per_node=8, node_limit=3),
            "more than the nodes",
        ),
        (lambda: exchange_times("fast"), "low-latency"),
    ],
)
def test_refusals(wrong, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        wrong()
