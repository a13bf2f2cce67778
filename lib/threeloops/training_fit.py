"""Training fit: everything one rank holds at its worst moment, and the largest micro-batch or sequence that fits.

>>> from threeloops.models import Attention, DenseMlp, Layer
>>> layer = Layer(attention=Attention(num_heads=32, num_kv_heads=8, head_dim=128), mlp=DenseMlp(intermediate=14336, gated=True, activation="silu"),
...               norm="rmsnorm", num_norms=2)
>>> llama = Model(name="8b", hidden=4096, vocab=128256, groups=((layer, 32),), tied_head=False, max_context=8192)
>>> setup = Training(model=llama, recipe="megatron", zero_stage=1, dp=10, tp=4, pp=1, sequence_parallel=True, schedule="1f1b", micro_batches=16,
...                  element_bytes=2, kernels="fused", dropout=False, recompute="none")
>>> largest_micro_batch(setup, sequence=8192, usable_bytes=80e9)
6

Source: Korthikanti et al., 2022, arXiv:2205.05198, sections 4.2.3 and 4.3
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from threeloops import activations, checks
from threeloops.activation_kernels import Kernels
from threeloops.activations import Activations
from threeloops.in_flight import micro_batches_in_flight
from threeloops.memory import ModelStates, model_states
from threeloops.models import Layer, Model
from threeloops.parameter_buckets import layer_buckets, layers_on_stage, stage_buckets
from threeloops.training_recipes import Recipe, recipe_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained: everything that decides memory except micro-batch and sequence."""

    model: Model
    recipe: str | Recipe
    zero_stage: int
    dp: int
    tp: int
    pp: int
    sequence_parallel: bool
    schedule: str
    micro_batches: int  # per step and pipeline
    element_bytes: int  # of activations
    kernels: str | Kernels
    dropout: bool
    recompute: str
    chunks: int = 1  # per stage, when interleaved
    ep: int = 1
    expert_tp: int | None = None
    gathered_layers: int | None = None  # zero_stage 3: layers whose whole weights are there at once; 1, or 2 with prefetch


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMemory:
    """Bytes on one rank of one stage at the end of its warm-up, part by part."""

    stage: int
    states: ModelStates
    layer_activations_bytes: float  # of all micro-batches in flight
    embedding_bytes: float  # first stage: kept by the token lookup, of all micro-batches in flight
    head_bytes: float  # last stage: final norm, head and loss of one micro-batch
    recomputed_bytes: float  # activations of the one layer that recompute brings back at a time
    gathered_bytes: float  # zero_stage 3: weights of whole layers, gathered from the shards
    in_flight: float  # micro-batches

    @property
    def activations_bytes(self) -> float:
        return self.layer_activations_bytes + self.embedding_bytes + self.head_bytes + self.recomputed_bytes

    @property
    def total_bytes(self) -> float:
        return self.states.total_bytes + self.activations_bytes + self.gathered_bytes


def rank_memory(training: Training, *, stage: int, micro_batch: int, sequence: int) -> RankMemory:
    """Bytes that one rank of a pipeline stage holds at its worst moment.

    Formula:  model states + in flight * (layers of the stage * saved per layer + embedding on stage 0) + head on the last stage
              + with recompute, one layer's full activations less what is stored of it + at zero_stage 3, gathered_layers whole layers of weights
    Units:    returns bytes; compare total_bytes with the usable bytes of the device, not with its name
    Assumes:  layers of all kinds spread evenly over stages; not counted: gradients of activations, communication buffers, workspace, the
              allocator's fragmentation, the CUDA context
    Raises:   ValueError at zero_stage 3 if gathered_layers is not stated
    Source:   Korthikanti et al., 2022, arXiv:2205.05198, sections 4.2.3 and 4.3
    """
    model, pp = training.model, training.pp
    num_layers = layers_on_stage(num_layers=model.num_layers, stage=stage, pp=pp)
    in_flight = micro_batches_in_flight(schedule=training.schedule, stage=stage, pp=pp, micro_batches=training.micro_batches, chunks=training.chunks)
    stored, whole = (_mean_layer_bytes(training, micro_batch, sequence, recompute) for recompute in (training.recompute, "none"))
    return RankMemory(
        stage=stage,
        states=_states(training, stage),
        layer_activations_bytes=in_flight * num_layers * stored,
        embedding_bytes=ceil(in_flight) * _embedding(training, micro_batch, sequence).total_bytes if stage == 0 else 0,
        head_bytes=_head(training, micro_batch, sequence).total_bytes if stage == pp - 1 else 0,
        recomputed_bytes=whole - stored,
        gathered_bytes=_gathered_bytes(training),
        in_flight=in_flight,
    )


