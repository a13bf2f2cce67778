"""Pieces of a model read from config fields: what several families of checkpoints share.

Source: the configuration and modelling files of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable, Iterable, Sequence

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.hf_fields import Fields

# gelu_new and gelu_pytorch_tanh compute the same polynomial, but the first in plain operations that keep every step,
# the second in one.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
}


def _activation(fields: Fields, field: str) -> str:
    value = fields.get(field)
    checks.one_of(ACTIVATIONS, **{field: value})
    return ACTIVATIONS[value]


def _grouped(layers: Iterable[Layer]) -> tuple[tuple[Layer, int], ...]:
    """Equal layers counted together, in order of first appearance."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(counts.items())


def rotary_model(
    fields: Fields,
    name: str,
    attentions: Sequence[Attention | LatentAttention],
    mlps: Sequence[DenseMlp | MoeMlp],
    *,
    num_norms: int = 2,
) -> Model:
    """What all families with rotary positions share; `attentions` and `mlps` name every layer's, or one for all."""
    per_layer = range(fields.count("num_hidden_layers"))
    layers = [
        Layer(
            attention=attentions[layer % len(attentions)],
            mlp=mlps[layer % len(mlps)],
            norm="rmsnorm",
            num_norms=num_norms,
        )
        for layer in per_layer
    ]
    return Model(
        name=name,
        hidden=fields.count("hidden_size"),
        vocab=fields.count("vocab_size"),
        groups=_grouped(layers),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings"),
    )


def _split_evenly(fields: Fields, hidden: str, heads: str) -> int:
    """hidden / heads, for a config that does not state head_dim."""
    checks.divides(part=heads, part_value=fields.count(heads), whole=hidden, whole_value=fields.count(hidden))
    return fields.count(hidden) // fields.count(heads)


def _head_dim(fields: Fields) -> int:
    stated = fields.count_or_none("head_dim") if fields.has("head_dim") else None
    return stated or _split_evenly(fields, "hidden_size", "num_attention_heads")


def configured_attention(
    fields: Fields,
    *,
    window: int | None,
    qkv_bias: bool = False,
    output_bias: bool = False,
    qk_norm: bool = False,
    sinks: bool = False,
) -> Attention:
    """Multi-head or grouped-query attention under the usual field names; a head_dim that is not stated is hidden_size
    / num_attention_heads.
    """
    num_heads = fields.count("num_attention_heads")
    num_kv_heads = fields.count_or_none("num_key_value_heads") or num_heads
    checks.divides(
        part="num_key_value_heads", part_value=num_kv_heads, whole="num_attention_heads", whole_value=num_heads
    )
    return Attention(
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=_head_dim(fields),
        window=window,
        qkv_bias=qkv_bias,
        output_bias=output_bias,
        qk_norm=qk_norm,
        sinks=sinks,
    )


def gated_mlp(
    fields: Fields, *, intermediate: str = "intermediate_size", act: str = "hidden_act", bias: bool = False
) -> DenseMlp:
    """A three-matrix feed-forward block; `intermediate` and `act` are the names of its fields."""
    return DenseMlp(intermediate=fields.count(intermediate), gated=True, activation=_activation(fields, act), bias=bias)


def windows(fields: Fields, *, window: int | None, slides: Callable[[int], bool]) -> list[int | None]:
    """The window of every layer: as layer_types lists them, else by the family's rule."""
    num_layers, types = fields.count("num_hidden_layers"), fields.list_or_none("layer_types")
    if types is None:
        types = ["sliding_attention" if slides(layer) else "full_attention" for layer in range(num_layers)]
    if len(types) != num_layers:
        raise ValueError(f"layer_types lists {len(types)} layers, but num_hidden_layers={num_layers}")
    for layer_type in types:
        checks.one_of(("full_attention", "sliding_attention"), layer_types=layer_type)
    return [window if layer_type == "sliding_attention" else None for layer_type in types]


def learned_position_model(
    fields: Fields,
    name: str,
    *,
    hidden: str,
    num_heads: str,
    num_layers: str,
    intermediate: int,
    max_context: int,
    learned_positions: int,
    bias: bool,
) -> Model:
    """What GPT-2 and OPT share; `hidden`, `num_heads` and `num_layers` are the names of their fields."""
    heads, head_dim = fields.count(num_heads), _split_evenly(fields, hidden, num_heads)
    layer = Layer(
        attention=Attention(num_heads=heads, num_kv_heads=heads, head_dim=head_dim, qkv_bias=bias, output_bias=bias),
        mlp=DenseMlp(
            intermediate=intermediate, gated=False, activation=_activation(fields, "activation_function"), bias=bias
        ),
        norm="layernorm",
        num_norms=2,
    )
    return Model(
        name=name,
        hidden=fields.count(hidden),
        vocab=fields.count("vocab_size"),
        groups=((layer, fields.count(num_layers)),),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=max_context,
        learned_positions=learned_positions,
    )
