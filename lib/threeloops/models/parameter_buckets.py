"""Parameter buckets of a model: which of its parameters tensor parallelism splits, which stand whole on every rank,
which belong to experts.

>>> from threeloops.models.architecture import Attention, DenseMlp
>>> layer = Layer(
...     attention=Attention(num_heads=32, num_kv_heads=8, head_dim=128),
...     mlp=DenseMlp(intermediate=14336, gated=True, activation="silu"),
...     norm="rmsnorm",
...     num_norms=2,
... )
>>> layer_buckets(layer, hidden=4096)
ParameterBuckets(split_matrices=218103808, split_others=0, whole_matrices=0, whole_others=8192, expert_matrices=0, expert_others=0)

Source: Shoeybi et al., 2019, arXiv:1909.08053, section 3; Megatron Core (routers, norms and the compressing
        projections of latent attention are whole)
"""  # noqa: E501

from dataclasses import dataclass, fields
from functools import lru_cache

from threeloops import checks
from threeloops.models.architecture import NORM_WIDTHS, Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.recurrent_layers import DeltaState, StateSpace

_MEGATRON_VOCAB_MULTIPLE = 128  # per tensor rank: the default of --make-vocab-size-divisible-by


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterBuckets:
    """Parameters of a model (or of one pipeline stage), by how parallelism treats them.

    Where only a total is known, ParameterBuckets.plain(total) stands for the model.
    """

    # hidden matrices that tensor parallelism splits: attention projections, dense and shared MLP
    split_matrices: float = 0
    split_others: float = 0  # embedding table, output head, and biases that follow a split dimension
    # hidden matrices that every tensor rank holds whole: routers, the compressing projections of latent attention
    whole_matrices: float = 0
    whole_others: float = 0  # norms, and biases of projections that are summed over tensor ranks
    expert_matrices: float = 0  # routed experts, all of them, not only the active ones
    expert_others: float = 0  # biases of routed experts

    def __post_init__(self) -> None:
        for name in self.__slots__:
            checks.non_negative(**{name: getattr(self, name)})

    @classmethod
    def plain(cls, num_parameters: float) -> "ParameterBuckets":
        """A model of which only the number of parameters is known, all of them taken for matrices that tensor
        parallelism splits.

        Assumes:  no experts, and one treatment for all parameters: right for every uniform recipe, up to the norms
                  that tp does not split
        Raises:   ValueError if num_parameters is negative

        >>> ParameterBuckets.plain(7.5e9).total
        7500000000.0
        """
        checks.non_negative(num_parameters=num_parameters)
        return cls(split_matrices=num_parameters)

    @property
    def total(self) -> float:
        return (
            self.split_matrices
            + self.split_others
            + self.whole_matrices
            + self.whole_others
            + self.expert_matrices
            + self.expert_others
        )

    @property
    def matrices(self) -> float:
        """Hidden matrices of all three kinds: what linear layers inside the blocks multiply by."""
        return self.split_matrices + self.whole_matrices + self.expert_matrices

    @property
    def has_experts(self) -> bool:
        return self.expert_matrices + self.expert_others > 0


@lru_cache(maxsize=256)
def layer_buckets(layer: Layer, *, hidden: int) -> ParameterBuckets:
    """Parameters of one block by bucket.

    Assumes:  biases into a block follow its split width, biases out of it are whole; keys and values are split, which
              holds up to tp = num_kv_heads; a recurrent layer is split by heads, and so are its convolution, its decays
              and a norm over all heads
    Raises:   ValueError for a layer that has more than attention or a recurrent state, and an MLP
    """
    checks.count(hidden=hidden)
    norms = ParameterBuckets(whole_others=layer.num_norms * hidden * NORM_WIDTHS[layer.norm])
    blocks = [_mlp(layer.mlp, hidden)] if layer.mlp is not None else []
    if isinstance(layer.attention, DeltaState | StateSpace):
        blocks.append(_state(layer.attention, hidden))
    elif layer.attention is not None:
        blocks.append(_attention(layer.attending, hidden))
    return buckets_sum(norms, *blocks)


