"""Attention's input and output: what grows with the square of the sequence, what grows with its length, and what a
larger fast memory buys.

Three quantities are often confused. The FLOPs are quadratic, fused or not. The traffic is quadratic, fused or not,
but fusing divides it by about the size of the fast memory over the square of the head dimension. Only the extra
memory becomes linear.

Which of the two loops is outside decides what is fetched again and again: with queries outside (FlashAttention-2) the
keys and values, with keys outside (FlashAttention) the queries and their unfinished outputs, which are also written
again: half as much more for the same block.

>>> score_matrix_bytes(batch=1, num_heads=1, query_tokens=8192, context_tokens=8192, bytes_per_element=2)
134217728
>>> row_statistics_bytes(batch=1, num_heads=1, query_tokens=8192)
32768

Source: Dao, Fu, Ermon, Rudra, Ré, FlashAttention, 2022, arXiv:2205.14135, section 3
"""

import math

from threeloops import checks, dtypes


def score_matrix_bytes(
    *, batch: int, num_heads: int, query_tokens: int, context_tokens: int, bytes_per_element: float
) -> float:
    """Bytes of all attention scores, if they are written down.

    Formula:  batch * num_heads * query_tokens * context_tokens * bytes_per_element
    Assumes:  every query head has scores of its own, however few KV heads there are; masked scores are stored too
    Measured: tests.inner_loop.test_attention_io.test_score_matrix_is_what_torch_allocates
    """
    checks.count(batch=batch, num_heads=num_heads, query_tokens=query_tokens, context_tokens=context_tokens)
    checks.positive(bytes_per_element=bytes_per_element)
    return batch * num_heads * query_tokens * context_tokens * bytes_per_element


def row_statistics_bytes(*, batch: int, num_heads: int, query_tokens: int) -> int:
    """Bytes that fused attention keeps beside its output, for the backward pass: one number per row of scores.

    Formula:  batch * num_heads * query_tokens * 4
    Assumes:  the logarithm of the row's sum of exponentials, in fp32 (FlashAttention-2; the first version kept
              maximum and sum apart)
    Source:   Dao, FlashAttention-2, 2023, arXiv:2307.08691, section 3.1
    Measured: measure.training_loop.saved_tensors.saved_bytes
    """
    checks.count(batch=batch, num_heads=num_heads, query_tokens=query_tokens)
    return batch * num_heads * query_tokens * int(dtypes.bytes_per_element("fp32"))


