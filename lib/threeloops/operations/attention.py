"""Attention: FLOPs and bytes of the part between the projections, for a prompt (prefill) or one token at a time
(decode).

Only the two matrix products count as FLOPs, scores = Q K^T and output = P V; the softmax between them is a vector
kernel. Fusing the three changes the bytes and not one FLOP.

>>> step = attention(
...     batch=32,
...     num_heads=32,
...     num_kv_heads=8,
...     head_dim=128,
...     query_tokens=1,
...     context_tokens=8192,
...     causal="full",
...     fused=True,
...     bytes_per_element=2,
... )
>>> round(step.arithmetic_intensity, 2)  # four query heads share each KV head, whatever the batch
4.0
>>> step.conventions
('causal=full', 'fused=True')
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.operations.roofline import Work
from threeloops.operations.vector_kernels import softmax

CAUSAL = ("full", "half", "exact")
# What attention's backward pass multiplies again: nothing where the probabilities were stored, Q K^T where they were
# not (a fused kernel).
RECOMPUTE = ("none", "scores")


def attended_pairs(*, query_tokens: int, context_tokens: int, causal: str, window: int | None = None) -> float:
    """(query, key) pairs that attention is charged for, per head and sequence. The queries are the last tokens of the
    context.

    Formula:  full: query_tokens * min(context_tokens, window), every query charged as if it were the last
              exact: the sum of min(position, window) over the queries' positions, counted from 1
              half: as exact, with half of the diagonal: s^2 / 2 for a whole prompt of s, where exact gives s * (s +
              1) / 2
    Assumes:  a convention, not a fact about the model: torch's counter and PaLM say full, Megatron-LM and
              FlashAttention half
    Raises:   ValueError for another word, or if there are more queries than context
    Source:   Chowdhery et al., PaLM, 2022, arXiv:2204.02311, appendix B (full); Dao, FlashAttention-2, 2023,
              arXiv:2307.08691, section 4.1 (half)
    Counted:  tests.operations.test_kernels.test_attended_pairs_against_a_drawn_mask

    >>> [attended_pairs(query_tokens=4, context_tokens=4, causal=causal) for causal in ("full", "half", "exact")]
    [16, 8.0, 10]
    """
    checks.one_of(CAUSAL, causal=causal)
    visible_keys(query_tokens=query_tokens, context_tokens=context_tokens, window=window)
    width = context_tokens if window is None else min(window, context_tokens)
    if causal == "full":
        return query_tokens * width
    # Queries up to position `width` see a context that grows by one key per query; those behind it see `width` keys
    # each.
    first = context_tokens - query_tokens + 1
    growing = max(0, width - first + 1)
    exact = growing * (first + width) // 2 + (query_tokens - growing) * width
    return exact if causal == "exact" else exact - growing / 2


def attention(
    *,
    batch: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    query_tokens: int,
    context_tokens: int,
    causal: str,
    fused: bool,
    bytes_per_element: float,
    kv_bytes_per_element: float | None = None,
    value_head_dim: int | None = None,
    window: int | None = None,
    values_in_keys: bool = False,
    query_block: int | None = None,
) -> Work:
    """FLOPs and bytes of batched attention: query_tokens = context_tokens in prefill, query_tokens = 1 in decode.

    Formula:  FLOPs: 2 * attended_pairs * (head_dim + value_head_dim) * num_heads * batch
              bytes, fused: Q, K, V and the output once each; not fused: the scores four times as well (see
              unfused_attention)
    Shapes:   Q [batch, num_heads, query_tokens, head_dim]; K, V [batch, num_kv_heads, context_tokens, head_dim or
              value_head_dim]
    Units:    bytes_per_element of queries, scores and output; keys and values may have another (default: the same)
    Assumes:  a group of query heads reads its KV head once; fused keys and values are read once, or once per block of
              `query_block` queries where that is given (as if no block skipped what the mask hides); values_in_keys:
              each value is the front of its key and is not read again (absorbed latent attention)
    Raises:   ValueError if num_kv_heads does not divide num_heads, or if query_block or values_in_keys is given for
              attention that is not fused
    Source:   Dao et al., FlashAttention, 2022, arXiv:2205.14135, section 3
    Counted:  simulate.inner_loop.tiled_attention.fused_attention
    Measured: measure.inner_loop.flops.counted_flops
    """
    checks.count(batch=batch, num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim)
    checks.divides(part="num_kv_heads", part_value=num_kv_heads, whole="num_heads", whole_value=num_heads)
    value_dim = head_dim if value_head_dim is None else value_head_dim
    kv_bytes = bytes_per_element if kv_bytes_per_element is None else kv_bytes_per_element
    block = query_tokens if query_block is None else query_block
    checks.count(value_head_dim=value_dim, query_block=block)
    checks.positive(bytes_per_element=bytes_per_element, kv_bytes_per_element=kv_bytes)
    if not fused and (values_in_keys or query_block is not None):
        raise ValueError("fused=False has no query_block and no values_in_keys; leave both out, or use fused=True")
    pairs = attended_pairs(query_tokens=query_tokens, context_tokens=context_tokens, causal=causal, window=window)
    keys = visible_keys(query_tokens=query_tokens, context_tokens=context_tokens, window=window)

    queries_and_outputs = num_heads * query_tokens * (head_dim + value_dim) * bytes_per_element
    keys_and_values = (
        num_kv_heads * keys * (head_dim + (0 if values_in_keys else value_dim)) * kv_bytes * -(-query_tokens // block)
    )
    scores = 0 if fused else 4 * num_heads * query_tokens * keys * bytes_per_element
    return Work(
        flops=batch * num_heads * 2 * pairs * (head_dim + value_dim),
        moved_bytes=batch * (queries_and_outputs + keys_and_values + scores),
        conventions=(f"causal={causal}", f"fused={fused}"),
    )


def attention_backward_flops(
    *,
    batch: int,
    num_heads: int,
    head_dim: int,
    query_tokens: int,
    context_tokens: int,
    causal: str,
    recompute: str,
    value_head_dim: int | None = None,
    window: int | None = None,
) -> float:
    """FLOPs of attention's backward pass, between the projections: 2 times the forward pass, 2.5 times with the
    scores computed again.

    Formula:  2 * attended_pairs * (2 * head_dim + 2 * value_head_dim, and head_dim more with recompute="scores") *
              num_heads * batch
    Shapes:   the four products: dV = P^T dO and dP = dO V^T of width value_head_dim, dQ = dS K and dK = dS^T Q of
              width head_dim; S = Q K^T again
    Assumes:  softmax and its backward multiply no matrices; num_kv_heads changes no FLOP, because every query head
              meets keys of its group; "scores" is what FlashAttention does, "none" is attention that kept its
              probabilities
    Raises:   ValueError for another word of causal or recompute, counts below 1, or more queries than context
    Source:   Dao, FlashAttention-2, 2023, arXiv:2307.08691, section 4.1 (backward = 2.5 * forward: two products
              forward, five backward)
    Measured: measure.inner_loop.flops.counted_flops

    >>> size = {
    ...     "batch": 1,
    ...     "num_heads": 16,
    ...     "head_dim": 128,
    ...     "query_tokens": 8192,
    ...     "context_tokens": 8192,
    ...     "causal": "half",
    ... }
    >>> forward = attention(**size, num_kv_heads=16, fused=True, bytes_per_element=2).flops
    >>> [attention_backward_flops(**size, recompute=recompute) / forward for recompute in ("none", "scores")]
    [2.0, 2.5]
    """
    checks.one_of(RECOMPUTE, recompute=recompute)
    value_dim = head_dim if value_head_dim is None else value_head_dim
    checks.count(batch=batch, num_heads=num_heads, head_dim=head_dim, value_head_dim=value_dim)
    pairs = attended_pairs(query_tokens=query_tokens, context_tokens=context_tokens, causal=causal, window=window)
    widths = 2 * value_dim + 2 * head_dim + (head_dim if recompute == "scores" else 0)
    return batch * num_heads * 2 * pairs * widths


def visible_keys(*, query_tokens: int, context_tokens: int, window: int | None = None) -> int:
    """Keys that at least one of the queries can see; the queries are the last tokens of the context.

    Formula:  min(context_tokens, window + query_tokens - 1)
    Raises:   ValueError if there are more queries than context
    Source:   by definition
    Counted:  tests.operations.test_kernels.test_attended_pairs_against_a_drawn_mask

    >>> (
    ...     visible_keys(query_tokens=1, context_tokens=10_000, window=4096),
    ...     visible_keys(query_tokens=100, context_tokens=10_000, window=4096),
    ... )
    (4096, 4195)
    """
    checks.count(query_tokens=query_tokens, context_tokens=context_tokens)
    if query_tokens > context_tokens:
        raise ValueError(
            f"query_tokens={query_tokens} must not exceed context_tokens={context_tokens}, of which they are the last"
        )
    if window is None:
        return context_tokens
    checks.count(window=window)
    return min(context_tokens, window + query_tokens - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfusedAttention:
    """Attention as three kernels. The softmax's FLOPs are its own: no matrix product."""

    scores: Work  # read queries and keys, write the scores
    softmax: Work  # read the scores, write the probabilities
    values: Work  # read probabilities and values, write the output

    @property
    def total(self) -> Work:
        """All three, the softmax's FLOPs included."""
        return self.scores + self.softmax + self.values


