"""Rank activations: what a layer, the token lookup and the head of a set-up keep of one micro-batch, on one rank.

They are those of `activations`, asked with everything that the set-up has decided. fit says what a rank holds in all.
"""

from functools import lru_cache, partial

from threeloops.models.architecture import Layer
from threeloops.training_loop.memory import activations
from threeloops.training_loop.memory.activations import Activations
from threeloops.training_loop.memory.setup import Training
from threeloops.training_loop.memory.task_heads import task_head_activations


def layer_activations(
    training: Training, *, micro_batch: int, sequence: int, recompute: str
) -> tuple[tuple[Activations, int], ...]:
    """What one layer of each kind saves of one micro-batch, and how many of that kind the model has."""
    return tuple(
        (_layer(training, layer, micro_batch, sequence, recompute), count) for layer, count in training.model.groups
    )


def _layer(training: Training, layer: Layer, micro_batch: int, sequence: int, recompute: str) -> Activations:
    return _per_layer(
        layer,
        hidden=training.model.hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        bytes_per_element=training.bytes_per_element,
        kernels=training.kernels,
        dropout=training.dropout,
        tp=training.tp,
        sequence_parallel=training.sequence_parallel,
        recompute=recompute,
        expert_tp=training.expert_tp,
        autocast=training.used_recipe.autocast,
    )


# A planner asks for the same layer thousands of times, under other splits of depth and states.
_per_layer = lru_cache(maxsize=4096)(activations.per_layer)


def lookup_activations(training: Training, *, micro_batch: int, sequence: int) -> Activations:
    """What the token lookup keeps of one micro-batch."""
    return activations.embedding_activations(
        hidden=training.model.hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        bytes_per_element=training.bytes_per_element,
        kernels=training.kernels,
        dropout=training.dropout,
        tp=training.tp,
        sequence_parallel=training.sequence_parallel,
        norm=training.model.groups[0][0].norm if training.model.embedding_norm else None,
    )


def loss_activations(training: Training, *, micro_batch: int, sequence: int) -> Activations:
    """What final norm, head and loss keep of one micro-batch."""
    behind = (
        partial(activations.head_activations, vocab=training.vocab, cross_entropy=training.cross_entropy)
        if training.classes is None
        else partial(task_head_activations, classes=training.classes)
    )
    return behind(
        norm=training.model.groups[-1][0].norm,
        hidden=training.model.hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        bytes_per_element=training.bytes_per_element,
        kernels=training.kernels,
        tp=training.tp,
        sequence_parallel=training.sequence_parallel,
        autocast=training.used_recipe.autocast,
    )
