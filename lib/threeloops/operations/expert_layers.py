"""A layer of experts: which of them a batch reads, and the work of those that one GPU holds."""

from threeloops import checks
from threeloops.operations.roofline import Work

ROUTING = ("uniform", "spread", "same")
ACTIVATION_BYTES = 2  # tokens come and go in 16 bits, whatever the weights are


def experts_touched(*, num_experts: int, top_k: int, tokens: int, routing: str) -> float:
    """Experts whose weights one layer must read for this many tokens, under a named assumption about the router.

    Formula:  uniform: num_experts * (1 - (1 - top_k/num_experts)^tokens), the expectation when tokens choose
              independently and evenly spread: min(num_experts, top_k * tokens), no two tokens share while they can
              avoid it same: top_k, all tokens choose alike
    Source:   by definition of an expectation: an expert is missed by all tokens, each of which chooses by itself
    Counted:  simulate.product_loop.decode_clock.mean_touched

    >>> [
    ...     round(experts_touched(num_experts=8, top_k=2, tokens=4, routing=routing), 2)
    ...     for routing in ("uniform", "spread", "same")
    ... ]
    [5.47, 8, 2]
    """
    checks.count(num_experts=num_experts, top_k=top_k, tokens=tokens)
    checks.one_of(ROUTING, routing=routing)
    if routing == "uniform":
        return num_experts * (1 - (1 - top_k / num_experts) ** tokens)
    return min(num_experts, top_k * tokens) if routing == "spread" else top_k


def expert_layer(
    *, tokens: int, num_experts: int, top_k: int, hidden: int, intermediate: int, ep: int, bytes_per_element: float
) -> Work:
    """FLOPs and bytes of one GPU's experts for a batch: gate, up and down of every token that chose one of them.

    Formula:  FLOPs: 2 * tokens * top_k / ep * 3 * hidden * intermediate
              bytes: experts touched / ep * 3 * hidden * intermediate * bytes_per_element + tokens in and out
    Shapes:   tokens [tokens, hidden]; of each expert gate and up [hidden, intermediate], down [intermediate, hidden];
              intermediate as this GPU holds it
    Assumes:  tokens choose independently and evenly; each of ep GPUs holds as many experts, and sees all tokens
    Source:   Fedus, Zoph, Shazeer, 2021, arXiv:2101.03961, section 2.1 (a token's products with the experts it chose)
    Counted:  tests.operations.test_expert_layers.test_the_work_is_that_of_routed_tokens

    >>> one = expert_layer(
    ...     tokens=64, num_experts=256, top_k=8, hidden=3072, intermediate=1536, ep=1, bytes_per_element=1
    ... )
    >>> round(one.moved_bytes / 1e9, 2), round(one.arithmetic_intensity)  # nearly all weights, for 4.6 tokens each
    (3.15, 5)
    """
    checks.count(hidden=hidden, intermediate=intermediate, ep=ep)
    checks.positive(bytes_per_element=bytes_per_element)
    touched = experts_touched(num_experts=num_experts, top_k=top_k, tokens=tokens, routing="uniform")
    weights = 3 * hidden * intermediate
    return Work(
        flops=2 * tokens * top_k / ep * weights,
        moved_bytes=touched / ep * weights * bytes_per_element + 2 * tokens * hidden * ACTIVATION_BYTES,
    )
