"""Cache walk: visit every layer, query head and token, and add up the numbers that one rank has to keep.

Heads are dealt to ranks as contiguous slices of query heads; each rank keeps the KV heads that its own query heads
read. Nothing else is assumed.

>>> from threeloops.models.architecture import Attention
>>> walk = readable_elements(Attention(num_heads=12, num_kv_heads=4, head_dim=10, window=3), tokens=5, tp=2, rank=1)
>>> walk == (2 + 2) * 3 * 10  # two keys and two values for each of three tokens
True
"""

from threeloops.models.architecture import Attention, LatentAttention, Model


def heads_read(attention: Attention, *, tp: int, rank: int) -> set[int]:
    """The KV heads that this rank's query heads read.

    Raises: ValueError if the query heads cannot be dealt evenly
    """
    per_rank, left_over = divmod(attention.num_heads, tp)
    if left_over:
        raise ValueError(f"tp={tp} leaves {left_over} of num_heads={attention.num_heads} query heads without a rank")
    return {query_head // attention.group_size for query_head in range(rank * per_rank, (rank + 1) * per_rank)}


def readable_positions(attention: Attention | LatentAttention, *, tokens: int) -> list[int]:
    """The positions that the newest token attends to, itself included."""
    newest = tokens - 1
    window = attention.window if isinstance(attention, Attention) else None
    return [position for position in range(tokens) if window is None or newest - position < window]


def readable_elements(attention: Attention | LatentAttention, *, tokens: int, tp: int = 1, rank: int = 0) -> int:
    """Numbers that this rank must still hold in one layer when the newest of `tokens` tokens attends."""
    elements = 0
    for _ in readable_positions(attention, tokens=tokens):
        if isinstance(attention, LatentAttention):
            elements += attention.kv_rank
            elements += attention.rope_head_dim
        elif attention.owns_cache:
            for _ in heads_read(attention, tp=tp, rank=rank):
                elements += attention.head_dim
                elements += attention.value_head_dim or attention.head_dim
    return elements


def cached_elements(model: Model, *, tokens: int, tp: int = 1, rank: int = 0) -> int:
    """Numbers that this rank must still hold for one request, over all layers."""
    return sum(readable_elements(layer.attending, tokens=tokens, tp=tp, rank=rank) for layer in model.layers())
