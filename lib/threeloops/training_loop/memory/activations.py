"""Activations: what one transformer block keeps from its forward pass for its backward pass, tensor by tensor.

The list depends on the kernels, not only on the model: a fused norm keeps its input, a norm written in plain
operations keeps an fp32 copy and more; fused attention keeps one number per row where explicit attention keeps rows
of scores. Each set of kernels has a name.

>>> from threeloops.models.architecture import Attention, DenseMlp
>>> gpt3 = Layer(
...     attention=Attention(num_heads=96, num_kv_heads=96, head_dim=128),
...     mlp=DenseMlp(intermediate=49152, gated=False, activation="gelu"),
...     norm="layernorm",
...     num_norms=2,
... )
>>> kept = per_layer(
...     gpt3, hidden=12288, sequence=2048, micro_batch=1, bytes_per_element=2, kernels="korthikanti", dropout=True
... )
>>> kept.total_bytes / (2048 * 1 * 12288)
114.0

Source: Korthikanti et al., 2022, arXiv:2205.05198, section 4
"""

from dataclasses import dataclass, replace
from math import ceil

from threeloops import checks
from threeloops.models.architecture import Attention, Layer
from threeloops.models.parameter_buckets import check_vocab_split
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.training_loop.memory.activation_kernels import (
    FP32_BYTES,
    INDEX_BYTES,
    KERNELS,
    Kernels,
    RankView,
    SavedTensor,
)
from threeloops.training_loop.memory.block_activations import attention_items, mlp_items, stream_norm_items
from threeloops.training_loop.memory.recurrent_activations import recurrent_items

# "plain": torch.nn.functional.cross_entropy on fp32 logits; "in-place": Megatron-LM's, which turns what it kept into
# the gradient; "sliced": Liger's, or torch's linear_cross_entropy with options, which never holds all logits
CROSS_ENTROPIES = ("plain", "in-place", "sliced")
LOG_PROBABILITIES = "log-probabilities"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """Saved tensors of one micro-batch on one rank, and the conventions they were counted by."""

    items: tuple[SavedTensor, ...]
    kernels: str
    bytes_per_element: int
    dropout: bool
    tp: int
    sequence_parallel: bool
    recompute: str
    autocast: bool

    @property
    def rows(self) -> tuple[tuple[str, int], ...]:
        """The name and the bytes of every saved tensor, in the order of the forward pass."""
        return tuple((item.name, item.bytes) for item in self.items)

    @property
    def total_bytes(self) -> int:
        return sum(item.bytes for item in self.items)


def per_layer(
    layer: Layer,
    *,
    hidden: int,
    sequence: int,
    micro_batch: int,
    bytes_per_element: int,
    kernels: str | Kernels,
    dropout: bool,
    tp: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
    expert_tp: int | None = None,
    autocast: bool = False,
) -> Activations:
    """Tensors that one block keeps for one micro-batch, on one tensor-parallel rank.

    Formula:  with kernels="korthikanti", MHA, a GELU MLP of 4 * hidden and 2-byte elements (s sequence, b
              micro-batch, h hidden, a heads, t tp): s*b*h * (34 + 5*a*s/h); with tp s*b*h * (10 + 24/t +
              5*a*s/(h*t)); with sequence_parallel all of it / t; recompute "selective" drops 5*a*s/h, "full" keeps
              2*s*b*h (/ t with sequence_parallel)
    Shapes:   every item carries its own
    Units:    bytes_per_element is 2 or 4; returns bytes
    Assumes:  linear layers, GELU and SiLU are single operations that keep their inputs (gelu_new where the kernels
              fuse it); residual sums, biases, rotary embedding and sinks keep nothing of their own (tables are shared
              by all layers); flash attention keeps no mask; explicit attention stores masked scores too; dropout,
              where there is any, acts on attention weights and on both sub-block outputs; experts get equal numbers
              of tokens with autocast, weights, residual stream and norms are fp32; linear layers cast their inputs,
              each its own where several read one fp32 tensor (queries, keys and values, then gate and up, are
              separate layers, as in Llama); the casts of weights are not in this list
    Raises:   ValueError where tp does not divide heads, widths or (sequence_parallel) the sequence; with experts and
              tp > 1, if expert_tp is not stated; for a scan in plain operations
    Source:   Korthikanti et al., 2022, arXiv:2205.05198, equations 1 to 6 and table 2
    Counted:  simulate.training_loop.block_tape.Blocks
    Measured: measure.training_loop.saved_tensors.saved_bytes
    """
    checks.one_of(("none", "selective", "full"), recompute=recompute)
    rank = _rank(
        hidden, sequence, micro_batch, bytes_per_element, kernels, dropout, tp, sequence_parallel, expert_tp, autocast
    )
    items = (*_mixing_items(layer, rank), *mlp_items(layer, rank))
    if recompute == "selective":
        items = tuple(_before_cast(item, layer, rank) for item in items if item.part != "core")
    if recompute == "full":
        items = (rank.stream_kept("block input", "block", rank.stream),)
    return _activations(items, rank, recompute=recompute)


