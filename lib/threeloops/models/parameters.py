"""Parameters of a language model, item by item, under named conventions.

Three disagreements hide in "a 7B model": whether the input table counts, whether a tied table counts once or twice,
and whether the experts that a token does not visit count. Every answer here has its own name; none is the default.
"""

from threeloops import checks, dtypes
from threeloops.models.architecture import (
    NORM_WIDTHS,
    Attention,
    DenseMlp,
    LatentAttention,
    Layer,
    Mixer,
    Model,
    MoeMlp,
)
from threeloops.models.layers.parameter_counts import LayerParameters, ModelParameters, parameters_as_counted


def weights_bytes(*, num_parameters: float, dtype: str) -> float:
    """Bytes of a model's weights, all stored in one number format.

    Formula:  num_parameters * dtypes.bytes_per_element(dtype)
    Units:    num_parameters counts what is stored: ModelParameters.total, with all experts, a tied table once
    Assumes:  every parameter in that format, block scales included; no last block left half empty, no padding, no
              file header. Recipes that leave embeddings or norms wide weigh more (compression.mixed_bytes); what
              training keeps beside weights is in rank_states.model_states
    Raises:   ValueError for an unknown format, with the known ones, or unless num_parameters is positive
    Source:   by definition
    Measured: tests.models.test_parameters.test_weight_bytes_are_what_torch_holds

    >>> weights_bytes(num_parameters=8_030_261_248, dtype="bf16") / 1e9  # Llama 3 8B
    16.060522496
    >>> weights_bytes(num_parameters=7e9, dtype="mxfp4") / 1e9  # half a byte each, and a 32nd of a byte for the scale
    3.71875
    """
    checks.positive(num_parameters=num_parameters)
    return num_parameters * dtypes.bytes_per_element(dtype)


def attention_parameters(attention: Mixer | None, *, hidden: int) -> int:
    """Parameters of the projections of one attention block, biases and sinks included, its norms not.

    Formula:  hidden * (2 * query_dim + 2 * kv_dim) + biases + sinks, and hidden * query_dim more with a gate; a layer
              that reads another's cache has no keys and values; latent attention below; other layers in their classes
    Source:   DeepSeek-AI, DeepSeek-V2, 2024, arXiv:2405.04434, section 2.1 (latent attention)
    Measured: tests.models.test_parameters.measured

    >>> attention_parameters(Attention(num_heads=32, num_kv_heads=8, head_dim=128), hidden=4096)
    41943040
    """
    checks.count(hidden=hidden)
    if isinstance(attention, LatentAttention):
        return _latent_parameters(attention, hidden=hidden)
    if not isinstance(attention, Attention):
        return 0 if attention is None else attention.parameters(hidden=hidden)
    if attention.shared_weights:
        return 0
    matrices = hidden * attention.parameters_per_hidden
    biases = attention.qkv_bias * ((1 + attention.gated) * attention.query_dim + attention.projected_kv_dim)
    biases += attention.output_bias * hidden
    choosing = attention.blocks.parameters(hidden=hidden) if attention.blocks else 0
    return matrices + biases + attention.sinks * attention.num_heads + choosing


def _latent_parameters(attention: LatentAttention, *, hidden: int) -> int:
    """Compress, expand and output projections; biases sit on the compressing ones and on the output."""
    query_dim = attention.num_heads * attention.head_dim
    q_rank = attention.q_rank or 0
    query = hidden * q_rank + q_rank * query_dim if q_rank else hidden * query_dim
    compressed = attention.kv_rank + attention.rope_head_dim
    expand = attention.kv_rank * attention.num_heads * (attention.nope_head_dim + attention.value_head_dim)
    output = (1 + attention.gated) * attention.num_heads * attention.value_head_dim * hidden
    biases = attention.bias * (q_rank + compressed + hidden)
    return query + hidden * compressed + expand + output + biases + _indexer_parameters(attention, hidden=hidden)


def _indexer_parameters(attention: LatentAttention, *, hidden: int) -> int:
    """Queries out of the compressed query, one key and one weight per head out of the token; its norm aside."""
    indexer = attention.indexer
    if indexer is None:
        return 0
    queries = (attention.q_rank or hidden) * indexer.num_heads * indexer.head_dim
    return queries + hidden * (indexer.head_dim + indexer.num_heads)


def mlp_parameters(mlp: DenseMlp, *, hidden: int) -> int:
    """Parameters of one feed-forward block, biases included.

    Formula:  num_matrices * hidden * intermediate; a bias adds intermediate per matrix into the block and hidden for
              the one out
    Source:   by definition: every weight of the block counts once
    Measured: tests.models.test_parameters.measured

    >>> mlp_parameters(DenseMlp(intermediate=14336, gated=True, activation="silu"), hidden=4096)
    176160768
    """
    checks.count(hidden=hidden)
    into_block = mlp.num_matrices - 1
    return mlp.num_matrices * hidden * mlp.intermediate + mlp.bias * (into_block * mlp.intermediate + hidden)


