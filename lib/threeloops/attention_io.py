"""Attention's input and output: what grows with the square of the sequence, what grows with its length, and what a larger fast memory buys.

Three quantities are often confused. The FLOPs are quadratic, fused or not. The traffic is quadratic, fused or not, but fusing divides it by about the size
of the fast memory over the square of the head dimension. Only the extra memory becomes linear.

>>> score_matrix_bytes(batch=1, num_heads=1, query_tokens=8192, context_tokens=8192, bytes_per_element=2)
134217728
>>> row_statistics_bytes(batch=1, num_heads=1, query_tokens=8192)
32768

Source: Dao, Fu, Ermon, Rudra, Ré, FlashAttention, 2022, arXiv:2205.14135, section 3
"""

from threeloops import checks
from threeloops.activation_kernels import FP32_BYTES


def score_matrix_bytes(*, batch: int, num_heads: int, query_tokens: int, context_tokens: int, bytes_per_element: float) -> float:
    """Bytes of all attention scores, if they are written down.

    Formula:  batch * num_heads * query_tokens * context_tokens * bytes_per_element
    Assumes:  every query head has scores of its own, however few KV heads there are; masked scores are stored too
    """
    checks.count(batch=batch, num_heads=num_heads, query_tokens=query_tokens, context_tokens=context_tokens)
    checks.positive(bytes_per_element=bytes_per_element)
    return batch * num_heads * query_tokens * context_tokens * bytes_per_element


def row_statistics_bytes(*, batch: int, num_heads: int, query_tokens: int) -> int:
    """Bytes that fused attention keeps beside its output, for the backward pass: one number per row of scores.

    Formula:  batch * num_heads * query_tokens * 4
    Assumes:  the logarithm of the row's sum of exponentials, in fp32 (FlashAttention-2; the first version kept maximum and sum apart)
    Source:   Dao, FlashAttention-2, 2023, arXiv:2307.08691, section 3.1
    """
    checks.count(batch=batch, num_heads=num_heads, query_tokens=query_tokens)
    return batch * num_heads * query_tokens * FP32_BYTES


def largest_query_block(*, fast_bytes: int, head_dim: int, key_block: int, bytes_per_element: int) -> int:
    """Queries that fit on the fast side of one head, beside a block of keys and values.

    Formula:  floor((fast_bytes / bytes_per_element - 2 * key_block * head_dim) / (2 * head_dim + key_block + 2))
    Shapes:   queries and output [rows, head_dim]; keys and values [key_block, head_dim]; scores [rows, key_block]; maximum and sum [rows]
    Assumes:  everything in one element size, nothing fetched ahead; a real kernel keeps its output and scores in registers, in fp32
    Raises:   ValueError if not one query fits, with the size that would do
    """
    checks.count(fast_bytes=fast_bytes, head_dim=head_dim, key_block=key_block, bytes_per_element=bytes_per_element)
    per_row, fixed = 2 * head_dim + key_block + 2, 2 * key_block * head_dim
    rows = (fast_bytes // bytes_per_element - fixed) // per_row
    if rows < 1:
        needed = (fixed + per_row) * bytes_per_element
        raise ValueError(f"fast_bytes={fast_bytes} must hold {key_block} keys and values and one query of head_dim={head_dim}, {needed} bytes")
    return rows


def leading_traffic_bytes(*, tokens: int, head_dim: int, fast_bytes: int, bytes_per_element: int) -> float:
    """The law behind fused attention's traffic, per head: N^2 d^2 / M, in bytes and without the constant in front.

    Formula:  tokens^2 * head_dim^2 / (fast_bytes / bytes_per_element) * bytes_per_element
    Assumes:  a sequence much longer than what fits; the loop over queries outside, as here, has a constant near 4 (see the tests)
    Source:   Dao et al., FlashAttention, 2022, arXiv:2205.14135, theorem 2 (and proposition 3: no exact attention does asymptotically better for all M)
    """
    checks.count(tokens=tokens, head_dim=head_dim, fast_bytes=fast_bytes, bytes_per_element=bytes_per_element)
    return tokens**2 * head_dim**2 * bytes_per_element**2 / fast_bytes
