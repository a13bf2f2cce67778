"""Shared context: a cache that every GPU of a tensor group would hold is split by tokens, and the group exchanges
queries and partial results (decode context parallelism, `-dcp` in vLLM).

>>> one = context_exchange_bytes(heads_per_rank=16, query_width=576, value_width=512, dcp=8)
>>> f"{one / 1e3:.0f} kB a token and layer from each GPU; the caches of 8 GPUs shrink from 8 copies to one"
'244 kB a token and layer from each GPU; the caches of 8 GPUs shrink from 8 copies to one'

Source: vLLM, docs/serving/context_parallel_deployment.md, 2026 (which names arXiv:2507.07120)
"""

from threeloops import checks


def context_exchange_bytes(
    *,
    heads_per_rank: int,
    query_width: int,
    value_width: int,
    dcp: int,
    bytes_per_element: float = 2,
    lse_bytes: int = 4,
) -> float:
    """Bytes that one GPU sends for a new token in one layer: its queries to the others of its group, and to each the
    partial results of that one's heads.

    Formula:  (dcp - 1) * heads_per_rank * ((query_width + value_width) * bytes_per_element + lse_bytes)
    Units:    widths of one head: with absorbed latents, the latent with its rotated part, and the latent
    Assumes:  every result goes with the logarithm of its sum of exponentials, by which results are merged
    Counted:  simulate.product_loop.experts.split_latents.attend

    >>> context_exchange_bytes(heads_per_rank=16, query_width=576, value_width=512, dcp=1)
    0
    """
    checks.count(heads_per_rank=heads_per_rank, query_width=query_width, value_width=value_width, dcp=dcp)
    checks.positive(bytes_per_element=bytes_per_element)
    checks.non_negative(lse_bytes=lse_bytes)
    return (dcp - 1) * heads_per_rank * ((query_width + value_width) * bytes_per_element + lse_bytes)
