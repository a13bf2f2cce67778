"""What one carries home of a cluster: from how many tokens, over how many ranks and how wide an exchange hides behind
the computing beside it.

Each limit holds the FLOPs of a GPU against the bytes that it sends meanwhile, and whatever both depend on cancels.

>>> h100 = {"flops_per_s": 989.4e12, "intra_bytes_per_s_one_way": 450e9, "inter_bytes_per_s_one_way_per_rank": 50e9}
>>> for nodes in (1, 2, 8, 1024):
...     round(data_parallel_tokens(**h100, nodes=nodes, ranks_per_node=8, bytes_per_gradient=2))
1924
1924
2164
2471

Source: Austin et al., How to Scale Your Model, 2025, gpus.md, "Rooflines for LLM Scaling on GPUs", and training.md
"""

import math

from threeloops import checks
from threeloops.training_loop.parallelism.tensor_parallel import flops_per_sent_byte


def data_parallel_tokens(
    *,
    flops_per_s: float,
    intra_bytes_per_s_one_way: float,
    inter_bytes_per_s_one_way_per_rank: float,
    nodes: int,
    ranks_per_node: int,
    bytes_per_gradient: float,
    num_experts: int = 1,
    top_k: int = 1,
) -> float:
    """Tokens that each GPU needs per step so that the backward pass hides the exchange of gradients.

    Formula:  E/k * bytes / 2 * flops_per_s * max((g - 1) / (g * rate inside), (N - 1) / (N * g * rate between)), from
              4 * k/E * P * tokens / flops_per_s = 2 (g - 1)/g * bytes * P / rate inside, and the same between nodes
              for a g-th of P
    Units:    g ranks in each of N nodes; between nodes each rank has its own rate
    Assumes:  both levels work at the same time, beside the backward pass alone; rings, no adding in switches. With
              experts: every rank keeps all E of a layer, a token visits k, and what is not expert weighs nothing.
              Fully sharded ranks need as many, in each pass that gathers anew
    Counted:  drills.parallel_layout.cluster_limits.DATA
    """
    checks.positive(
        flops_per_s=flops_per_s,
        intra_bytes_per_s_one_way=intra_bytes_per_s_one_way,
        inter_bytes_per_s_one_way_per_rank=inter_bytes_per_s_one_way_per_rank,
        bytes_per_gradient=bytes_per_gradient,
    )
    checks.count(nodes=nodes, ranks_per_node=ranks_per_node, num_experts=num_experts, top_k=top_k)
    _no_more_than_there_are(top_k, num_experts)
    inside = (ranks_per_node - 1) / (ranks_per_node * intra_bytes_per_s_one_way)
    between = (nodes - 1) / (nodes * ranks_per_node * inter_bytes_per_s_one_way_per_rank)
    return num_experts / top_k * bytes_per_gradient / 2 * flops_per_s * max(inside, between)


def most_tensor_ranks(
    *,
    layer_parameters: float,
    hidden: int,
    bytes_per_element: float,
    flops_per_s: float,
    bytes_per_s_one_way: float,
) -> int:
    """The highest tensor-parallel degree at which a layer computes at least as long as it sends.

    Formula:  1 + floor(3 * P / (4 * hidden * bytes) * rate / flops_per_s), from 6 * P * tokens / n FLOPs and 4
              all-reduces of tokens * hidden elements, 2 (n - 1)/n of them each; the tokens cancel
    Assumes:  as tensor_parallel.layer_time. Where nothing hides the exchange, this degree doubles the time
    Counted:  drills.parallel_layout.cluster_limits.TENSOR

    >>> llama_70b = {"layer_parameters": 855_638_016, "hidden": 8192, "bytes_per_element": 2, "flops_per_s": 989.4e12}
    >>> [most_tensor_ranks(**llama_70b, bytes_per_s_one_way=rate) for rate in (450e9, 50e9)]
    [18, 2]
    """
    checks.positive(flops_per_s=flops_per_s, bytes_per_s_one_way=bytes_per_s_one_way)
    of_two = flops_per_sent_byte(
        layer_parameters=layer_parameters, hidden=hidden, tp=2, bytes_per_element=bytes_per_element
    )
    return 1 + math.floor(of_two * bytes_per_s_one_way / flops_per_s)


