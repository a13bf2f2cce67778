"""Models as lists of layers: what a language model is made of, whatever runs it.

A model groups equal layers as (layer, count) pairs, and every layer names its own attention. A hybrid model, one with
sliding windows in half of its layers or one whose layers share a cache, is then nothing special: it is a list with
more than one kind of entry.

>>> llama = Attention(num_heads=32, num_kv_heads=8, head_dim=128)
>>> llama.group_size
4
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from threeloops import checks
from threeloops.models.files.quantised import SaidStored
from threeloops.models.layers.beside import Beside
from threeloops.models.layers.compressed import CompressedAttention
from threeloops.models.layers.counted import CountedState, CountedWeights
from threeloops.models.layers.feed_forward import DenseMlp, MoeMlp
from threeloops.models.layers.indexers import BlockIndexer, Indexer
from threeloops.models.layers.states import FurtherState
from threeloops.models.recurrent_layers import DeltaState, StateSpace

__all__ = [
    "NORM_WIDTHS",
    "Attention",
    "DenseMlp",
    "LatentAttention",
    "Layer",
    "Mixer",
    "Model",
    "MoeMlp",
    "Recurrent",
]

# What stands in for attention and keeps a state that does not grow.
Recurrent = DeltaState | StateSpace | FurtherState | CountedState

_COUNTED_OF_HYBRIDS = (
    "training, caches and FLOPs are counted for it (`threeloops plan`, `threeloops memory`, `threeloops kv`,"
    " `threeloops roofline`), an engine's steps and adapters are not"
)
_COUNTED_OF_OTHERS = (
    "its parameters and caches are counted (`threeloops kv`, `threeloops fit`), FLOPs, training memory and layouts are"
    " not"
)

# A norm's values per channel: weight and bias, weight alone, or nothing that is learned.
NORM_WIDTHS = {"layernorm": 2, "rmsnorm": 1, "layernorm-no-bias": 1, "layernorm-no-weight": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Multi-head, grouped-query or multi-query attention, over everything or over a window."""

    num_heads: int  # query heads
    num_kv_heads: int  # equal to num_heads: MHA; 1: MQA; between: GQA
    head_dim: int  # stated, never inferred from hidden / heads: several models override it
    value_head_dim: int | None = None  # None: values are as wide as keys
    window: int | None = None  # sliding window in tokens, the query's own included; None reads the whole context
    owns_cache: bool = True  # False: reads the keys and values that an earlier layer cached
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False  # one norm weight of head_dim for queries, one for keys
    qk_norm_spans_heads: bool = False  # those weights are as wide as all query heads, and as all key heads
    sinks: bool = False  # one learned logit per query head
    gated: bool = False  # queries are projected twice: the second copy is a gate on what attention read
    keys_are_values: bool = False  # one projection makes both; normed apart, both are cached
    blocks: BlockIndexer | None = None  # None: every token is read
    shared_weights: bool = False  # its projections are other layers', too, and counted outside all of them

    def __post_init__(self) -> None:
        checks.count(num_heads=self.num_heads, num_kv_heads=self.num_kv_heads, head_dim=self.head_dim)
        if self.value_head_dim is not None:
            checks.count(value_head_dim=self.value_head_dim)
        checks.divides(part="num_kv_heads", part_value=self.num_kv_heads, whole="num_heads", whole_value=self.num_heads)
        if self.window is not None:
            checks.count(window=self.window)

    @property
    def group_size(self) -> int:
        """Query heads that read one KV head: 1 in MHA, num_heads in MQA."""
        return self.num_heads // self.num_kv_heads

    @property
    def query_dim(self) -> int:
        """Width of all query heads side by side."""
        return self.num_heads * self.head_dim

    @property
    def output_dim(self) -> int:
        """Width of what all heads read, side by side."""
        return self.num_heads * (self.value_head_dim or self.head_dim)

    @property
    def kv_dim(self) -> int:
        """Width of all key heads side by side; of all value heads, too, where they are as wide."""
        return self.num_kv_heads * self.head_dim

    @property
    def kept_dim(self) -> int:
        """Numbers that are cached of one token: all key heads and all value heads."""
        return self.num_kv_heads * (self.head_dim + (self.value_head_dim or self.head_dim))

    @property
    def projected_kv_dim(self) -> int:
        """Columns of the projections that make keys and values; a layer that reads another's cache has none."""
        if not self.owns_cache:
            return 0
        return self.kv_dim if self.keys_are_values else self.kept_dim

    @property
    def parameters_per_hidden(self) -> int:
        """Columns (or rows) of width `hidden` in Q, K, V and the output projection together."""
        if self.shared_weights:
            return 0
        return (2 if self.gated else 1) * self.query_dim + self.output_dim + self.projected_kv_dim

    @property
    def unusual(self) -> str:
        """What keeps it out of counts that know of nothing but heads of one width; empty if nothing."""
        if self.blocks is not None:
            return "attention to chosen blocks"
        if self.keys_are_values:
            return "keys that are values"
        if self.shared_weights:
            return "a block of attention that other layers share"
        return "values of another width than its keys" if self.value_head_dim not in (None, self.head_dim) else ""

    @property
    def qk_norm_width(self) -> int:
        """Weights of both norms inside attention."""
        if not self.qk_norm:
            return 0
        if not self.owns_cache:
            return self.query_dim if self.qk_norm_spans_heads else self.head_dim
        return self.query_dim + self.kv_dim if self.qk_norm_spans_heads else 2 * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values follow from one small cached vector per token. Prefill rebuilds
    them; in decode their matrices are absorbed into query and output.

    Source: DeepSeek-AI, DeepSeek-V2, 2024, arXiv:2405.04434, section 2.1
    """

    num_heads: int
    q_rank: int | None  # width of the compressed query; None: projected directly
    kv_rank: int  # width of the cached latent vector
    nope_head_dim: int  # per-head key width without position
    rope_head_dim: int  # per-token key width with position, shared by all heads, cached beside the latent
    value_head_dim: int
    bias: bool = False  # on the two compressing projections and the output, not on the expanding ones
    indexer: Indexer | None = None  # None: every token is read
    gated: bool = False  # a projection as wide as all value heads weighs what attention read

    def __post_init__(self) -> None:
        checks.count(
            num_heads=self.num_heads,
            kv_rank=self.kv_rank,
            nope_head_dim=self.nope_head_dim,
            rope_head_dim=self.rope_head_dim,
            value_head_dim=self.value_head_dim,
        )
        if self.q_rank is not None:
            checks.count(q_rank=self.q_rank)

    @property
    def unusual(self) -> str:
        """What keeps it out of counts that know of nothing but latents; empty if nothing."""
        return "a gate on its latent attention" if self.gated else ""

    def refuse_indexer(self) -> None:
        """For counts of attention to every token.

        Raises: ValueError if an indexer chooses the tokens
        """
        if self.indexer:
            raise ValueError(
                f"an indexer chooses {self.indexer.top_k:,} tokens for each query of this model, and what is asked for"
                " is counted for attention to every token only; `threeloops kv` and `threeloops fit` count its"
                " parameters and its cache"
            )

    @property
    def head_dim(self) -> int:
        """Width of one query or key head when attention runs uncompressed."""
        return self.nope_head_dim + self.rope_head_dim


Mixer = Attention | LatentAttention | CompressedAttention | Recurrent  # what mixes the tokens in a layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One transformer block; in a hybrid model it may have a recurrent state for attention, or one sub-block only."""

    attention: Mixer | None
    mlp: DenseMlp | MoeMlp | None
    norm: str  # one of NORM_WIDTHS
    # of width hidden: 2 in most models, 4 where each sub-block is also normalised on its way out, 1 where both
    # sub-blocks read the same normalised input or the block has only one of them
    num_norms: int
    state: Recurrent | None = None  # side by side with attention, on the same norm
    beside: Beside | None = None  # what no other field describes

    def __post_init__(self) -> None:
        checks.one_of(NORM_WIDTHS, norm=self.norm)
        checks.count(num_norms=self.num_norms)
        if self.attention is None and self.mlp is None:
            raise ValueError("a layer needs attention, an MLP, or both")

    @property
    def unusual(self) -> str:
        """What the layer has beside attention, a state in its place, and an MLP; empty if nothing."""
        if self.state is not None:
            return "a state side by side with its attention"
        if self.beside is not None:
            return f"{self.beside.name} beside attention and MLP"
        return self.attention.unusual if self.attention else ""

    def refuse_unusual(self) -> None:
        """For counts that know of nothing unusual."""
        if self.unusual:
            raise ValueError(f"a layer of this model has {self.unusual}; {_COUNTED_OF_OTHERS}")

    @property
    def attending(self) -> Attention | LatentAttention:
        """The attention, for counts that know of nothing else."""
        self.refuse_unusual()
        if isinstance(self.attention, Attention | LatentAttention):
            return self.attention
        kind = "no attention" if self.attention is None else "a recurrent state in place of attention"
        raise ValueError(f"a layer of this hybrid model has {kind}; {_COUNTED_OF_HYBRIDS}")

    @property
    def feeding(self) -> DenseMlp | MoeMlp:
        """The MLP, for counts in which every layer has one."""
        if self.mlp is None:
            raise ValueError(f"a layer of this hybrid model has no MLP; {_COUNTED_OF_HYBRIDS}")
        return self.mlp


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder-only language model."""

    name: str
    hidden: int
    vocab: int
    groups: tuple[tuple[Layer, int], ...]  # equal layers, with how many there are
    tied_head: bool  # True: the output head is the input embedding table
    max_context: int  # tokens that positions were made for
    learned_positions: int = 0  # rows of a learned position table; 0 for rotary or none
    head_bias: bool = False  # one more value per word in the output head
    alibi: bool = False  # positions are a slope per head on the scores: nothing is stored, nothing is rotated
    embedding_norm: bool = False  # one more norm, of the first layer's kind, behind the input table
    beside: Beside | None = None  # further tables and projections outside the layers
    counted: CountedWeights | None = None  # all its weights, where layers say only what they keep
    not_counted: tuple[str, ...] = field(default=(), compare=False)  # what its checkpoint holds besides, in words
    assumed: tuple[str, ...] = field(default=(), compare=False)  # sizes that its config leaves to its class
    noted: tuple[str, ...] = field(default=(), compare=False)  # how its config was read, where that needs saying
    stored: SaidStored = field(default=SaidStored(), compare=False)  # how its config says that its weights are kept

    def __post_init__(self) -> None:
        checks.count(hidden=self.hidden, vocab=self.vocab, max_context=self.max_context)
        checks.count(at_least=0, learned_positions=self.learned_positions)
        if not self.groups:
            raise ValueError(f"{self.name} has no layers; groups must hold at least one (layer, count) pair")
        for _, num_layers in self.groups:
            checks.count(num_layers=num_layers)

    @property
    def num_layers(self) -> int:
        return sum(num_layers for _, num_layers in self.groups)

    @property
    def rotary(self) -> bool:
        """Whether queries and keys are rotated: taken so where positions are neither a learned table nor ALiBi."""
        return not self.learned_positions and not self.alibi

    def refuse_hybrid(self) -> None:
        """For counts of attention and an MLP in every layer.

        Raises: ValueError if a layer has no attention or no MLP, or an indexer chooses what attention reads
        """
        for layer, _ in self.groups:
            attention, _mlp = layer.attending, layer.feeding
            if isinstance(attention, LatentAttention):
                attention.refuse_indexer()

    def layers(self) -> Iterator[Layer]:
        """Every layer, one by one (grouped: the order inside a repeating pattern is not kept)."""
        for layer, num_layers in self.groups:
            for _ in range(num_layers):
                yield layer