def unfused_attention(
    *,
    batch: int,
    num_heads: int,
    num_kv_heads: int,
    head_dim: int,
    query_tokens: int,
    context_tokens: int,
    causal: str,
    bytes_per_element: float,
    kv_bytes_per_element: float | None = None,
    value_head_dim: int | None = None,
    window: int | None = None,
) -> UnfusedAttention:
    """The three kernels of attention that is not fused; arguments as in `attention`, whose bytes with fused=False are
    these three's together.

    Formula:  scores: Q + K + S;  softmax: 2 * S;  values: S + V + output, with S of batch * num_heads * query_tokens
              * visible_keys elements
    Assumes:  scores are stored in full, masked or not; scale and mask are part of the softmax kernel
    Source:   Dao et al., FlashAttention, 2022, arXiv:2205.14135 (standard attention writes its scores to memory)
    Counted:  simulate.inner_loop.tiled_attention.unfused_attention
    Measured: measure.inner_loop.flops.counted_flops

    >>> parts = unfused_attention(
    ...     batch=4,
    ...     num_heads=32,
    ...     num_kv_heads=32,
    ...     head_dim=128,
    ...     query_tokens=2048,
    ...     context_tokens=2048,
    ...     causal="full",
    ...     bytes_per_element=2,
    ... )
    >>> round(
    ...     parts.scores.arithmetic_intensity, 1
    ... )  # below the ridge of every recent accelerator, however long the prompt
    113.8
    """
    value_dim = head_dim if value_head_dim is None else value_head_dim
    kv_bytes = bytes_per_element if kv_bytes_per_element is None else kv_bytes_per_element
    checks.count(
        batch=batch, num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, value_head_dim=value_dim
    )
    checks.divides(part="num_kv_heads", part_value=num_kv_heads, whole="num_heads", whole_value=num_heads)
    checks.positive(bytes_per_element=bytes_per_element, kv_bytes_per_element=kv_bytes)
    pairs = attended_pairs(query_tokens=query_tokens, context_tokens=context_tokens, causal=causal, window=window)
    keys = visible_keys(query_tokens=query_tokens, context_tokens=context_tokens, window=window)
    rows = batch * num_heads * query_tokens

    def product(width: int) -> Work:
        """One of the two matrix products: `width` per query on one side, the scores on the other, keys or values
        between them.
        """
        kv = batch * num_kv_heads * keys * width * kv_bytes
        conventions = (f"causal={causal}", "fused=False")
        return Work(
            flops=batch * num_heads * 2 * pairs * width,
            moved_bytes=rows * (width + keys) * bytes_per_element + kv,
            conventions=conventions,
        )

    return UnfusedAttention(
        scores=product(head_dim),
        softmax=softmax(rows=rows, width=keys, bytes_per_element=bytes_per_element),
        values=product(value_dim),
    )
