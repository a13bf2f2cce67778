"""Context parallelism: one sequence cut into pieces over n ranks; what attention then has to send, and who has how
much of it to compute.

Everything but attention works on one token at a time and needs nothing. Attention needs, for every query, all keys
and values before it. Ring attention passes keys and values round; Ulysses exchanges pieces of the sequence for heads,
so that each rank attends to all of it with some of its heads.

>>> ring = ring_traffic(tokens_per_rank=2048, kv_dim=1024, cp=4, bytes_per_element=2, bytes_per_gradient=2)
>>> ring.forward_bytes, ring.total_bytes
(25165824, 83886080)

Source: Liu, Zaharia, Abbeel, Ring Attention, 2023, arXiv:2310.01889, section 3; Jacobs et al., DeepSpeed Ulysses,
        2023, arXiv:2309.14509, section 3;
Brandon et al., Striped Attention, 2023, arXiv:2311.09431 (causal balance)
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTraffic:
    """Bytes that one rank sends in one attention layer for one micro-batch."""

    forward_bytes: float
    backward_bytes: float

    @property
    def total_bytes(self) -> float:
        return self.forward_bytes + self.backward_bytes


def ring_traffic(
    *, tokens_per_rank: int, kv_dim: int, cp: int, bytes_per_element: float, bytes_per_gradient: float
) -> ContextTraffic:
    """Bytes of keys, values and their gradients that one rank passes on.

    Formula:  one piece = 2 * tokens_per_rank * kv_dim (keys and values); forward (cp - 1) pieces; backward (cp - 1)
              pieces once more, and cp pieces of gradients, which collect on the way round and have to come home
    Units:    tokens_per_rank: batch times sequence / cp; kv_dim: num_kv_heads * head_dim
    Assumes:  every piece visits every rank, also where a causal mask hides all of it; nothing of the forward pass's
              round is kept
    Source:   Liu et al., 2023, section 3 (blocks round the ring); gradients as in zhuzilin/ring-flash-attention,
              backward pass
    Counted:  simulate.training_loop.context_ring.ring_attention
    Measured: measure.training_loop.context_parallel.spread
    """
    checks.count(tokens_per_rank=tokens_per_rank, kv_dim=kv_dim, cp=cp)
    checks.positive(bytes_per_element=bytes_per_element, bytes_per_gradient=bytes_per_gradient)
    piece = 2 * tokens_per_rank * kv_dim
    home = cp if cp > 1 else 0
    rounds_bytes = (cp - 1) * piece * bytes_per_element
    return ContextTraffic(forward_bytes=rounds_bytes, backward_bytes=rounds_bytes + home * piece * bytes_per_gradient)


def ulysses_traffic(
    *, tokens_per_rank: int, query_dim: int, kv_dim: int, cp: int, bytes_per_element: float
) -> ContextTraffic:
    """Bytes of queries, keys, values and outputs that one rank sends in all-to-alls.

    Formula:  forward tokens_per_rank * (2 * query_dim + 2 * kv_dim) * bytes_per_element * (cp - 1)/cp: queries, keys
              and values to the ranks that have their heads, outputs back; backward the same, each gradient the other
              way
    Units:    tokens_per_rank: batch times sequence / cp
    Assumes:  cp divides the KV heads, so that no key is sent twice
    Source:   Jacobs et al., 2023, section 3.2 (four all-to-alls per layer, forward)
    Counted:  simulate.training_loop.context_ring.ulysses_attention
    Measured: measure.training_loop.context_parallel.spread

    >>> ulysses_traffic(tokens_per_rank=2048, query_dim=4096, kv_dim=1024, cp=4, bytes_per_element=2).total_bytes
    62914560.0
    """
    checks.count(tokens_per_rank=tokens_per_rank, query_dim=query_dim, kv_dim=kv_dim, cp=cp)
    checks.positive(bytes_per_element=bytes_per_element)
    forward_bytes = tokens_per_rank * (2 * query_dim + 2 * kv_dim) * bytes_per_element * (cp - 1) / cp
    return ContextTraffic(forward_bytes=forward_bytes, backward_bytes=forward_bytes)


def hiding_tokens(
    *, flops_per_s: float, bytes_per_s_one_way: float, query_dim: int, kv_dim: int, bytes_per_element: float
) -> float:
    """Tokens per rank from which a ring step computes at least as long as it sends, forward: below, the ring is bound
    by its links.

    Formula:  computing 4 * c^2 * query_dim / flops_per_s = sending 2 * c * kv_dim * bytes_per_element / bytes_per_s,
              solved for c: kv_dim / query_dim * bytes_per_element / 2 * flops_per_s / bytes_per_s
    Units:    flops_per_s that attention really reaches; tokens of one sequence's piece
    Assumes:  no mask (a causal mask halves the computing and so doubles the tokens); batch 1 (more sequences scale
              both sides alike)
    Source:   Liu et al., 2023, section 3.1 (c >= F/B, for as many KV heads as query heads and 2-byte elements)
    Counted:  drills.parallel_layout.context_rings.HIDES

    >>> round(
    ...     hiding_tokens(
    ...         flops_per_s=500e12, bytes_per_s_one_way=50e9, query_dim=8192, kv_dim=1024, bytes_per_element=2
    ...     )
    ... )
    1250
    """
    checks.positive(
        flops_per_s=flops_per_s, bytes_per_s_one_way=bytes_per_s_one_way, bytes_per_element=bytes_per_element
    )
    checks.count(query_dim=query_dim, kv_dim=kv_dim)
    return kv_dim / query_dim * bytes_per_element / 2 * flops_per_s / bytes_per_s_one_way


def contiguous_slowdown(*, cp: int) -> float:
    """By what a causal ring over contiguous pieces takes longer than an even one, which all ranks leave at the same
    time.

    Formula:  2 - 1/cp: the ring moves at the pace of its slowest, a whole block in each step but the first (half of
              one), and n - 1/2 blocks stand against an even n/2
    Assumes:  long pieces (the diagonal's own tokens are not counted twice); computing only; a step begins when all
              have done the one before
    Source:   Brandon et al., 2023 (the imbalance of a causal ring); the sum of its steps
    Counted:  simulate.training_loop.context_ring.ring_attention

    >>> contiguous_slowdown(cp=4)
    1.75
    """
    checks.count(cp=cp)
    return 2 - 1 / cp
