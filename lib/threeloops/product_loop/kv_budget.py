"""KV budget: how much of a GPU's memory is left for the KV cache, and what a server may say of it before the first
request has come.

A server such as vLLM takes a share of the memory (gpu_memory_utilization), loads the weights, runs one step of the
largest size as a profile, and gives all that is then left of its share to the cache, in blocks.
`kv_capacity.token_slots` is the same question without blocks.

>>> from threeloops.units import GiB
>>> free = budget_bytes(
...     memory_bytes=23.58 * GiB,
...     memory_utilisation=0.9,
...     weights_bytes=14.99 * GiB,
...     activation_peak_bytes=2.07 * GiB,
...     outside_bytes=0.35 * GiB,
...     graph_bytes=0,
... )
>>> round(free / GiB, 2)  # Llama 3.1 8B on an RTX 3090; vLLM's log says kv_cache_size=3.81GiB
3.81

Source: vLLM, v1/worker/gpu_worker.py, Worker.determine_available_memory; v1/core/kv_cache_utils.py,
        get_max_concurrency_for_kv_cache_config
"""

import collections
import math
from collections.abc import Collection

from threeloops import checks
from threeloops.models.architecture import Attention, Model
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.product_loop.kv_allocators import VllmAdmission
from threeloops.product_loop.kv_cache import bytes_per_token, layer_bytes_per_token, states_bytes
from threeloops.product_loop.kv_quantisation import UNQUANTISED, Quantisation


def budget_bytes(
    *,
    memory_bytes: float,
    memory_utilisation: float,
    weights_bytes: float,
    activation_peak_bytes: float,
    outside_bytes: float,
    graph_bytes: float,
) -> float:
    """Bytes of one GPU that are left for the KV cache.

    Formula:  memory_bytes * memory_utilisation - weights_bytes - activation_peak_bytes - outside_bytes - graph_bytes
    Units:    memory_bytes as the driver reports them, not the product's name; weights_bytes and all others of this one
              rank; activation_peak_bytes: the peak of the profiling run above the weights; outside_bytes: what the
              framework's allocator does not see (CUDA context, NCCL's buffers); graph_bytes: captured CUDA graphs,
              where the server takes them from the share (vLLM from 0.21 on; 0 before: they then came out of the rest
              of the memory)
    Assumes:  a share of the whole memory, as vLLM takes it, whatever other processes hold: it refuses to start unless
              so much is free. For a server that takes its share of what they leave, count them in outside_bytes
    Raises:   ValueError if nothing is left, with the share that would just do; or for a utilisation in percent
    Source:   vLLM, v1/worker/gpu_worker.py, Worker.determine_available_memory
    Measured: tests.product_loop.test_kv_budget.test_what_is_left_in_a_log
    """
    checks.positive(memory_bytes=memory_bytes, memory_utilisation=memory_utilisation)
    checks.fraction(memory_utilisation=memory_utilisation)
    checks.non_negative(
        weights_bytes=weights_bytes,
        activation_peak_bytes=activation_peak_bytes,
        outside_bytes=outside_bytes,
        graph_bytes=graph_bytes,
    )
    resident = weights_bytes + activation_peak_bytes + outside_bytes + graph_bytes
    left = memory_bytes * memory_utilisation - resident
    if left <= 0:
        needed = f"more than {resident / memory_bytes:.3f}" if resident < memory_bytes else "a larger memory"
        raise ValueError(
            f"memory_utilisation={memory_utilisation} leaves nothing for the KV cache beside {resident:,.0f} resident"
            f" bytes; try {needed}"
        )
    return left