def stage_buckets(model: Model, *, stage: int, pp: int, tables_as_layers: bool = False) -> ParameterBuckets:
    """Parameters of one pipeline stage by bucket; with pp=1, of the whole model.

    Assumes:  layers dealt out as layers_on_stage deals them; each stage holds the kinds of layers in the
              model's proportion; the first stage has the input tables and the norm behind them, the last the final
              norm and the output head; a tied table is held by both
    Raises:   ValueError for a stage outside the pipeline, or more stages than layers
    """
    num_layers = layers_on_stage(num_layers=model.num_layers, stage=stage, pp=pp, tables_as_layers=tables_as_layers)
    table, first_norm, last_norm = model.vocab * model.hidden, model.groups[0][0].norm, model.groups[-1][0].norm
    parts = [
        _times(layer_buckets(layer, hidden=model.hidden), count * num_layers / model.num_layers)
        for layer, count in model.groups
    ]
    if stage == 0:
        rows = model.learned_positions + model.embedding_norm * NORM_WIDTHS[first_norm]
        parts.append(ParameterBuckets(split_others=table, whole_others=rows * model.hidden))
    if stage == pp - 1:
        holds_table_already = model.tied_head and stage == 0
        parts.append(
            ParameterBuckets(
                split_others=(0 if holds_table_already else table) + model.head_bias * model.vocab,
                whole_others=model.hidden * NORM_WIDTHS[last_norm],
            )
        )
    return buckets_sum(*parts)


def layers_on_stage(*, num_layers: int, stage: int, pp: int, tables_as_layers: bool = False) -> int:
    """Layers of one stage when they are dealt out as evenly as they go, the first stages getting one more.

    Formula:  num_layers // pp, and one more on the first num_layers % pp stages; with tables_as_layers, num_layers +
              2 are dealt, and the first of them is the embedding, the last the head
    Source:   Llama Team, 2024, arXiv:2407.21783, section 3.3.2 (126 layers on 16 stages: one less on the first and on
              the last)
    Counted:  tests.training_loop.test_layouts.test_dealing_tables_as_layers_loses_no_layer

    >>> [layers_on_stage(num_layers=61, stage=stage, pp=16) for stage in (0, 12, 13, 15)]
    [4, 4, 3, 3]
    >>> [layers_on_stage(num_layers=126, stage=stage, pp=16, tables_as_layers=True) for stage in (0, 1, 14, 15)]
    [7, 8, 8, 7]
    """
    checks.count(num_layers=num_layers, pp=pp)
    checks.count(at_least=0, stage=stage)
    if stage >= pp:
        raise ValueError(f"stage={stage} must be less than pp={pp}; stages count from 0")
    if pp > num_layers:
        raise ValueError(f"pp={pp} must not exceed num_layers={num_layers}")
    if not tables_as_layers:
        return num_layers // pp + (stage < num_layers % pp)
    dealt = num_layers + 2
    return dealt // pp + (stage < dealt % pp) - (stage == 0) - (stage == pp - 1)


