"""Tensor parallelism: what one layer cut over ranks calculates, waits for, and holds.

A layer is an attention and an MLP half, each cut by columns and then by rows. Each half joins its partial results
once forward and once backward, so a layer pays for four all-reduces of the whole stream, whatever the number of
ranks; what it calculates is divided by them.

>>> llama = layer_time(layer_parameters=855638016, tokens=8192, tp=8, flops_per_s=794.5e12, all_reduce_s=0.522e-3)
>>> round(llama.compute_s * 1e3, 2), round(llama.exchange_s * 1e3, 2), round(llama.compute_share, 2)
(6.62, 2.09, 0.76)

Source: Shoeybi et al., Megatron-LM, 2019, arXiv:1909.08053, section 3
"""

import math
from dataclasses import dataclass

from threeloops import checks

ALL_REDUCES_PER_LAYER = 4  # attention and MLP, forward and backward
_PASSES = 3  # a backward pass calculates twice what the forward pass did


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """One layer on one tensor-parallel rank, forward and backward, nothing hidden behind anything."""

    compute_s: float
    exchange_s: float

    @property
    def total_s(self) -> float:
        return self.compute_s + self.exchange_s

    @property
    def compute_share(self) -> float:
        """The share of the time in which the rank calculates."""
        return self.compute_s / self.total_s


def layer_time(*, layer_parameters: float, tokens: int, tp: int, flops_per_s: float, all_reduce_s: float) -> LayerTime:
    """Seconds of one layer, forward and backward, on each of tp ranks.

    Formula:  compute = 6 * layer_parameters * tokens / (tp * flops_per_s);  exchange = 4 * all_reduce_s, nothing for
              tp = 1
    Units:    tokens of a micro-batch, the whole of it on every rank; all_reduce_s of one stream, tokens * hidden
              elements, over the tp ranks
    Assumes:  matrices of the layer only (attention scores, norms and gates are left out), a rate that does not fall
              when matrices get thin, no exchange hidden behind a product. Reduce-scatter and all-gather in the place
              of each all-reduce take as long on a ring
    Raises:   ValueError for what is not positive, or a tp below 1
    Source:   Shoeybi et al., 2019, section 3 (two all-reduces forward, two backward)
    Counted:  drills.parallel_layout.tensor_exchange.SHARE
    """
    checks.positive(layer_parameters=layer_parameters, flops_per_s=flops_per_s)
    checks.count(tokens=tokens, tp=tp)
    checks.non_negative(all_reduce_s=all_reduce_s)
    compute_s = _PASSES * 2 * layer_parameters * tokens / (tp * flops_per_s)
    return LayerTime(compute_s=compute_s, exchange_s=ALL_REDUCES_PER_LAYER * all_reduce_s if tp > 1 else 0.0)


def flops_per_sent_byte(*, layer_parameters: float, hidden: int, tp: int, bytes_per_element: float) -> float:
    """What a rank calculates for every byte that it sends: the arithmetic intensity of a cut layer towards its link.

    Formula:  (6 * P * tokens / tp) / (4 * 2 * (tp - 1)/tp * tokens * hidden * bytes) = 3 * P / (4 * (tp - 1) * hidden
              * bytes); tokens and tp cancel
    Assumes:  as layer_time, all-reduces that send no more than they must. Against flops_per_s over the one-way rate
              of a link, the ridge point of that link, it says which of the two a layer waits for
    Raises:   ValueError for tp = 1, which sends nothing
    Source:   Shoeybi et al., 2019, section 3; the ridge point is the roofline's (Williams, Waterman, Patterson, 2009)
    Counted:  simulate.training_loop.traffic.tensor_parallel_block

    >>> gpt = {"layer_parameters": 12 * 12288**2, "hidden": 12288, "bytes_per_element": 2}
    >>> flops_per_sent_byte(**gpt, tp=2), flops_per_sent_byte(**gpt, tp=9)
    (55296.0, 6912.0)
    """
    checks.positive(layer_parameters=layer_parameters, bytes_per_element=bytes_per_element)
    checks.count(hidden=hidden)
    checks.count(at_least=2, tp=tp)
    return _PASSES * layer_parameters / (ALL_REDUCES_PER_LAYER * (tp - 1) * hidden * bytes_per_element)