def _mixing_items(layer: Layer, rank: RankView) -> tuple[SavedTensor, ...]:
    """Of attention, or of what stands in its place."""
    layer.refuse_unusual()
    if isinstance(layer.attention, DeltaState | StateSpace):
        return recurrent_items(layer, layer.attention, rank)
    return attention_items(layer, rank) if layer.attention is not None else ()


def _before_cast(item: SavedTensor, layer: Layer, rank: RankView) -> SavedTensor:
    """Selective recompute keeps what enters attention: under autocast, normalised queries and keys are still fp32
    there.
    """
    normed = isinstance(layer.attention, Attention) and layer.attention.qk_norm and item.name in ("queries", "keys")
    return replace(item, bytes_per_element=FP32_BYTES) if rank.autocast and normed else item


def embedding_activations(
    *,
    hidden: int,
    sequence: int,
    micro_batch: int,
    bytes_per_element: int,
    kernels: str | Kernels,
    dropout: bool,
    tp: int = 1,
    sequence_parallel: bool = False,
    norm: str | None = None,
) -> Activations:
    """What looking up the tokens keeps: their ids, what a norm behind the table keeps where there is one, and a dropout
    mask where there is dropout.

    Source:   Korthikanti et al., 2022, arXiv:2205.05198, section 4.3 (the mask)
    """
    rank = _rank(hidden, sequence, micro_batch, bytes_per_element, kernels, dropout, tp, sequence_parallel)
    ids = rank.small("token ids", "embedding", (micro_batch, sequence), bytes_per_element=INDEX_BYTES)
    normed = stream_norm_items("embedding norm", norm, "embedding", rank) if norm else ()
    mask = rank.mask("embedding dropout mask", "embedding", rank.stream)
    return _activations((*ids, *normed, *mask), rank, recompute="none")


def head_activations(
    *,
    norm: str,
    vocab: int,
    hidden: int,
    sequence: int,
    micro_batch: int,
    bytes_per_element: int,
    kernels: str | Kernels,
    tp: int = 1,
    sequence_parallel: bool = False,
    autocast: bool = False,
    cross_entropy: str = "plain",
) -> Activations:
    """What the final norm, the output head and the cross-entropy keep. The logits are often the largest tensor of the
    whole step.

    Formula:  "plain", "in-place": 2 * bytes_per_element * s*b*h + 4 * s*b*vocab / tp (both first terms / tp with
              sequence_parallel); "sliced": bytes_per_element * (2 * s*b*h + vocab * h + vocab * a slice of tokens),
              with s*b / (vocab / h) tokens to a slice
    Assumes:  cross-entropy in fp32 keeps log-probabilities, not the logits in the block's dtype. "plain" makes two
              more tensors of their size in its own backward pass: see loss_gradient_bytes. "in-place" writes the
              gradient over them, "sliced" makes both gradients of the head while it goes forward, so that no more than
              a slice of logits exists. The vocabulary is padded already where tp needs it
    Raises:   ValueError where tp does not divide the vocabulary, naming the padded vocabulary that it would divide;
              for "sliced" with tp > 1, whose slices would have to be exchanged
    Source:   Korthikanti et al., 2022, arXiv:2205.05198, section 4.3; Megatron-LM, core/tensor_parallel/
              cross_entropy.py ("in-place"); Liger Kernel, ops/fused_linear_cross_entropy.py, and
              torch.nn.functional.linear_cross_entropy with options ("sliced")
    Measured: measure.training_loop.saved_tensors.saved_bytes

    >>> kept = head_activations(
    ...     norm="rmsnorm",
    ...     vocab=128256,
    ...     hidden=4096,
    ...     sequence=8192,
    ...     micro_batch=1,
    ...     bytes_per_element=2,
    ...     kernels="fused",
    ... )
    >>> kept.rows
    (('final norm input', 67108864), ('final norm 1/rms', 32768), ('head input', 67108864), ('log-probabilities', 4202692608), ('targets', 65536))
    """  # noqa: E501
    checks.one_of(("layernorm", "rmsnorm"), norm=norm)
    checks.one_of(CROSS_ENTROPIES, cross_entropy=cross_entropy)
    rank = _rank(
        hidden, sequence, micro_batch, bytes_per_element, kernels, False, tp, sequence_parallel, autocast=autocast
    )
    check_vocab_split(vocab=vocab, tp=tp)
    logits = SavedTensor(
        name=LOG_PROBABILITIES, part="head", shape=rank.split(vocab, name="vocab"), bytes_per_element=FP32_BYTES
    )
    items = (
        *stream_norm_items("final norm", norm, "head", rank),
        *(
            _sliced(rank, vocab)
            if cross_entropy == "sliced"
            else (rank.kept("head input", "head", rank.stream), logits)
        ),
        *rank.small("targets", "head", (micro_batch, sequence), bytes_per_element=INDEX_BYTES),
    )
    return _activations(items, rank, recompute="none")


