"""Transient weights: neither states nor activations. What ZeRO stage 3 gathers from its shards, and the 16-bit copies that autocast makes.

Source: Rajbhandari et al., 2020, arXiv:1910.02054, section 5.3 (gathering); PyTorch documentation, Automatic Mixed Precision package (casts)
"""

from math import ceil

from threeloops import checks
from threeloops.memory import ParameterBuckets, rank_buckets
from threeloops.parameter_buckets import layer_buckets
from threeloops.training_setup import Training


def gathered_bytes(training: Training, *, with_head: bool) -> int:
    """Whole weights that one rank has beside its shards at zero_stage 3; 0 at other stages.

    Formula:  gathered_layers * largest layer; with_head: head + (gathered_layers - 1) * largest layer
    Assumes:  layers and head are gathered one after another: while the head runs, it takes the place of one layer
    Raises:   ValueError at zero_stage 3 if gathered_layers is not stated
    """
    if training.zero_stage < 3:
        return 0
    if training.gathered_layers is None:
        raise ValueError("gathered_layers must be stated at zero_stage=3: 1 whole layer at a time, or 2 where the next is gathered ahead")
    checks.count(gathered_layers=training.gathered_layers)
    layer = max(_weights_bytes(_held(kind, training), training) for kind in _kinds(training))
    head = _weights_bytes(_held(_head(training), training), training) if with_head else layer
    return ceil(head + (training.gathered_layers - 1) * layer)


def stage_copies_bytes(training: Training, *, num_layers: int, in_flight: float) -> int:
    """Autocast's 16-bit copies of one stage's hidden matrices when its forward passes have run; 0 for recipes without autocast.

    Formula:  element_bytes * matrices of the stage * in_flight; with recompute "full" once, whatever is in flight
    Assumes:  autocast is entered once per micro-batch. A product with a 16-bit copy saves the copy for its backward pass. Under full recompute nothing is
              saved, but autocast caches the copies until its block ends; ZeRO shards the weights, not what autocast makes of them
    """
    counts = (count for _, count in training.model.groups)
    mean_bytes = sum(copies * count for copies, count in zip(_copies_of_kinds(training), counts, strict=True)) / training.model.num_layers
    return ceil((1 if training.recompute == "full" else in_flight) * num_layers * mean_bytes)


def layer_copies_bytes(training: Training) -> int:
    """Autocast's copies of the largest layer: what recomputing one layer makes again."""
    return ceil(max(_copies_of_kinds(training)))


def head_copies_bytes(training: Training) -> int:
    """Autocast's copy of the output head, tied or not; looking tokens up makes none."""
    return ceil(training.element_bytes * _held(_head(training), training).total) if training.used_recipe.autocast else 0


def _kinds(training: Training) -> list[ParameterBuckets]:
    return [layer_buckets(layer, hidden=training.model.hidden) for layer, _ in training.model.groups]


def _head(training: Training) -> ParameterBuckets:
    return ParameterBuckets(split_others=training.vocab * training.model.hidden)


def _held(buckets: ParameterBuckets, training: Training) -> ParameterBuckets:
    return rank_buckets(buckets, tp=training.tp, pp=1, ep=training.ep, expert_tp=training.expert_tp)


def _weights_bytes(held: ParameterBuckets, training: Training) -> float:
    recipe = training.used_recipe
    return held.matrices * recipe.hidden_matrices.weight_bytes + (held.total - held.matrices) * recipe.others.weight_bytes


def _copies_of_kinds(training: Training) -> list[float]:
    if not training.used_recipe.autocast:
        return [0.0 for _ in training.model.groups]
    return [training.element_bytes * _held(kind, training).matrices for kind in _kinds(training)]