def largest_query_block(*, fast_bytes: int, head_dim: int, key_block: int, bytes_per_element: int) -> int:
    """Queries that fit on the fast side of one head, beside a block of keys and values.

    Formula:  floor((fast_bytes / bytes_per_element - 2 * key_block * head_dim) / (2 * head_dim + key_block + 2))
    Shapes:   queries and output [rows, head_dim]; keys and values [key_block, head_dim]; scores [rows, key_block];
              maximum and sum [rows]
    Assumes:  everything in one element size, nothing fetched ahead; a real kernel keeps its output and scores in
              registers, in fp32
    Raises:   ValueError if not one query fits, with the size that would do
    Counted:  simulate.inner_loop.bounded_attention.queries_outside
    """
    checks.count(fast_bytes=fast_bytes, head_dim=head_dim, key_block=key_block, bytes_per_element=bytes_per_element)
    per_row, fixed = 2 * head_dim + key_block + 2, 2 * key_block * head_dim
    rows = (fast_bytes // bytes_per_element - fixed) // per_row
    if rows < 1:
        needed = (fixed + per_row) * bytes_per_element
        raise ValueError(
            f"fast_bytes={fast_bytes} must hold {key_block} keys and values and one query of head_dim={head_dim},"
            f" {needed} bytes"
        )
    return rows


def causal_block_flops(*, num_heads: int, head_dim: int, tokens: int, block: int) -> int:
    """FLOPs that a causal kernel executes which skips the blocks of scores that are masked, and computes all others in
    full.

    Formula:  num_heads * blocks * (blocks + 1) / 2 * 4 * block^2 * head_dim, blocks = tokens / block
    Assumes:  blocks of as many queries as keys; values as wide as keys; the two matrix products, a multiply-add as 2.
              What attention is charged for by convention is another number: kernels.attended_pairs
    Raises:   ValueError if the blocks do not divide the tokens
    Source:   Dao et al., FlashAttention, 2022, arXiv:2205.14135, section 3.3 (blocks that are masked are skipped)
    Counted:  simulate.inner_loop.tiled_attention.fused_attention

    >>> causal_block_flops(num_heads=12, head_dim=64, tokens=1024, block=256) / 1e9
    2.01326592
    """
    checks.count(num_heads=num_heads, head_dim=head_dim, tokens=tokens, block=block)
    checks.divides(part="block", part_value=block, whole="tokens", whole_value=tokens)
    blocks = tokens // block
    return num_heads * blocks * (blocks + 1) // 2 * 4 * block**2 * head_dim


def leading_traffic_bytes(*, tokens: int, head_dim: int, fast_bytes: int, bytes_per_element: int) -> float:
    """The law behind fused attention's traffic, per head: N^2 d^2 / M, in bytes and without the constant in front.

    Formula:  tokens^2 * head_dim^2 / (fast_bytes / bytes_per_element) * bytes_per_element
    Assumes:  a sequence much longer than what fits; the loop over queries outside, as here, has a constant near 4
              (see the tests)
    Source:   Dao et al., FlashAttention, 2022, arXiv:2205.14135, theorem 2 (and proposition 3: no exact attention
              does asymptotically better for all M)
    Counted:  simulate.inner_loop.bounded_attention.queries_outside
    """
    checks.count(tokens=tokens, head_dim=head_dim, fast_bytes=fast_bytes, bytes_per_element=bytes_per_element)
    return tokens**2 * head_dim**2 * bytes_per_element**2 / fast_bytes


def queries_outside_bytes(
    *, query_tokens: int, context_tokens: int, head_dim: int, query_block: int, bytes_per_element: float
) -> float:
    """Bytes that one head moves when a block of queries stays and all keys and values pass by: FlashAttention-2's
    order of the loops.

    Formula:  (2 * query_tokens * head_dim + ceil(query_tokens / query_block) * 2 * context_tokens * head_dim) *
              bytes_per_element
    Shapes:   queries and output [query_tokens, head_dim], once each; keys and values [context_tokens, head_dim], once
              per block of queries
    Assumes:  no mask, nothing found in a cache; the block of keys has no say; row_statistics_bytes for the backward
              pass come on top. As many heads as they are, and grouped ones: kernels.attention with query_block
    Raises:   ValueError unless all counts are at least 1 and bytes_per_element is positive
    Source:   Dao, FlashAttention-2, 2023, arXiv:2307.08691, algorithm 1
    Counted:  simulate.inner_loop.bounded_attention.queries_outside

    >>> queries_outside_bytes(
    ...     query_tokens=4096, context_tokens=4096, head_dim=64, query_block=128, bytes_per_element=2
    ... ) / 2**20
    33.0
    """
    checks.count(query_tokens=query_tokens, context_tokens=context_tokens, head_dim=head_dim, query_block=query_block)
    checks.positive(bytes_per_element=bytes_per_element)
    visits = math.ceil(query_tokens / query_block)
    return (2 * query_tokens * head_dim + visits * 2 * context_tokens * head_dim) * bytes_per_element


def keys_outside_bytes(
    *, query_tokens: int, context_tokens: int, head_dim: int, key_block: int, bytes_per_element: float
) -> float:
    """Bytes that one head moves when a block of keys and values stays and all queries pass by: FlashAttention's (the
    first one's) order of the loops.

    Formula:  (2 * context_tokens * head_dim + ceil(context_tokens / key_block) * query_tokens * (3 * head_dim + 4)) *
              bytes_per_element
    Shapes:   keys and values once each; at every visit of every query: itself in, its unfinished output in and out,
              its maximum and sum in and out
    Assumes:  no mask, nothing found in a cache, maximum and sum as wide as the rest; filling output, maximum and sum
              before the first visit is not counted. The block of queries has no say
    Raises:   ValueError unless all counts are at least 1 and bytes_per_element is positive
    Source:   Dao et al., FlashAttention, 2022, arXiv:2205.14135, algorithm 1 and theorem 2
    Counted:  simulate.inner_loop.bounded_attention.keys_outside

    >>> keys_outside_bytes(
    ...     query_tokens=4096, context_tokens=4096, head_dim=64, key_block=128, bytes_per_element=2
    ... ) / 2**20
    50.0
    """
    checks.count(query_tokens=query_tokens, context_tokens=context_tokens, head_dim=head_dim, key_block=key_block)
    checks.positive(bytes_per_element=bytes_per_element)
    visits = math.ceil(context_tokens / key_block)
    return (2 * context_tokens * head_dim + visits * query_tokens * (3 * head_dim + 4)) * bytes_per_element
