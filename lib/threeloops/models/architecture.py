"""Models as lists of layers: what a language model is made of, whatever runs it.

A model groups equal layers as (layer, count) pairs, and every layer names its own attention. A hybrid model, one with
sliding windows in half of its layers or one whose layers share a cache, is then nothing special: it is a list with
more than one kind of entry.

>>> llama = Attention(num_heads=32, num_kv_heads=8, head_dim=128)
>>> llama.group_size
4
"""

from collections.abc import Iterator
from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Multi-head, grouped-query or multi-query attention, over everything or over a window."""

    num_heads: int  # query heads
    num_kv_heads: int  # equal to num_heads: MHA; 1: MQA; between: GQA
    head_dim: int  # stated, never inferred from hidden / heads: several models override it
    window: int | None = None  # sliding window in tokens, the query's own included; None reads the whole context
    owns_cache: bool = True  # False: reads the keys and values that an earlier layer cached
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False  # one norm weight of head_dim for queries, one for keys
    sinks: bool = False  # one learned logit per query head

    def __post_init__(self) -> None:
        checks.count(num_heads=self.num_heads, num_kv_heads=self.num_kv_heads, head_dim=self.head_dim)
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
    def kv_dim(self) -> int:
        """Width of all key heads (or all value heads) side by side."""
        return self.num_kv_heads * self.head_dim

    @property
    def parameters_per_hidden(self) -> int:
        """Columns (or rows) of width `hidden` in Q, K, V and the output projection together."""
        return 2 * self.query_dim + 2 * self.kv_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values are rebuilt from one small cached vector per token.

    Source: DeepSeek-AI, DeepSeek-V2, 2024, arXiv:2405.04434, section 2.1
    """

    num_heads: int
    q_rank: int | None  # width of the compressed query; None: projected directly
    kv_rank: int  # width of the cached latent vector
    nope_head_dim: int  # per-head key width without position
    rope_head_dim: int  # per-token key width with position, shared by all heads, cached beside the latent
    value_head_dim: int
    bias: bool = False  # on the two compressing projections and the output, not on the expanding ones

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
    def head_dim(self) -> int:
        """Width of one query or key head when attention runs uncompressed."""
        return self.nope_head_dim + self.rope_head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseMlp:
    """A feed-forward block: two matrices, or three when gated (SwiGLU, GeGLU)."""

    intermediate: int
    gated: bool
    # "gelu", "gelu_new" (its tanh form, written in plain operations), "silu", "relu": as the config names it,
    # simplified
    activation: str
    bias: bool = False

    def __post_init__(self) -> None:
        checks.count(intermediate=self.intermediate)

    @property
    def num_matrices(self) -> int:
        return 3 if self.gated else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeMlp:
    """A mixture of experts: a router, `num_experts` feed-forward blocks of which `top_k` run per token, and shared
    ones that always run.
    """

    num_experts: int
    top_k: int
    expert: DenseMlp
    shared: DenseMlp | None = None  # all shared experts side by side, as one block
    router_bias: bool = False
    # a load-balancing bias per expert that is not trained by gradient: stored as a buffer, not a parameter
    correction_bias: bool = False
    shared_gate: bool = False  # a learned scalar gate on the shared block

    def __post_init__(self) -> None:
        checks.count(num_experts=self.num_experts, top_k=self.top_k)
        if self.top_k > self.num_experts:
            raise ValueError(f"top_k={self.top_k} must not exceed num_experts={self.num_experts}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One transformer block."""

    attention: Attention | LatentAttention
    mlp: DenseMlp | MoeMlp
    norm: str  # "layernorm" (weight and bias) or "rmsnorm" (weight)
    num_norms: int  # of width hidden: 2 in most models, 4 where each sub-block is also normalised on its way out

    def __post_init__(self) -> None:
        checks.one_of(("layernorm", "rmsnorm"), norm=self.norm)
        checks.count(num_norms=self.num_norms)


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

    def layers(self) -> Iterator[Layer]:
        """Every layer, one by one (grouped: the order inside a repeating pattern is not kept)."""
        for layer, num_layers in self.groups:
            for _ in range(num_layers):
                yield layer
