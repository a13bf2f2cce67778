"""Block activations: the tensors of each sub-block in the order in which a forward pass makes them. See activations
for totals.
"""

from dataclasses import replace

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer
from threeloops.training_loop.memory.activation_kernels import FP32_BYTES, RankView, SavedTensor
from threeloops.training_loop.memory.mlp_activations import input_linears, mixture_items, wide_items


def attention_items(layer: Layer, rank: RankView) -> tuple[SavedTensor, ...]:
    """What the attention sub-block keeps, its norm and its dropout mask included, for a layer that has one."""
    attention = layer.attending
    if isinstance(attention, LatentAttention):
        heads, read = _latent_items(attention, rank), attention.num_heads * attention.value_head_dim
    else:
        heads, read = _query_key_value_items(attention, rank), attention.query_dim
    return (
        *stream_norm_items("attention norm", layer.norm, "attention", rank),
        # queries, keys, values; or both compressions and the position key
        *rank.read("attention input", "attention", rank.stream, linears=3),
        *heads,
        *_core_items(attention.num_heads // rank.tp, rank),
        rank.kept("output projection input", "attention", rank.split(read, name="width of all heads")),
        *rank.mask("attention output dropout mask", "attention", rank.stream),
        *(
            norm_items("post-attention norm", layer.norm, "attention", rank.stream, rank)
            if layer.num_norms == 4
            else ()
        ),
    )


def _query_key_value_items(attention: Attention, rank: RankView) -> tuple[SavedTensor, ...]:
    heads, kv_heads = _local_heads(attention, rank)
    rows, dim = (rank.micro_batch, rank.sequence), attention.head_dim
    normed = (("query", heads), ("key", kv_heads)) if attention.qk_norm else ()
    norms = (norm_items(f"{name} norm", "rmsnorm", "attention", (*rows, n, dim), rank) for name, n in normed)
    read_heads = heads if rank.kernels.repeats_kv and rank.kernels.attention == "explicit" else kv_heads
    return (
        *(item for items in norms for item in items),
        rank.kept("queries", "attention", (*rows, heads, dim)),
        rank.kept("keys", "attention", (*rows, read_heads, dim)),
        rank.kept("values", "attention", (*rows, read_heads, dim)),
        # multiplied with each other: what attention read, and the gate behind its sigmoid
        *((rank.kept("read before its gate", "attention", (*rows, heads, dim)),) if attention.gated else ()),
        *((rank.kept("gate", "attention", (*rows, heads, dim)),) if attention.gated else ()),
    )


def _latent_items(attention: LatentAttention, rank: RankView) -> tuple[SavedTensor, ...]:
    """Training runs latent attention uncompressed: the latent vectors are kept, and so are the heads made out of
    them.
    """
    attention.refuse_indexer()
    checks.divides(part="tp", part_value=rank.tp, whole="num_heads", whole_value=attention.num_heads)
    rows, heads = (rank.micro_batch, rank.sequence), attention.num_heads // rank.tp
    latents = (
        [("key-value", attention.kv_rank)]
        if attention.q_rank is None
        else [("query", attention.q_rank), ("key-value", attention.kv_rank)]
    )
    compressed = (
        (
            *norm_items(f"{name} latent norm", "rmsnorm", "attention", rank.whole(width), rank),
            *rank.read(f"{name} latent", "attention", rank.whole(width), linears=2 if name == "key-value" else 1),
        )
        for name, width in latents
    )
    return (
        *(item for items in compressed for item in items),
        rank.kept("queries", "attention", (*rows, heads, attention.head_dim)),
        rank.kept("keys", "attention", (*rows, heads, attention.head_dim)),
        rank.kept("values", "attention", (*rows, heads, attention.value_head_dim)),
    )


def _local_heads(attention: Attention, rank: RankView) -> tuple[int, int]:
    """Query and KV heads of one rank; a KV head is repeated on several ranks where there are fewer of them than
    ranks.
    """
    checks.divides(part="tp", part_value=rank.tp, whole="num_heads", whole_value=attention.num_heads)
    if attention.num_kv_heads > rank.tp:
        checks.divides(part="tp", part_value=rank.tp, whole="num_kv_heads", whole_value=attention.num_kv_heads)
    elif rank.tp % attention.num_kv_heads:
        raise ValueError(f"tp={rank.tp} must be a multiple of num_kv_heads={attention.num_kv_heads}, or divide it")
    return attention.num_heads // rank.tp, max(1, attention.num_kv_heads // rank.tp)


def _core_items(heads: int, rank: RankView) -> tuple[SavedTensor, ...]:
    if rank.kernels.attention == "flash":
        return rank.small("log-sum-exp per row", "core", (rank.micro_batch, heads, rank.sequence))
    square = (rank.micro_batch, heads, rank.sequence, rank.sequence)
    cast = rank.kernels.softmax == "fp32" and rank.bytes_per_element < FP32_BYTES
    fp32 = (
        (SavedTensor(name="attention weights, fp32", part="core", shape=square, bytes_per_element=FP32_BYTES),)
        if cast
        else ()
    )
    # Softmax keeps its output. The product with the values reads that very tensor, unless a cast or dropout has made
    # a new one.
    softmax = () if cast and rank.dropout else (rank.kept("attention weights", "core", square),)
    mask = rank.mask("attention weights dropout mask", "core", square)
    return (
        *fp32,
        *softmax,
        *mask,
        *((rank.kept("attention weights after dropout", "core", square),) if rank.dropout else ()),
    )


def mlp_items(layer: Layer, rank: RankView) -> tuple[SavedTensor, ...]:
    """What the feed-forward sub-block keeps, its norm and its dropout mask included; nothing where there is none."""
    mlp = layer.mlp
    if mlp is None:
        return ()
    return (
        *stream_norm_items("MLP norm", layer.norm, "mlp", rank),
        *rank.read("MLP input", "mlp", rank.stream, linears=input_linears(mlp)),
        *(wide_items(mlp, rank) if isinstance(mlp, DenseMlp) else mixture_items(mlp, rank)),
        *rank.mask("MLP output dropout mask", "mlp", rank.stream),
        *(norm_items("post-MLP norm", layer.norm, "mlp", rank.stream, rank) if layer.num_norms == 4 else ()),
    )


def stream_norm_items(name: str, norm: str, part: str, rank: RankView) -> tuple[SavedTensor, ...]:
    """What a norm keeps that reads the residual stream: under autocast that is fp32, and the norm with it."""
    wide = replace(rank, bytes_per_element=FP32_BYTES, autocast=False) if rank.autocast else rank
    return norm_items(name, norm, part, rank.stream, wide)


def norm_items(name: str, norm: str, part: str, shape: tuple[int, ...], rank: RankView) -> tuple[SavedTensor, ...]:
    """What one norm over the last axis keeps. LayerNorm is a single operation in every framework; RMSNorm is not."""
    per_row = (*shape[:-1], 1)
    if norm != "rmsnorm":
        mean, deviation = rank.small(f"{name} mean", part, per_row), rank.small(f"{name} 1/deviation", part, per_row)
        return (rank.kept(f"{name} input", part, shape), *mean, *deviation)
    scale = rank.small(f"{name} 1/rms", part, per_row)
    if rank.kernels.rmsnorm == "fused":
        return (rank.kept(f"{name} input", part, shape), *scale)
    copy = SavedTensor(name=f"{name} input, fp32", part=part, shape=shape, bytes_per_element=FP32_BYTES)
    return (copy, *scale, rank.kept(f"{name} before its weight", part, shape))