def best_tensor_ranks(
    *,
    layer_parameters: float,
    hidden: int,
    tokens_per_gpu: float,
    sharded_bytes_per_s: float,
    tensor_bytes_per_s: float,
) -> float:
    """The tensor-parallel degree at which fully sharded and tensor-parallel bytes together take least time.

    Formula:  sqrt(3 * P * tensor rate / (8 * tokens * hidden * sharded rate)); a layer sends 3 * P / n values for its
              shards and 8 * tokens * hidden * (n - 1) between its parts, and a sum a/n + b*n is least at sqrt(a/b)
    Units:    tokens per GPU and pass that gathers anew: a tensor group of n has n times as many; both rates per GPU,
              one way. Between a divisor below and one above, take the two sums
    Assumes:  weights gathered twice and gradients scattered once, in the format of the activations; one kind of link
              for each exchange, also where the degree changes; neither hidden
    Counted:  drills.parallel_layout.cluster_limits.SPLIT

    >>> llama_70b = {"layer_parameters": 855_638_016, "hidden": 8192, "sharded_bytes_per_s": 900e9}
    >>> [
    ...     round(best_tensor_ranks(**llama_70b, tokens_per_gpu=tokens, tensor_bytes_per_s=900e9), 1)
    ...     for tokens in (512, 2048, 8192)
    ... ]
    [8.7, 4.4, 2.2]
    """
    checks.positive(
        layer_parameters=layer_parameters,
        tokens_per_gpu=tokens_per_gpu,
        sharded_bytes_per_s=sharded_bytes_per_s,
        tensor_bytes_per_s=tensor_bytes_per_s,
    )
    checks.count(hidden=hidden)
    return math.sqrt(3 * layer_parameters * tensor_bytes_per_s / (8 * tokens_per_gpu * hidden * sharded_bytes_per_s))


def pipeline_break_even_tokens(*, sharded_tokens: float, pp: int, micro_batches: int) -> float:
    """Tokens per GPU and gather below which a pipeline over the same GPUs is faster than fully sharded data
    parallelism.

    Formula:  sharded_tokens * m / (m + pp - 1): with fewer than sharded_tokens a sharded pass takes sharded_tokens /
              tokens times its computing, a pipelined step 1 + (pp - 1)/m times
    Units:    sharded_tokens: those that hide the gathers (data_parallel_tokens)
    Assumes:  as many tokens in the step either way, even stages, 1F1B or GPipe, hops that cost nothing. Sharding
              inside a stage gathers once a micro-batch, which then needs sharded_tokens by itself: so the two fight
    Source:   Huang et al., GPipe, 2019, arXiv:1811.06965, section 2.3 (the bubble); Austin et al., 2025, gpus.md (the
              gathers)
    Counted:  drills.parallel_layout.cluster_limits.PIPELINE

    >>> [
    ...     round(pipeline_break_even_tokens(sharded_tokens=2473, pp=8, micro_batches=micro_batches))
    ...     for micro_batches in (8, 64)
    ... ]
    [1319, 2229]
    """
    checks.positive(sharded_tokens=sharded_tokens)
    checks.count(pp=pp, micro_batches=micro_batches)
    return sharded_tokens * micro_batches / (micro_batches + pp - 1)


def hiding_expert_width(
    *,
    flops_per_s: float,
    bytes_per_s_one_way: float,
    ep: int,
    bytes_per_element: float,
    matrices: int,
) -> float:
    """The width of one expert from which on its matmuls take as long as its tokens' way there and back.

    Formula:  bytes / matrices * (ep - 1)/ep * flops_per_s / rate, from 2 * matrices * hidden * width FLOPs and 2 (ep -
              1)/ep * hidden * bytes for each copy of a token; hidden, tokens and k cancel
    Units:    bytes_per_element: the mean of the way there and the way back; matrices: 3 in a gated expert
    Assumes:  an even router over ep ranks, one copy per expert (not one per node), forward; the backward pass does
              twice the FLOPs for the same bytes, so half the width will do there
    Counted:  drills.parallel_layout.cluster_limits.WIDTH

    >>> for rate in (50e9, 450e9):
    ...     round(
    ...         hiding_expert_width(
    ...             flops_per_s=989.4e12, bytes_per_s_one_way=rate, ep=64, bytes_per_element=2, matrices=3
    ...         )
    ...     )
    12986
    1443
    """
    checks.positive(
        flops_per_s=flops_per_s, bytes_per_s_one_way=bytes_per_s_one_way, bytes_per_element=bytes_per_element
    )
    checks.count(ep=ep, matrices=matrices)
    return bytes_per_element / matrices * (ep - 1) / ep * flops_per_s / bytes_per_s_one_way


def fewest_expert_ranks(*, rows: float, tokens_per_gpu: int, num_experts: int, top_k: int) -> int:
    """The fewest expert-parallel ranks that bring an expert as many rows as its matmuls need.

    Formula:  ceil(rows * E / (tokens * k)): an expert on one of n ranks is visited by tokens * n * k / E
    Units:    rows at which a matmul leaves the slope of the memory: about the ridge point in 16 bits
    Assumes:  an even router; every rank brings as many tokens
    Source:   by definition
    Counted:  drills.parallel_layout.cluster_limits.ROWS

    >>> [fewest_expert_ranks(rows=320, tokens_per_gpu=t, num_experts=256, top_k=8) for t in (512, 4096, 16384)]
    [20, 3, 1]
    """
    checks.positive(rows=rows)
    checks.count(tokens_per_gpu=tokens_per_gpu, num_experts=num_experts, top_k=top_k)
    _no_more_than_there_are(top_k, num_experts)
    return math.ceil(rows * num_experts / (tokens_per_gpu * top_k))


def _no_more_than_there_are(top_k: int, num_experts: int) -> None:
    if top_k > num_experts:
        raise ValueError(f"top_k={top_k} must be at most num_experts={num_experts}")
