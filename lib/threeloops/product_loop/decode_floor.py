"""Decode floor: what one step of decoding costs at least, from which batch on arithmetic and not memory sets it, and
what more GPUs or experts change.

>>> step_s = tensor_parallel_step_s(
...     weights_bytes=141e9, cache_bytes=0, tp=8, memory_bytes_per_s=3.35e12, all_reduces=160, all_reduce_s=10e-6
... )
>>> f"{step_s * 1e3:.2f} ms"
'6.86 ms'
"""

import math

from threeloops import checks


def compute_bound_batch(
    *,
    weights_bytes: float,
    cache_bytes_per_request: float,
    flops_per_token: float,
    memory_bytes_per_s: float,
    peak_flops_per_s: float,
) -> float:
    """Batch from which all arithmetic of a decode step takes as long as all its reading; infinite where each request's
    cache takes longer to read than its token to compute.

    Formula:  (weights / bandwidth) / (FLOP per token / peak - cache per request / bandwidth)
    Assumes:  a dense model (each step reads all weights once), equal contexts. It compares totals: the matmuls alone
              are compute-bound from the ridge point on (cache_bytes_per_request=0), whatever attention reads after
              them
    Source:   Pope et al., 2022, arXiv:2211.05102, section 2.1
    Counted:  simulate.product_loop.decode_clock.first_compute_bound

    >>> h100 = {"memory_bytes_per_s": 3.35e12, "peak_flops_per_s": 989.4e12}
    >>> llama = {"weights_bytes": 16e9, "flops_per_token": 16e9}
    >>> [round(compute_bound_batch(**llama, **h100, cache_bytes_per_request=size)) for size in (0, 27e6)]
    [295, 589]
    >>> compute_bound_batch(**llama, **h100, cache_bytes_per_request=1e9)
    inf
    """
    checks.positive(
        weights_bytes=weights_bytes,
        flops_per_token=flops_per_token,
        memory_bytes_per_s=memory_bytes_per_s,
        peak_flops_per_s=peak_flops_per_s,
    )
    checks.non_negative(cache_bytes_per_request=cache_bytes_per_request)
    gained_s = flops_per_token / peak_flops_per_s - cache_bytes_per_request / memory_bytes_per_s
    return weights_bytes / memory_bytes_per_s / gained_s if gained_s > 0 else math.inf


def tensor_parallel_step_s(
    *,
    weights_bytes: float,
    cache_bytes: float,
    tp: int,
    memory_bytes_per_s: float,
    all_reduces: int,
    all_reduce_s: float,
) -> float:
    """Seconds of a decode step that reads from the memories of `tp` GPUs at once and adds up after each sublayer.

    Formula:  (weights + caches) / (tp * bandwidth) + all-reduces * time of one; no all-reduce on one GPU
    Units:    weights_bytes and cache_bytes of the whole model and batch; all_reduces: two per layer
    Assumes:  memory-bound, KV heads that split evenly, no overlap of an all-reduce with reading
    Source:   Pope et al., 2022, arXiv:2211.05102, section 3 (partitioning feed-forward and attention layers)
    Counted:  simulate.product_loop.decode_clock.ranks_step_s
    """
    checks.positive(weights_bytes=weights_bytes, memory_bytes_per_s=memory_bytes_per_s)
    checks.non_negative(cache_bytes=cache_bytes, all_reduce_s=all_reduce_s)
    checks.count(tp=tp)
    checks.count(at_least=0, all_reduces=all_reduces)
    reading_s = (weights_bytes + cache_bytes) / (tp * memory_bytes_per_s)
    return reading_s + (all_reduces * all_reduce_s if tp > 1 else 0)


def mixture_read_bytes(*, always_bytes: float, num_layers: int, experts_touched: float, expert_bytes: float) -> float:
    """Bytes of weights that a decode step of a mixture of experts reads.

    Formula:  what every token uses + layers * experts touched * bytes of an expert
    Units:    experts_touched: different experts per layer that the batch chose; see expert_layers.experts_touched
    Source:   Fedus et al., 2022, arXiv:2209.01667, section 2 (a token uses the experts that its router chose)
    Counted:  drills.decode_speed.steps.EXPERTS

    >>> mixture_read_bytes(always_bytes=3e9, num_layers=2, experts_touched=5.5, expert_bytes=0.1e9)
    4100000000.0
    """
    checks.non_negative(always_bytes=always_bytes, experts_touched=experts_touched)
    checks.positive(expert_bytes=expert_bytes)
    checks.count(num_layers=num_layers)
    return always_bytes + num_layers * experts_touched * expert_bytes
