"""2-simplicial attention: a query looks at pairs of tokens, one from each of two sliding windows.

The score of query i with the pair (j, k) is the sum over the head dimension of q_i * k_j * k'_k; the softmax runs
over all pairs, and a pair's value is the elementwise product v_j * v'_k. With its first key folded into the query,
each j is an ordinary block of attention over the second window.

>>> work = simplicial_attention(
...     batch=1,
...     num_heads=64,
...     num_kv_heads=1,
...     head_dim=128,
...     tokens=16384,
...     first_window=32,
...     second_window=512,
...     bytes_per_element=2,
... )
>>> round(work.flops / 1e12, 1)
8.7

Source: Roy et al., Fast and Simplex: 2-Simplicial Attention in Triton, 2025, arXiv:2507.02754, equations 5 to 7
"""

from threeloops import checks
from threeloops.operations.roofline import Work


def attended_triples(*, tokens: int, first_window: int, second_window: int) -> int:
    """(query, key, second key) triples of one head: both keys are the query's own token or lie before it, inside
    their windows.

    Formula:  sum over positions p = 1 .. tokens of min(p, first_window) * min(p, second_window)
    Counted:  tests.inner_loop.test_simplicial_attention.enumerated

    >>> attended_triples(tokens=4, first_window=2, second_window=3)  # 1*1 + 2*2 + 2*3 + 2*3
    17
    """
    checks.count(tokens=tokens, first_window=first_window, second_window=second_window)
    narrow, wide = sorted((first_window, second_window))
    # Up to `narrow` both windows grow, up to `wide` one of them, then none.
    a, b = min(tokens, narrow), min(tokens, wide)
    return a * (a + 1) * (2 * a + 1) // 6 + narrow * (b * (b + 1) - a * (a + 1)) // 2 + (tokens - b) * narrow * wide


def simplicial_attention(
    *,
    batch: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    tokens: int,
    first_window: int,
    second_window: int,
    bytes_per_element: float,
) -> Work:
    """FLOPs on the tensor cores, and bytes of a fused kernel that moves every tensor once.

    Formula:  4 * head_dim * attended_triples * num_heads * batch;  (2 * num_heads + 4 * num_kv_heads) * tokens *
              head_dim * bytes_per_element * batch
    Shapes:   queries and output [batch, num_heads, tokens, head_dim]; two keys and two values [batch, num_kv_heads,
              tokens, head_dim]
    Assumes:  the two elementwise products per query and first key (on the ordinary units) are not counted, as the
              authors' benchmark does not
    Raises:   ValueError if num_kv_heads does not divide num_heads
    Counted:  tests.inner_loop.test_simplicial_attention.test_bytes_are_those_of_six_tensors
    """
    checks.count(batch=batch, num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim)
    checks.divides(part="num_kv_heads", part_value=num_kv_heads, whole="num_heads", whole_value=num_heads)
    checks.positive(bytes_per_element=bytes_per_element)
    triples = attended_triples(tokens=tokens, first_window=first_window, second_window=second_window)
    return Work(
        flops=batch * num_heads * 4 * head_dim * triples,
        moved_bytes=batch * (2 * num_heads + 4 * num_kv_heads) * tokens * head_dim * bytes_per_element,
    )