def padded_vocab(*, vocab: int, multiple: int) -> int:
    """Rows of an embedding table, and columns of a head, that are padded up to a multiple.

    Formula:  ceil(vocab / multiple) * multiple
    Assumes:  nothing of the field's conventions: Megatron-LM's multiple is 128 * tp (--make-vocab-size-divisible-by
              times the tensor ranks)
    Source:   Megatron-LM, megatron/core/tokenizers/utils/build_tokenizer.py, vocab_size_with_padding
    Counted:  tests.models.test_parameter_buckets.test_megatron_pads_gpt2s_vocabulary_to_korthikantis

    >>> padded_vocab(vocab=50257, multiple=128 * 8)
    51200
    """
    checks.count(vocab=vocab, multiple=multiple)
    return -(-vocab // multiple) * multiple


def check_vocab_split(*, vocab: int, tp: int) -> None:
    """Refuse a vocabulary that tensor parallelism cannot cut, and say which padding would let it.

    >>> check_vocab_split(vocab=50257, tp=8)
    Traceback (most recent call last):
        ...
    ValueError: tp=8 must divide vocab=50257; pad the vocabulary: to a multiple of 1024 (Megatron-LM's 128 * tp) it has 51200 rows
    """  # noqa: E501
    checks.count(vocab=vocab, tp=tp)
    if vocab % tp:
        multiple = _MEGATRON_VOCAB_MULTIPLE * tp
        padded = padded_vocab(vocab=vocab, multiple=multiple)
        raise ValueError(
            f"tp={tp} must divide vocab={vocab}; pad the vocabulary: to a multiple of {multiple} (Megatron-LM's"
            f" {_MEGATRON_VOCAB_MULTIPLE} * tp) it has {padded} rows"
        )


def _attention(attention: Attention | LatentAttention, hidden: int) -> ParameterBuckets:
    if isinstance(attention, LatentAttention):
        return _latent(attention, hidden)
    return ParameterBuckets(
        split_matrices=hidden * attention.parameters_per_hidden,
        split_others=attention.qkv_bias * ((1 + attention.gated) * attention.query_dim + attention.projected_kv_dim)
        + attention.sinks * attention.num_heads,
        whole_others=attention.output_bias * hidden + attention.qk_norm_width,
    )


def _state(state: DeltaState | StateSpace, hidden: int) -> ParameterBuckets:
    matrices = state.matmul_parameters(hidden=hidden)
    bias = hidden if isinstance(state, StateSpace) and state.bias else 0  # of the projection out
    others = state.parameters(hidden=hidden) - matrices - bias
    per_head = isinstance(state, DeltaState)  # one norm for all heads, which every rank has
    return ParameterBuckets(
        split_matrices=matrices,
        split_others=others + (0 if per_head else state.norm_width),
        whole_others=bias + (state.norm_width if per_head else 0),
    )


def _latent(attention: LatentAttention, hidden: int) -> ParameterBuckets:
    heads, q_rank, compressed = attention.num_heads, attention.q_rank or 0, attention.kv_rank + attention.rope_head_dim
    expand = heads * (
        attention.head_dim * (q_rank or hidden)
        + (attention.nope_head_dim + attention.value_head_dim) * attention.kv_rank
    )
    whole = ParameterBuckets(
        split_matrices=expand + heads * attention.value_head_dim * hidden,
        whole_matrices=hidden * (q_rank + compressed),
        whole_others=q_rank + attention.kv_rank + attention.bias * (q_rank + compressed + hidden),
    )
    if attention.indexer is None:
        return whole
    width, index_heads = attention.indexer.head_dim, attention.indexer.num_heads
    indexer = (q_rank or hidden) * index_heads * width + hidden * (width + index_heads)
    return buckets_sum(whole, ParameterBuckets(whole_matrices=indexer, whole_others=2 * width))


def _mlp(mlp: DenseMlp | MoeMlp, hidden: int) -> ParameterBuckets:
    if isinstance(mlp, DenseMlp):
        return _dense(mlp, hidden)
    expert = _dense(mlp.expert, mlp.latent or hidden)
    experts = ParameterBuckets(
        whole_matrices=mlp.num_experts * hidden + 2 * hidden * (mlp.latent or 0),
        whole_others=mlp.router_bias * mlp.num_experts + mlp.shared_gate * hidden,
        expert_matrices=mlp.num_experts * expert.split_matrices,
        expert_others=mlp.num_experts * (expert.split_others + expert.whole_others),
    )
    return buckets_sum(experts, _dense(mlp.shared, hidden)) if mlp.shared else experts


def _dense(mlp: DenseMlp, hidden: int) -> ParameterBuckets:
    into_block = mlp.num_matrices - 1
    return ParameterBuckets(
        split_matrices=mlp.num_matrices * hidden * mlp.intermediate,
        split_others=mlp.bias * into_block * mlp.intermediate,
        whole_others=mlp.bias * hidden,
    )


def buckets_sum(*parts: ParameterBuckets) -> ParameterBuckets:
    """All of them together, bucket by bucket."""
    return ParameterBuckets(
        **{field.name: sum(getattr(part, field.name) for part in parts) for field in fields(ParameterBuckets)}
    )


def _times(buckets: ParameterBuckets, factor: float) -> ParameterBuckets:
    return ParameterBuckets(**{field.name: factor * getattr(buckets, field.name) for field in fields(ParameterBuckets)})
