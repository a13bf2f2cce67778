"""Expert load: what a router that sends tokens unevenly costs, and how even a router can be.

A layer of experts is done when its busiest expert is. So the figure to watch is the largest load over the mean one,
the imbalance.

>>> uneven = [340, 180, 120, 90, 40, 30]
>>> round(imbalance(uneven), 2), expert_capacity(tokens=400, top_k=2, num_experts=6, capacity_factor=1.25)
(2.55, 167)
>>> round(dropped_share(uneven, capacity=167), 3)
0.233

Source: Lepikhin et al., GShard, 2020, arXiv:2006.16668, section 2.2 (capacity); Fedus, Zoph, Shazeer, Switch
        Transformers, 2021, arXiv:2101.03961,
section 2.2 (capacity factor, auxiliary loss); Wang et al., 2024, arXiv:2408.15664 (balancing by a bias)
"""

import math
from collections.abc import Sequence

from threeloops import checks


def expert_capacity(*, tokens: int, top_k: int, num_experts: int, capacity_factor: float) -> int:
    """Tokens that one expert takes at most.

    Formula:  ceil(capacity_factor * tokens * top_k / num_experts)
    Units:    tokens of those that are routed together: a micro-batch of one rank, or of a group; top_k counts every
              copy of a token
    Assumes:  rounding up (Megatron Core does; GShard and Switch leave it open); no capacity below 1
    Source:   Fedus et al., 2021, section 2.2, equation 3 (with top_k = 1)
    Counted:  simulate.training_loop.expert_routing.serve

    >>> expert_capacity(tokens=4096, top_k=2, num_experts=8, capacity_factor=1.25)
    1280
    """
    checks.count(tokens=tokens, top_k=top_k, num_experts=num_experts)
    checks.positive(capacity_factor=capacity_factor)
    _top_k_fits(top_k, num_experts)
    return math.ceil(capacity_factor * tokens * top_k / num_experts)


def dropped_share(loads: Sequence[float], *, capacity: float) -> float:
    """The share of all choices that find their expert full.

    Formula:  sum of max(0, load - capacity) over the sum of loads
    Units:    loads in tokens sent to each expert
    Assumes:  an expert takes the tokens that come first and sends the rest away; a token that is sent away passes
              the layer by on its residual connection
    Counted:  simulate.training_loop.expert_routing.serve
    """
    _loads(loads)
    checks.positive(capacity=capacity)
    return sum(max(0.0, load - capacity) for load in loads) / sum(loads)


def imbalance(loads: Sequence[float]) -> float:
    """The largest load over the mean one: by what the slowest makes all the others wait; 1 when all are alike.

    Formula:  max(loads) / mean(loads)
    Units:    loads in anything that takes time in proportion: tokens per expert, or per rank
    Counted:  simulate.training_loop.expert_routing.serve

    >>> imbalance([3, 1, 1, 1])
    2.0
    """
    _loads(loads)
    return max(loads) * len(loads) / sum(loads)


def busiest_rank_s(
    *, tokens: int, top_k: int, busiest_share: float, expert_parameters: float, flops_per_s: float
) -> float:
    """Seconds until the rank with the most popular experts has done their forward pass: the layer waits for it.

    Formula:  busiest_share * tokens * top_k * 2 * expert_parameters / flops_per_s
    Units:    tokens of all ranks over which the experts are dealt out; busiest_share of all choices, those that fall
              on this rank's experts; expert_parameters in the matrices of one expert
    Assumes:  nothing is dropped; every rank multiplies at the same rate; exchanges aside
    Raises:   ValueError for what is not positive, or a share above 1
    Source:   Lepikhin et al., GShard, 2020, arXiv:2006.16668, section 2.2 (the busiest expert decides)
    Counted:  simulate.training_loop.expert_routing.router

    >>> busiest_rank_s(tokens=5000, top_k=2, busiest_share=0.25, expert_parameters=6e6, flops_per_s=300e12)
    0.0001
    """
    checks.count(tokens=tokens, top_k=top_k)
    checks.positive(busiest_share=busiest_share, expert_parameters=expert_parameters, flops_per_s=flops_per_s)
    checks.fraction(busiest_share=busiest_share)
    return busiest_share * tokens * top_k * 2 * expert_parameters / flops_per_s