def norm_parameters(layer: Layer, *, hidden: int) -> int:
    """Parameters of all norms of one layer: a weight each, and a bias in a LayerNorm; norms inside attention have a
    weight only.

    >>> gpt2 = Layer(
    ...     attention=Attention(num_heads=12, num_kv_heads=12, head_dim=64),
    ...     mlp=DenseMlp(intermediate=3072, gated=False, activation="gelu"),
    ...     norm="layernorm",
    ...     num_norms=2,
    ... )
    >>> norm_parameters(gpt2, hidden=768)
    3072
    """
    checks.count(hidden=hidden)
    inside = _norms_inside(layer.attention) + _norms_inside(layer.state)
    return layer.num_norms * NORM_WIDTHS[layer.norm] * hidden + inside


def _norms_inside(attention: Mixer | None) -> int:
    """One weight per value normalised: both compressed vectors, or a query head and a key head; the indexer's key has
    a bias too.
    """
    if isinstance(attention, LatentAttention):
        key = attention.indexer.head_dim if attention.indexer else 0
        return (attention.q_rank or 0) + attention.kv_rank + 2 * key
    if isinstance(attention, Attention):
        return attention.qk_norm_width + (attention.blocks.norm_width if attention.blocks else 0)
    return 0 if attention is None else attention.norm_width


def layer_parameters(layer: Layer, *, hidden: int) -> LayerParameters:
    """Parameters of one transformer block, item by item.

    Formula:  a router holds hidden * num_experts, and one more per expert with a bias; routed experts num_experts
              (active: top_k) times one expert
    Source:   by definition: every weight of the block counts once
    Measured: tests.models.test_parameters.measured

    >>> from threeloops.models.catalogue import model
    >>> dense, sparse = (layer_parameters(layer, hidden=7168) for layer, _ in model("deepseek-v3").groups)
    >>> dense.total, sparse.total, sparse.active
    (583483392, 11507286016, 585318400)
    """
    mlp, norms = layer.mlp, norm_parameters(layer, hidden=hidden)
    attention = sum(attention_parameters(one, hidden=hidden) for one in (layer.attention, layer.state))
    beside = layer.beside.total if layer.beside else 0
    if not isinstance(mlp, MoeMlp):
        return LayerParameters(
            attention=attention,
            dense_mlp=mlp_parameters(mlp, hidden=hidden) if mlp else 0,
            shared_experts=0,
            router=0,
            routed_experts=0,
            active_routed_experts=0,
            norms=norms,
            buffers=0,
            beside=beside,
        )
    expert = mlp_parameters(mlp.expert, hidden=mlp.latent or hidden)
    shared = mlp_parameters(mlp.shared, hidden=hidden) if mlp.shared else 0
    return LayerParameters(
        attention=attention,
        dense_mlp=0,
        shared_experts=shared + mlp.shared_gate * hidden + 2 * hidden * (mlp.latent or 0),
        router=mlp.num_experts * hidden + mlp.router_bias * mlp.num_experts,
        routed_experts=mlp.num_experts * expert,
        active_routed_experts=mlp.top_k * expert,
        norms=norms,
        buffers=mlp.correction_bias * mlp.num_experts,
        beside=beside,
    )


def model_parameters(model: Model) -> ModelParameters:
    """Parameters of a whole model, item by item.

    Assumes:  one norm after the last layer, of the same kind as the layers', and so one behind the input table

    >>> from threeloops.models.catalogue import model as catalogued
    >>> counts = model_parameters(catalogued("llama-3-8b"))
    >>> counts.total, counts.embedding, counts.non_embedding
    (8030261248, 525336576, 6979588096)
    """
    if model.counted:
        return parameters_as_counted(model.counted)
    table = model.vocab * model.hidden
    first_layer, last_layer = model.groups[0][0], model.groups[-1][0]
    return ModelParameters(
        embedding=table,
        positions=model.learned_positions * model.hidden,
        head=(0 if model.tied_head else table) + model.head_bias * model.vocab,
        embedding_norm=model.embedding_norm * NORM_WIDTHS[first_layer.norm] * model.hidden,
        final_norm=NORM_WIDTHS[last_layer.norm] * model.hidden,
        layers=tuple((layer_parameters(layer, hidden=model.hidden), num_layers) for layer, num_layers in model.groups),
        head_matrix=table,
        further_tables=model.beside.table if model.beside else 0,
        outside=model.beside.total - model.beside.table if model.beside else 0,
    )
