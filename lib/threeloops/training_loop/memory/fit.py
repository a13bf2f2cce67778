"""Training fit: everything one rank holds at its worst moment, and the largest micro-batch or sequence that fits.

>>> from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
>>> layer = Layer(
...     attention=Attention(num_heads=32, num_kv_heads=8, head_dim=128),
...     mlp=DenseMlp(intermediate=14336, gated=True, activation="silu"),
...     norm="rmsnorm",
...     num_norms=2,
... )
>>> llama = Model(name="8b", hidden=4096, vocab=128256, groups=((layer, 32),), tied_head=False, max_context=8192)
>>> setup = Training(
...     model=llama,
...     recipe="megatron",
...     zero_stage=1,
...     dp=10,
...     tp=4,
...     pp=1,
...     sequence_parallel=True,
...     schedule="1f1b",
...     micro_batches=16,
...     bytes_per_element=2,
...     kernels="fused",
...     dropout=False,
...     recompute="none",
... )
>>> largest_micro_batch(setup, sequence=8192, usable_bytes=80e9)
5

Source: Korthikanti et al., 2022, arXiv:2205.05198, sections 4.2.3 and 4.3
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from threeloops import checks
from threeloops.models.parameter_buckets import layers_on_stage
from threeloops.training_loop.memory import gathered_parameters
from threeloops.training_loop.memory.activations import Activations, loss_gradient_bytes
from threeloops.training_loop.memory.in_flight import micro_batches_in_flight
from threeloops.training_loop.memory.rank_activations import layer_activations, lookup_activations, loss_activations
from threeloops.training_loop.memory.rank_states import ModelStates
from threeloops.training_loop.memory.setup import Training
from threeloops.training_loop.memory.stage_states import held_buckets, left_on_gpu, stage_states

__all__ = [
    "RankMemory",
    "Training",
    "decisive_stages",
    "held_buckets",
    "largest_micro_batch",
    "largest_rank_memory",
    "largest_sequence",
    "largest_that_fits",
    "rank_memory",
    "rank_moments",
    "stage_states",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMemory:
    """Bytes on one rank of one stage at one moment, part by part, and what they were counted from."""

    stage: int
    # "forward": the last micro-batch of the warm-up has run forward, loss included; "loss": the loss itself runs
    # backward; "backward": the last layer does; "handed out": the last gradients leave for the other ranks (FSDP2)
    moment: str
    states: ModelStates
    layer_activations_bytes: int  # of all micro-batches in flight
    embedding_bytes: int  # first stage: kept by the token lookup, of all micro-batches in flight
    head_bytes: int  # last stage, forward and loss: final norm, head and loss of one micro-batch
    recomputed_bytes: int  # backward: activations of the one layer that recompute brings back at a time
    weight_copies_bytes: int  # under autocast: 16-bit copies of matrices, which wait for their layer's backward pass
    gathered_bytes: int  # zero_stage 3: weights of whole layers and of the tables, gathered from the shards
    handed_out_bytes: int  # under FSDP2's mixed precision: whole gradients of a unit, narrow and widened
    in_flight: float  # micro-batches
    num_layers: int  # on this stage
    # what one layer of each kind saves of one micro-batch, and how many the model has
    layer_kinds: tuple[tuple[Activations, int], ...]
    vocab: int  # padding included
    assumes: tuple[str, ...]

    @property
    def activations_bytes(self) -> int:
        return self.layer_activations_bytes + self.embedding_bytes + self.head_bytes + self.recomputed_bytes

    @property
    def total_bytes(self) -> float:
        beside = self.weight_copies_bytes + self.gathered_bytes + self.handed_out_bytes
        return self.states.total_bytes + self.activations_bytes + beside

    @property
    def saved_rows(self) -> tuple[tuple[str, int], ...]:
        """Name and bytes of every tensor that one layer, of the kind that saves most, keeps of one micro-batch."""
        largest, _ = max(self.layer_kinds, key=lambda kind: kind[0].total_bytes)
        return largest.rows


def rank_memory(training: Training, *, stage: int, micro_batch: int, sequence: int) -> RankMemory:
    """Bytes that one rank of a pipeline stage holds at its worst moment: the larger of rank_moments."""
    return max(
        rank_moments(training, stage=stage, micro_batch=micro_batch, sequence=sequence),
        key=lambda memory: memory.total_bytes,
    )


def rank_moments(training: Training, *, stage: int, micro_batch: int, sequence: int) -> tuple[RankMemory, ...]:
    """Bytes at the end of the warm-up's forward passes, while the loss begins the first of their backward passes, and
    when that has reached the last layer; with FSDP2's mixed precision also when the last gradients are handed out.

    Formula:  all: model states (but for what offload puts on the host) + in flight * (layers of the stage * saved per
              layer + embedding on stage 0);
              at zero_stage 3 + gathered_layers whole layers and the tables of this stage; forward: + on the last stage
              what the head keeps; loss: as forward, + on the last stage what the loss makes of its logits; backward: +
              with recompute, the full activations of the largest layer less what is stored of it; autocast adds 16-bit
              copies: of the layers' matrices, once per micro-batch in flight, and forward of the head. With recompute
              "full" they are not saved, but autocast itself keeps one copy of all until the forward pass ends; backward
              only the recomputed layer's are there
    Units:    sequence: whole, of which each of cp ranks has its part; returns whole bytes, rounded up part by part;
              compare total_bytes with the usable bytes of the device,
              not with its name
    Assumes:  what the head keeps is freed by its own backward pass, before the last layer's begins: true in autograd
              unless a variable holds the logits; what gathered_parameters.gathered_bytes assumes; training.assumes
    Raises:   ValueError at zero_stage 3 if gathered_layers is not stated
    Source:   Korthikanti et al., 2022, arXiv:2205.05198, sections 4.2.3 and 4.3
    Measured: measure.training_loop.saved_tensors.saved_bytes
    """
    model, pp = training.model, training.pp
    sequence = training.tokens_here(sequence)
    first, last = stage == 0, stage == pp - 1
    if training.schedule == "dualpipe":  # the ends of one direction are the ends of the other
        first = last = first or last
    num_layers = layers_on_stage(
        num_layers=model.num_layers, stage=stage, pp=pp, tables_as_layers=training.tables_as_layers
    )
    in_flight = micro_batches_in_flight(
        schedule=training.schedule, stage=stage, pp=pp, micro_batches=training.micro_batches, chunks=training.chunks
    )
    stored, whole = (
        layer_activations(training, micro_batch=micro_batch, sequence=sequence, recompute=recompute)
        for recompute in (training.recompute, "none")
    )
    mean_bytes = sum(kept.total_bytes * count for kept, count in stored) / model.num_layers
    copies = gathered_parameters.stage_copies_bytes(training, num_layers=num_layers, in_flight=in_flight)
    head = loss_activations(training, micro_batch=micro_batch, sequence=sequence)
    forward = RankMemory(
        stage=stage,
        moment="forward",
        states=left_on_gpu(stage_states(training, stage=stage), offload=training.offload),
        layer_activations_bytes=ceil(in_flight * num_layers * mean_bytes),
        embedding_bytes=ceil(in_flight)
        * lookup_activations(training, micro_batch=micro_batch, sequence=sequence).total_bytes
        if first
        else 0,
        head_bytes=head.total_bytes if last else 0,
        recomputed_bytes=0,
        weight_copies_bytes=copies + (gathered_parameters.head_copies_bytes(training) if last else 0),
        gathered_bytes=gathered_parameters.gathered_bytes(training, first=first, last=last),
        handed_out_bytes=0,
        in_flight=in_flight,
        num_layers=num_layers,
        layer_kinds=stored,
        vocab=training.vocab,
        assumes=training.assumes,
    )
    loss = replace(
        forward,
        moment="loss",
        head_bytes=forward.head_bytes
        + (loss_gradient_bytes(head, cross_entropy=training.cross_entropy) if last else 0),
    )
    layer_out, tables_out = gathered_parameters.handed_out_bytes(training, first=first, last=last)
    backward = replace(
        forward,
        moment="backward",
        head_bytes=0,
        handed_out_bytes=layer_out,
        recomputed_bytes=max(
            full.total_bytes - kept.total_bytes for (full, _), (kept, _) in zip(whole, stored, strict=True)
        ),
        weight_copies_bytes=gathered_parameters.layer_copies_bytes(training)
        if training.recompute == "full"
        else copies,
    )
    if not tables_out:
        return forward, loss, backward
    handed_out = replace(
        backward,
        moment="handed out",
        handed_out_bytes=tables_out,
        layer_activations_bytes=0,
        embedding_bytes=0,
        recomputed_bytes=0,
        gathered_bytes=0,
    )
    return forward, loss, backward, handed_out


def largest_rank_memory(training: Training, *, micro_batch: int, sequence: int) -> RankMemory:
    """rank_memory of the fullest stage: the one that decides whether training fits.

    Assumes:  only the first and the last stage can be the fullest (or the second, see decisive_stages): layers and
              micro-batches in flight do not grow from stage to stage, and what the ends hold besides, tables and
              head, no other does
    """
    checks.count(pp=training.pp)
    stages = (
        rank_memory(training, stage=stage, micro_batch=micro_batch, sequence=sequence)
        for stage in decisive_stages(training)
    )
    return max(stages, key=lambda memory: memory.total_bytes)


def decisive_stages(training: Training) -> tuple[int, ...]:
    """The stages of which one must be the fullest, and the second one too where the first has a layer less."""
    return tuple(sorted({0, min(1, training.pp - 1) if training.tables_as_layers else 0, training.pp - 1}))


def largest_micro_batch(training: Training, *, sequence: int, usable_bytes: float) -> int:
    """The largest micro-batch whose fullest stage fits in usable_bytes; 0 where not even one sequence does.

    Assumes:  what rank_memory assumes: leave a reserve for what it does not count
    """
    checks.positive(usable_bytes=usable_bytes)
    return largest_that_fits(
        lambda micro_batch: (
            largest_rank_memory(training, micro_batch=micro_batch, sequence=sequence).total_bytes <= usable_bytes
        )
    )


def largest_sequence(training: Training, *, micro_batch: int, usable_bytes: float) -> int:
    """The longest sequence, in tokens, whose fullest stage fits in usable_bytes; 0 where none does. With
    sequence_parallel a multiple of tp, with context parallelism of twice its ranks.

    Assumes:  what rank_memory assumes; says nothing about whether the model was made for that many positions
    """
    checks.positive(usable_bytes=usable_bytes)
    step = (training.tp if training.sequence_parallel else 1) * (2 * training.cp if training.cp > 1 else 1)
    return step * largest_that_fits(
        lambda steps: (
            largest_rank_memory(training, micro_batch=micro_batch, sequence=steps * step).total_bytes <= usable_bytes
        )
    )


def largest_that_fits(fits: Callable[[int], bool]) -> int:
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