def balanced_spread(*, tokens: int, top_k: int, num_experts: int) -> float:
    """How far the load of an expert lies from the mean when every expert is as likely as any other: its standard
    deviation over its mean.

    Formula:  sqrt((num_experts / top_k - 1) / tokens)
    Assumes:  tokens choose independently of each other (those of one document do not: real spreads are larger)
    Source:   binomial distribution: each token takes a given expert with probability top_k / num_experts
    Counted:  simulate.training_loop.expert_routing.serve

    >>> round(balanced_spread(tokens=4096, top_k=8, num_experts=256), 3)
    0.087
    """
    checks.count(tokens=tokens, top_k=top_k, num_experts=num_experts)
    _top_k_fits(top_k, num_experts)
    return math.sqrt((num_experts / top_k - 1) / tokens)


def visited_groups(*, num_experts: int, top_k: int, groups: int) -> float:
    """Ranks (or nodes) that a token's choices lie on, on average: how often its vector travels if one copy per rank
    (or node) is enough.

    Formula:  groups * (1 - C(E - E / groups, k) / C(E, k))
    Assumes:  every set of top_k experts is as likely as any other; experts are dealt out evenly
    Raises:   ValueError if the groups do not divide the experts
    Source:   expectation of a count: each group is missed with the probability that all choices fall into the others
    Counted:  simulate.training_loop.expert_routing.visited

    >>> round(visited_groups(num_experts=256, top_k=8, groups=8), 2)
    5.29
    """
    checks.count(num_experts=num_experts, top_k=top_k, groups=groups)
    _top_k_fits(top_k, num_experts)
    checks.divides(part="groups", part_value=groups, whole="num_experts", whole_value=num_experts)
    elsewhere = num_experts - num_experts // groups
    return groups * (1 - math.comb(elsewhere, top_k) / math.comb(num_experts, top_k))


def auxiliary_loss(*, loads: Sequence[float], mean_probabilities: Sequence[float]) -> float:
    """The loss that pulls a router towards even loads, before its coefficient; 1 when loads or probabilities are
    even.

    Formula:  num_experts * sum of (share of the load of expert i) * (mean probability of expert i)
    Units:    loads in tokens; mean_probabilities of the softmax over all experts, mean over tokens
    Assumes:  gradients flow through the probabilities only: a count has none
    Source:   Fedus et al., 2021, section 2.2, equations 4 to 6
    Counted:  tests.training_loop.test_expert_load.test_the_auxiliary_loss_is_one_for_even_loads_and_more_for_others

    >>> (
    ...     auxiliary_loss(loads=[3, 1], mean_probabilities=[0.75, 0.25]),
    ...     auxiliary_loss(loads=[2, 2], mean_probabilities=[0.5, 0.5]),
    ... )
    (1.25, 1.0)
    """
    _loads(loads)
    if len(mean_probabilities) != len(loads):
        raise ValueError(
            f"there are {len(mean_probabilities)} mean_probabilities and {len(loads)} loads; give one of each per"
            " expert"
        )
    for probability in mean_probabilities:
        checks.fraction(mean_probability=probability)
    return (
        len(loads)
        * sum(load * probability for load, probability in zip(loads, mean_probabilities, strict=True))
        / sum(loads)
    )


def _loads(loads: Sequence[float]) -> None:
    for load in loads:
        checks.non_negative(load=load)
    if not sum(loads):
        raise ValueError(f"loads={list(loads)!r} must hold at least one token")


def _top_k_fits(top_k: int, num_experts: int) -> None:
    if top_k > num_experts:
        raise ValueError(f"top_k={top_k} must not exceed num_experts={num_experts}")
