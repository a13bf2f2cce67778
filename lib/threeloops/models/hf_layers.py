"""Pieces of a model read from config fields: what several families of checkpoints share.

Source: the configuration and modelling files of Hugging Face transformers 5.23.0,
        https://github.com/huggingface/transformers
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp, Recurrent
from threeloops.models.hf_fields import Fields

# gelu_new, gelu_fast and gelu_pytorch_tanh compute the same polynomial, but the first two in plain operations that keep
# every step, the third in one.
MOST_LAYERS = 10_000
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "relu2": "relu2",
}


def _activation(fields: Fields, field: str) -> str:
    value = fields.get(field)
    checks.one_of(ACTIVATIONS, **{field: value})
    return ACTIVATIONS[value]


def grouped(layers: Iterable[Layer]) -> tuple[tuple[Layer, int], ...]:
    """Equal layers counted together, in order of first appearance."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(counts.items())


def rotary_model(
    fields: Fields,
    name: str,
    attentions: Sequence[Attention | LatentAttention | Recurrent | None],
    mlps: Sequence[DenseMlp | MoeMlp | None],
    *,
    norm: str = "rmsnorm",
    num_norms: int = 2,
    head_bias: bool = False,
) -> Model:
    """What all families with rotary positions share; `attentions` and `mlps` name every layer's, or one for all."""
    per_layer = range(num_layers(fields))
    layers = [
        Layer(
            attention=attentions[layer % len(attentions)],
            mlp=mlps[layer % len(mlps)],
            norm=norm,
            num_norms=num_norms,
        )
        for layer in per_layer
    ]
    return Model(
        name=name,
        hidden=fields.count("hidden_size"),
        vocab=fields.count("vocab_size"),
        groups=grouped(layers),
        tied_head=fields.flag("tie_word_embeddings"),
        max_context=fields.count("max_position_embeddings"),
        head_bias=head_bias,
    )


def num_layers(fields: Fields) -> int:
    """Layers, no more than any model has: each is described by itself."""
    stated = fields.count("num_hidden_layers")
    if stated > MOST_LAYERS:
        raise ValueError(f"num_hidden_layers={stated} must be at most {MOST_LAYERS:,}; no model is so deep")
    return stated


def _split_evenly(fields: Fields, hidden: str, heads: str) -> int:
    """hidden / heads, for a config that does not state head_dim."""
    checks.divides(part=heads, part_value=fields.count(heads), whole=hidden, whole_value=fields.count(hidden))
    return fields.count(hidden) // fields.count(heads)


def _head_dim(fields: Fields) -> int:
    stated = fields.count_or_none("head_dim") if fields.has("head_dim") else None
    if stated is None and fields.defaults.get("head_dim") is not None:
        raise ValueError(f"head_dim=None must be a number, or left out, which means {fields.defaults['head_dim']}")
    return stated or _split_evenly(fields, "hidden_size", "num_attention_heads")


def configured_attention(
    fields: Fields,
    *,
    window: int | None,
    qkv_bias: bool = False,
    output_bias: bool = False,
    qk_norm: bool = False,
    qk_norm_spans_heads: bool = False,
    sinks: bool = False,
    gated: bool = False,
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
        qk_norm_spans_heads=qk_norm_spans_heads,
        sinks=sinks,
        gated=gated,
    )


def gated_mlp(
    fields: Fields, *, intermediate: str = "intermediate_size", act: str = "hidden_act", bias: bool = False
) -> DenseMlp:
    """A three-matrix feed-forward block; `intermediate` and `act` are the names of its fields."""
    return DenseMlp(intermediate=fields.count(intermediate), gated=True, activation=_activation(fields, act), bias=bias)


def plain_mlp(
    fields: Fields, *, bias: bool, intermediate: str = "intermediate_size", act: str = "hidden_act"
) -> DenseMlp:
    """A two-matrix feed-forward block; `intermediate` and `act` are the names of its fields."""
    return DenseMlp(
        intermediate=fields.count(intermediate), gated=False, activation=_activation(fields, act), bias=bias
    )


def side_by_side(expert: DenseMlp, copies: int) -> DenseMlp | None:
    """Shared experts as one block; none where there are no copies."""
    return replace(expert, intermediate=copies * expert.intermediate) if copies else None


def layer_kinds(fields: Fields, *, known: Iterable[str], rule: Callable[[int], str]) -> list[str]:
    """What layer_types calls every layer, else the family's rule."""
    depth, types = num_layers(fields), fields.list_or_none("layer_types")
    if types is None:
        types = [rule(layer) for layer in range(depth)]
    if len(types) != depth:
        raise ValueError(f"layer_types lists {len(types)} layers, but num_hidden_layers={depth}")
    for layer_type in types:
        checks.one_of(known, layer_types=layer_type)
    return types


def windows(fields: Fields, *, window: int | None, slides: Callable[[int], bool]) -> list[int | None]:
    """The window of every layer: as layer_types lists them, else by the family's rule."""
    types = layer_kinds(
        fields,
        known=("full_attention", "sliding_attention"),
        rule=lambda layer: "sliding_attention" if slides(layer) else "full_attention",
    )
    return [window if layer_type == "sliding_attention" else None for layer_type in types]


def exaone_windows(fields: Fields) -> list[int | None]:
    """EXAONE 4's and K-EXAONE's windows: as listed, else by sliding_window_pattern, 4 or LLLG for one full layer of
    four.
    """
    window, pattern = fields.count_or_none("sliding_window"), fields.get("sliding_window_pattern")
    if isinstance(pattern, str):  # a letter a layer, G for a full one
        kinds = [letter == "L" for letter in pattern] or [False]
    else:
        kinds = [True] * ((pattern or 1) - 1) + [False]
    return windows(fields, window=window, slides=lambda layer: window is not None and kinds[layer % len(kinds)])


@dataclass(frozen=True, slots=True, kw_only=True)
class FalconSizes:
    """What a Falcon config says of every layer."""

    attention: Attention
    mlp: DenseMlp
    num_norms: int


def falcon_sizes(fields: Fields) -> FalconSizes:
    """Falcon's heads and norms: the 7B has one KV head and one norm, the larger ones several of both.

    Assumes: a KV head is cached once, as servers do; the transformers class copies it to all its query heads first
    """
    heads, new, bias = fields.count("num_attention_heads"), fields.flag("new_decoder_architecture"), fields.flag("bias")
    grouped_heads, norms = fields.count_or_none("num_kv_heads"), fields.count_or_none("num_ln_in_parallel_attn")
    one, parallel = fields.flag("multi_query"), fields.flag("parallel_attn")
    kv_heads = (grouped_heads or heads) if new else 1 if one else heads
    attention = Attention(
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=_split_evenly(fields, "hidden_size", "num_attention_heads"),
        qkv_bias=bias,
        output_bias=bias,
    )
    mlp = DenseMlp(
        intermediate=fields.count_or_none("ffn_hidden_size") or 4 * fields.count("hidden_size"),
        gated=False,
        activation=_activation(fields, "activation"),
        bias=bias,
    )
    two = not parallel or (norms == 2 if norms is not None else new)
    return FalconSizes(attention=attention, mlp=mlp, num_norms=2 if two else 1)


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