def loss_gradient_bytes(head: Activations, *, cross_entropy: str) -> int:
    """What the backward pass of the cross-entropy makes beside what waits for it, for a few milliseconds of a step.

    Formula:  "plain": 2 * the fp32 log-probabilities: their gradient, nearly all zeros, and the gradient of the logits
              that is made from it; "in-place" and "sliced": 0
    Assumes:  no variable holds the logits themselves
    Source:   measured, operation by operation: measure.training_loop.watched_step
    Measured: measure.training_loop.alive_bytes.watched

    >>> sizes = {"sequence": 8192, "micro_batch": 1, "bytes_per_element": 2, "kernels": "fused"}
    >>> kept = head_activations(norm="rmsnorm", vocab=128256, hidden=4096, **sizes)
    >>> loss_gradient_bytes(kept, cross_entropy="plain") / 2**30
    7.828125
    """
    checks.one_of(CROSS_ENTROPIES, cross_entropy=cross_entropy)
    if cross_entropy != "plain":
        return 0
    return 2 * sum(item.bytes for item in head.items if item.name == LOG_PROBABILITIES)


def _sliced(rank: RankView, vocab: int) -> tuple[SavedTensor, ...]:
    """Both gradients of the head, made while the loss goes forward, and the slice of logits that exists meanwhile."""
    if rank.tp > 1:
        raise ValueError(f"cross_entropy='sliced' is counted for tp=1, not for tp={rank.tp}")
    tokens = rank.sequence * rank.micro_batch
    slice_tokens = ceil(tokens / ceil(vocab / rank.hidden))
    return (
        rank.kept("gradient of the head input", "head", rank.stream),
        rank.kept("gradient of the head", "head", (vocab, rank.hidden)),
        rank.kept("a slice of logits", "head", (slice_tokens, vocab)),
    )


def _rank(
    hidden: int,
    sequence: int,
    micro_batch: int,
    bytes_per_element: int,
    kernels: str | Kernels,
    dropout: bool,
    tp: int,
    sequence_parallel: bool,
    expert_tp: int | None = None,
    autocast: bool = False,
) -> RankView:
    if not isinstance(kernels, Kernels):
        checks.one_of(KERNELS, kernels=kernels)
        kernels = KERNELS[kernels]
    return RankView(
        hidden=hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        bytes_per_element=bytes_per_element,
        kernels=kernels,
        dropout=dropout,
        tp=tp,
        sequence_parallel=sequence_parallel,
        expert_tp=expert_tp,
        autocast=autocast,
    )


def _activations(items: tuple[SavedTensor, ...], rank: RankView, *, recompute: str) -> Activations:
    return Activations(
        items=items,
        kernels=rank.kernels.name,
        bytes_per_element=rank.bytes_per_element,
        dropout=rank.dropout,
        tp=rank.tp,
        sequence_parallel=rank.sequence_parallel,
        recompute=recompute,
        autocast=rank.autocast,
    )