def num_blocks(
    model: Model,
    *,
    free_bytes: float,
    block_tokens: int,
    bytes_per_element: float,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
) -> int:
    """Blocks that the budget holds on one rank, each of `block_tokens` tokens in all layers: in a model without
    windows, vLLM's "# GPU blocks".

    Formula:  floor(free_bytes / (block_tokens * bytes_per_token))
    Assumes:  as token_slots: a block holds its tokens in every layer. Times block_tokens it is vLLM's "GPU KV cache
              size: … tokens". Where some layers have windows, vLLM deals its blocks to groups of layers, and counts
              more and smaller ones
    Raises:   ValueError unless free_bytes >= 0 and block_tokens >= 1
    Source:   vLLM, v1/core/kv_cache_utils.py, get_num_blocks
    Counted:  simulate.product_loop.block_allocator.BlockAllocator

    >>> from threeloops.models.catalogue import model
    >>> num_blocks(model("llama-3-8b"), free_bytes=3.8136 * 2**30, block_tokens=16, bytes_per_element=2)
    1952
    """
    checks.non_negative(free_bytes=free_bytes)
    checks.count(block_tokens=block_tokens)
    return math.floor(
        free_bytes
        / (block_tokens * bytes_per_token(model, bytes_per_element=bytes_per_element, quantisation=quantisation, tp=tp))
    )


def max_concurrency(
    model: Model,
    *,
    tokens: int,
    free_bytes: float,
    bytes_per_element: float,
    admission: VllmAdmission,
    quantisation: Quantisation = UNQUANTISED,
    tp: int = 1,
) -> float:
    """Requests of `tokens` tokens that the budget holds at once, with the fraction: vLLM's "Maximum concurrency for …
    tokens per request: …x".

    Formula:  bytes of all whole blocks / bytes that vLLM sets against the pool for one request (VllmAdmission), with
              every kind of layer (of one window, or of none) padded to whole groups (group_layers)
    Units:    tokens is the longest that a request may get (max_model_len): shorter requests fit more often
    Assumes:  nobody shares a beginning; below 1 the server refuses to start; layers that cache anything cache equal
              bytes for a token (where they do not, vLLM also makes their blocks equal, which is not counted)
    Raises:   ValueError unless tokens >= 1 and free_bytes >= 0
    Source:   vLLM, v1/core/kv_cache_utils.py, get_max_concurrency_for_kv_cache_config and
              _get_kv_cache_groups_uniform_page_size
    Counted:  simulate.product_loop.block_allocator.BlockAllocator

    >>> from threeloops.models.catalogue import model
    >>> admission = VllmAdmission(max_batched_tokens=20_000)
    >>> round(
    ...     max_concurrency(
    ...         model("llama-3-8b"), tokens=20_000, free_bytes=3.8136 * 2**30, bytes_per_element=2, admission=admission
    ...     ),
    ...     2,
    ... )
    1.56
    """
    checks.count(tokens=tokens)
    checks.non_negative(free_bytes=free_bytes)
    layers, sizes = collections.Counter[int | None](), collections.defaultdict[int | None, float](float)
    for layer, count in model.groups:
        if isinstance(layer.attention, CompressedAttention):
            raise ValueError(
                f"{model.name} keeps compressed entries, for which vLLM's groups of blocks are not counted"
            )
        size = layer_bytes_per_token(
            layer.attention, bytes_per_element=bytes_per_element, quantisation=quantisation, tp=tp
        )
        if size:
            window = layer.attention.window if isinstance(layer.attention, Attention) else None
            layers[window] += count
            sizes[window] += count * size
    group = group_layers(layers.values())
    block = admission.block_tokens * sum(sizes.values()) / sum(layers.values()) * group
    request = states_bytes(model, tp=tp) + sum(
        math.ceil(count / group) * group / count * sizes[window] * admission.slots(tokens=tokens, window=window)
        for window, count in layers.items()
    )
    return free_bytes // block * block / request


def group_layers(layers: Collection[int]) -> int:
    """Layers of one group: vLLM deals each kind of layer to groups of this size, fills the last one up, and a block
    of its pool holds its tokens in one group.

    Formula:  of the smallest kind, or of the largest where that has less than 1.5 times as many
    Units:    layers of each kind: all that read the whole text, all with one window
    Raises:   ValueError without a kind, or for one without a layer
    Source:   vLLM, v1/core/kv_cache_utils.py, _get_kv_cache_groups_uniform_page_size
    Counted:  tests.product_loop.test_kv_budget.dealt

    >>> group_layers([10, 52]), group_layers([12, 13])  # Gemma 3 27B; gpt-oss-20b and its draft layer
    (10, 13)
    """
    if not layers:
        raise ValueError("layers=[] has no kind of layer; give the number of each")
    for count in layers:
        checks.count(layers=count)
    fewest, most = min(layers), max(layers)
    return most if most < 1.5 * fewest else fewest