def largest_rank_memory(training: Training, *, micro_batch: int, sequence: int) -> RankMemory:
    """rank_memory of the fullest stage: the one that decides whether training fits."""
    checks.count(pp=training.pp)
    stages = (rank_memory(training, stage=stage, micro_batch=micro_batch, sequence=sequence) for stage in range(training.pp))
    return max(stages, key=lambda memory: memory.total_bytes)


def largest_micro_batch(training: Training, *, sequence: int, usable_bytes: float) -> int:
    """The largest micro-batch whose fullest stage fits in usable_bytes; 0 where not even one sequence does.

    Assumes:  what rank_memory assumes: leave a reserve for what it does not count
    """
    checks.positive(usable_bytes=usable_bytes)
    return _largest(lambda micro_batch: largest_rank_memory(training, micro_batch=micro_batch, sequence=sequence).total_bytes <= usable_bytes)


def largest_sequence(training: Training, *, micro_batch: int, usable_bytes: float) -> int:
    """The longest sequence, in tokens, whose fullest stage fits in usable_bytes; 0 where none does. With sequence_parallel a multiple of tp.

    Assumes:  what rank_memory assumes; says nothing about whether the model was made for that many positions
    """
    checks.positive(usable_bytes=usable_bytes)
    step = training.tp if training.sequence_parallel else 1
    return step * _largest(lambda steps: largest_rank_memory(training, micro_batch=micro_batch, sequence=steps * step).total_bytes <= usable_bytes)


def _largest(fits: Callable[[int], bool]) -> int:
    """The largest whole number that fits, when everything below a number that fits does too."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _states(training: Training, stage: int) -> ModelStates:
    buckets = stage_buckets(training.model, stage=stage, pp=training.pp)
    return model_states(
        parameters=buckets,
        recipe=training.recipe,
        zero_stage=training.zero_stage,
        dp=training.dp,
        tp=training.tp,
        pp=1,  # the buckets are one stage's already
        ep=training.ep,
        expert_tp=training.expert_tp,
    )


def _mean_layer_bytes(training: Training, micro_batch: int, sequence: int, recompute: str) -> float:
    """Saved bytes of one layer, averaged over the kinds of layers in the model's proportion."""
    kept = (count * _layer(training, layer, micro_batch, sequence, recompute).total_bytes for layer, count in training.model.groups)
    return sum(kept) / training.model.num_layers


def _layer(training: Training, layer: Layer, micro_batch: int, sequence: int, recompute: str) -> Activations:
    return activations.per_layer(
        layer,
        hidden=training.model.hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        element_bytes=training.element_bytes,
        kernels=training.kernels,
        dropout=training.dropout,
        tp=training.tp,
        sequence_parallel=training.sequence_parallel,
        recompute=recompute,
        expert_tp=training.expert_tp,
    )


def _embedding(training: Training, micro_batch: int, sequence: int) -> Activations:
    return activations.embedding(
        hidden=training.model.hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        element_bytes=training.element_bytes,
        kernels=training.kernels,
        dropout=training.dropout,
        tp=training.tp,
        sequence_parallel=training.sequence_parallel,
    )


def _head(training: Training, micro_batch: int, sequence: int) -> Activations:
    return activations.head(
        norm=training.model.groups[-1][0].norm,
        vocab=training.model.vocab,
        hidden=training.model.hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        element_bytes=training.element_bytes,
        kernels=training.kernels,
        tp=training.tp,
        sequence_parallel=training.sequence_parallel,
    )


def _gathered_bytes(training: Training) -> float:
    if training.zero_stage < 3:
        return 0
    if training.gathered_layers is None:
        raise ValueError("gathered_layers must be stated at zero_stage=3: 1 whole layer at a time, or 2 where the next is gathered ahead")
    checks.count(gathered_layers=training.gathered_layers)
    recipe = training.recipe if isinstance(training.recipe, Recipe) else recipe_named(training.recipe)
    layers = (layer_buckets(layer, hidden=training.model.hidden) for layer, _ in training.model.groups)
    unsharded = (
        model_states(parameters=layer, recipe=recipe, zero_stage=0, dp=training.dp, tp=training.tp, pp=1, ep=training.ep, expert_tp=training.expert_tp)
        for layer in layers
    )
    return training.gathered_layers * max(states.weights_bytes for states in unsharded)