def attention_parameters_per_rank(*, hidden: int, num_heads: int, num_kv_heads: int, head_dim: int, tp: int) -> int:
    """Weights of one layer's attention that one rank holds: its query heads, and its KV heads or a copy of one.

    Formula:  hidden * head_dim * (2 * num_heads / tp + 2 * max(1, num_kv_heads / tp)); the first 2 is queries and
              output, the second keys and values
    Assumes:  with more ranks than KV heads, each head is repeated on tp / num_kv_heads ranks, as Megatron Core and
              vLLM do; no biases
    Raises:   ValueError where tp does not divide the heads, or neither divides the KV heads nor is a multiple of them
    Source:   Shazeer, 2019, arXiv:1911.02150 (shared KV heads); vLLM, QKVParallelLinear (num_kv_head_replicas)
    Counted:  tests.training_loop.test_tensor_parallel.test_heads_are_dealt_out_until_there_is_one_kv_head_each

    >>> [
    ...     attention_parameters_per_rank(hidden=8192, num_heads=64, num_kv_heads=8, head_dim=128, tp=tp) * tp / 2**20
    ...     for tp in (1, 8, 16)
    ... ]
    [144.0, 144.0, 160.0]
    """
    checks.count(hidden=hidden, num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, tp=tp)
    checks.divides(part="tp", part_value=tp, whole="num_heads", whole_value=num_heads)
    if num_kv_heads % tp and tp % num_kv_heads:
        raise ValueError(f"tp={tp} must divide num_kv_heads={num_kv_heads} or be a multiple of it")
    return hidden * head_dim * (2 * num_heads // tp + 2 * max(1, num_kv_heads // tp))


def largest_tensor_group(*, num_heads: int, num_kv_heads: int, domain_gpus: int) -> int:
    """The most tensor-parallel ranks inside one domain of fast links that each hold as many whole query heads and as
    many whole KV heads as the others.

    Formula:  the largest divisor of gcd(num_heads, num_kv_heads) that is at most domain_gpus
    Assumes:  no KV head is held twice (attention_parameters_per_rank lets it be); widths and vocabulary can be cut in
              any way
    Raises:   ValueError for anything but whole numbers of at least 1
    Source:   Shoeybi et al., 2019, arXiv:1909.08053, section 3 (heads are split); Ainslie et al., 2023,
              arXiv:2305.13245 (KV heads)
    Counted:  tests.training_loop.test_tensor_parallel.test_no_larger_group_can_be_dealt_equal_heads

    >>> [largest_tensor_group(num_heads=42, num_kv_heads=14, domain_gpus=gpus) for gpus in (4, 8, 72)]
    [2, 7, 14]
    """
    checks.count(num_heads=num_heads, num_kv_heads=num_kv_heads, domain_gpus=domain_gpus)
    common = math.gcd(num_heads, num_kv_heads)
    return max(tp for tp in range(1, min(common, domain_gpus) + 1) if common % tp == 0)


def row_parallel_output(*, all_reduced: float, bias: float, tp: int) -> float:
    """One output of the uncut layer, from that of a row-parallel layer whose ranks have each added the bias to their
    partial result.

    Formula:  all_reduced - (tp - 1) * bias
    Assumes:  the all-reduce adds the partial results up; each rank adds the whole bias
    Raises:   ValueError for numbers that are not finite, or a tp below 1
    Source:   Shoeybi et al., Megatron-LM, 2019, arXiv:1909.08053, section 3
    Counted:  tests.training_loop.test_tensor_parallel.test_a_bias_that_every_rank_has_added_is_taken_off

    >>> row_parallel_output(all_reduced=5.5, bias=0.75, tp=3)
    4.0
    """
    checks.number(all_reduced=all_reduced, bias=bias)
    checks.count(tp=tp)
    return all_reduced - (tp - 1) * bias
