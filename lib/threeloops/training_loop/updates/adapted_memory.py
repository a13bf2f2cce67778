"""Adapted memory: what one GPU holds at its worst moment while it trains adapters beside frozen weights: LoRA, QLoRA,
DoRA.

>>> from threeloops.models.catalogue import model
>>> from threeloops.training_loop.updates.adapters import ATTENTION, MLP
>>> tuning = AdapterTraining(
...     model=model("llama-2-7b"),
...     rank=16,
...     targets=ATTENTION + MLP,
...     base="nf4",
...     recipe="autocast",
...     bytes_per_element=2,
...     kernels="sdpa",
...     recompute="full",
... )
>>> held = adapted_memory(tuning, micro_batch=1, sequence=512)
>>> tuning.trained_parameters, held.moment, round(held.frozen_bytes / 1e9, 2), round(held.total_bytes / 1e9, 2)
(39976960, 'loss', 3.87, 4.92)

Source: Hu et al., LoRA, 2021, arXiv:2106.09685; Dettmers et al., QLoRA, 2023, arXiv:2305.14314, section 3; Liu et al.,
        DoRA, 2024, arXiv:2402.09353
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from threeloops import checks
from threeloops.models.architecture import DenseMlp, Layer, Model
from threeloops.models.parameter_buckets import ParameterBuckets, layer_buckets, stage_buckets
from threeloops.training_loop.memory.activations import (
    Activations,
    embedding_activations,
    head_activations,
    loss_gradient_bytes,
)
from threeloops.training_loop.memory.fit import largest_that_fits
from threeloops.training_loop.memory.rank_states import ModelStates, model_states
from threeloops.training_loop.updates.adapted_layers import adapted_layer, without_weight_gradients
from threeloops.training_loop.updates.adapted_setup import BASES, AdapterTraining
from threeloops.training_loop.updates.adapters import adapter_parameters
from threeloops.units import BITS_PER_BYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptedMemory:
    """Bytes on one GPU at one moment, part by part."""

    moment: str  # "forward", "loss", "backward": as in memory.fit.RankMemory
    frozen_bytes: int
    adapters: ModelStates
    embedding_bytes: int
    head_bytes: int  # forward and loss
    recomputed_bytes: int  # backward: activations of the layer that recompute brings back
    dequantised_bytes: int  # backward: the largest matrix, made 16 bits wide again to multiply by it
    weight_copies_bytes: int  # under autocast: 16-bit copies of the adapters
    gathered_bytes: int  # zero_stage 3
    # what one layer of each kind saves, and how many the model has
    layer_kinds: tuple[tuple[Activations, int], ...]

    @property
    def layer_activations_bytes(self) -> int:
        return sum(kept.total_bytes * count for kept, count in self.layer_kinds)

    @property
    def saved_rows(self) -> tuple[tuple[str, int], ...]:
        """Name and bytes of every tensor that one layer, of the kind that saves most, keeps of one micro-batch."""
        largest, _ = max(self.layer_kinds, key=lambda kind: kind[0].total_bytes)
        return largest.rows

    @property
    def total_bytes(self) -> float:
        activations = self.layer_activations_bytes + self.embedding_bytes + self.head_bytes + self.recomputed_bytes
        beside = self.dequantised_bytes + self.weight_copies_bytes + self.gathered_bytes
        return self.frozen_bytes + self.adapters.total_bytes + activations + beside


def adapted_memory(training: AdapterTraining, *, micro_batch: int, sequence: int) -> AdaptedMemory:
    """What one GPU holds at its worst moment: the largest of adapted_moments."""
    return max(
        adapted_moments(training, micro_batch=micro_batch, sequence=sequence), key=lambda memory: memory.total_bytes
    )


def frozen_bytes(training: AdapterTraining, buckets: ParameterBuckets) -> float:
    """Bytes of frozen parameters.

    Formula:  matrices of the layers * bits / 8 + the rest * bytes of an activation
    Assumes:  every matrix inside the layers is quantised, a router and experts too; scales without padding
    Source:   Dettmers et al., 2023, arXiv:2305.14314, section 3; transformers, integrations/bitsandbytes.py (linear
              layers, without the head)
    Counted:  tests.training_loop.test_adapted_memory.written_bytes
    """
    bits, _ = BASES[training.base]
    rest = buckets.total - buckets.matrices
    return buckets.matrices * bits / BITS_PER_BYTE + rest * training.bytes_per_element


def adapted_moments(
    training: AdapterTraining, *, micro_batch: int, sequence: int
) -> tuple[AdaptedMemory, AdaptedMemory, AdaptedMemory]:
    """Bytes when the loss is there, while it begins the backward pass, and when that has reached the last layer.

    Formula:  frozen weights (/ dp at zero_stage 3, beside gathered_layers whole layers and the tables) + the recipe's
              bytes of each trained parameter + layers * what an adapted layer keeps; forward: + final norm and
              log-probabilities; loss: + what the loss makes of them; backward: + what recompute brings back, + the
              largest matrix dequantised; autocast adds 2 bytes of each trained parameter
    Units:    returns whole bytes, rounded up part by part
    Assumes:  training.assumes; one micro-batch at a time, no tensor, pipeline or expert parallelism; the head keeps no
              input, for its weights are frozen; magnitudes are not cast
    Source:   Dettmers et al., 2023, arXiv:2305.14314, sections 2 and 3; PEFT, tuners/lora/layer.py
    Measured: measure.training_loop.saved_tensors.saved_bytes
    """
    model, sizes = training.model, _sizes(training, micro_batch, sequence)
    stored, whole = (
        [(_layer(training, layer, sizes, recompute), count) for layer, count in model.groups]
        for recompute in (training.recompute, "none")
    )
    head, looked_up = _ends(training, sizes)
    copies = _copies(training)
    forward = AdaptedMemory(
        moment="forward",
        frozen_bytes=ceil(
            frozen_bytes(training, stage_buckets(model, stage=0, pp=1))
            / (training.dp if training.zero_stage == 3 else 1)
        ),
        adapters=model_states(
            parameters=ParameterBuckets.plain(training.trained_parameters),
            recipe=training.used_recipe,
            zero_stage=training.zero_stage,
            dp=training.dp,
            tp=1,
            pp=1,
        ),
        embedding_bytes=looked_up.total_bytes,
        head_bytes=head.total_bytes,
        recomputed_bytes=0,
        dequantised_bytes=0,
        weight_copies_bytes=copies,
        gathered_bytes=_gathered(training),
        layer_kinds=tuple(stored),
    )
    made = loss_gradient_bytes(head, cross_entropy=training.cross_entropy)
    again = max(full.total_bytes - kept.total_bytes for (full, _), (kept, _) in zip(whole, stored, strict=True))
    backward = replace(
        forward, moment="backward", head_bytes=0, recomputed_bytes=again, dequantised_bytes=_dequantised(training)
    )
    return forward, replace(forward, moment="loss", head_bytes=head.total_bytes + made), backward


def largest_adapted_micro_batch(training: AdapterTraining, *, sequence: int, usable_bytes: float) -> int:
    """The largest micro-batch that fits in usable_bytes; 0 where none does."""
    checks.positive(usable_bytes=usable_bytes)
    return largest_that_fits(
        lambda size: adapted_memory(training, micro_batch=size, sequence=sequence).total_bytes <= usable_bytes
    )


def largest_adapted_sequence(training: AdapterTraining, *, micro_batch: int, usable_bytes: float) -> int:
    """The longest sequence, in tokens, that fits in usable_bytes; 0 where none does."""
    checks.positive(usable_bytes=usable_bytes)
    return largest_that_fits(
        lambda size: adapted_memory(training, micro_batch=micro_batch, sequence=size).total_bytes <= usable_bytes
    )


def _sizes(training: AdapterTraining, micro_batch: int, sequence: int) -> dict[str, Any]:
    return {
        "hidden": training.model.hidden,
        "sequence": sequence,
        "micro_batch": micro_batch,
        "bytes_per_element": training.bytes_per_element,
    }


def _layer(training: AdapterTraining, layer: Layer, sizes: dict[str, Any], recompute: str) -> Activations:
    return adapted_layer(
        layer,
        adapters=training.adapters,
        **sizes,
        kernels=training.kernels,
        dropout=training.dropout,
        recompute=recompute,
    )


def _ends(training: AdapterTraining, sizes: dict[str, Any]) -> tuple[Activations, Activations]:
    """What final norm, head and loss keep, and what the look-up does: no token ids, for its table is frozen."""
    model = training.model
    head = head_activations(
        norm=model.groups[-1][0].norm,
        vocab=model.vocab,
        **sizes,
        kernels=training.kernels,
        cross_entropy=training.cross_entropy,
    )
    norm = model.groups[0][0].norm if model.embedding_norm else None
    looked_up = embedding_activations(**sizes, kernels=training.kernels, dropout=training.dropout, norm=norm)
    looked_up = replace(looked_up, items=tuple(item for item in looked_up.items if item.name != "token ids"))
    return without_weight_gradients(head), without_weight_gradients(looked_up)


def _copies(training: AdapterTraining) -> int:
    """Autocast's copies of both matrices of every adapter."""
    if not training.used_recipe.autocast:
        return 0
    return training.bytes_per_element * adapter_parameters(training.matrices, rank=training.rank)


def _gathered(training: AdapterTraining) -> int:
    """Whole layers and tables beside the shards at zero_stage 3, frozen weights as they are stored."""
    if training.zero_stage < 3:
        return 0
    model = training.model
    layer = max(frozen_bytes(training, layer_buckets(kind, hidden=model.hidden)) for kind, _ in model.groups)
    tables = (1 if model.tied_head else 2) * model.vocab * model.hidden * training.bytes_per_element
    return ceil(tables + (training.gathered_layers or 0) * layer)


def _dequantised(training: AdapterTraining) -> int:
    """The largest matrix of the layers as its product reads it; an expert is one matrix of its own."""
    if not training.quantised:
        return 0
    return training.bytes_per_element * max(
        _largest_matrix(layer, training.model) for layer, _ in training.model.groups
    )


def _largest_matrix(layer: Layer, model: Model) -> int:
    attention, mlp = layer.attending, layer.feeding
    wide = [attention.num_heads * attention.head_dim]
    blocks = (mlp,) if isinstance(mlp, DenseMlp) else (mlp.expert, mlp.shared)
    wide += [block.intermediate for block in blocks if block]
    return model.hidden * max(wide)
