"""Transient weights: neither states nor activations. What ZeRO stage 3 gathers from its shards, and the 16-bit copies
that autocast makes.

Source: Rajbhandari et al., 2019, arXiv:1910.02054, section 5.3 (gathering); PyTorch documentation, Automatic Mixed
        Precision package (casts)
"""

from math import ceil

from threeloops import checks
from threeloops.models.parameter_buckets import ParameterBuckets, layer_buckets
from threeloops.training_loop.memory.rank_states import rank_buckets
from threeloops.training_loop.memory.setup import Training


def gathered_bytes(training: Training, *, first: bool, last: bool) -> int:
    """Whole weights that one rank has beside its shards at zero_stage 3; 0 at other stages. First and last say which
    end of the pipeline it stands at.

    Formula:  gathered_layers * largest layer + the embedding table (first) + the head (last; a tied one only once)
    Assumes:  every layer is a unit and the rest of the model is one more, as with FSDP2's fully_shard on each block and
              then on the model: that unit, the root, is gathered first and stays whole until its backward pass is
              through. Where tables are gathered and dropped like a layer, it is less
    Raises:   ValueError at zero_stage 3 if gathered_layers is not stated
    Source:   PyTorch documentation, torch.distributed.fsdp.fully_shard (reshard_after_forward: not for the root)
    Measured: tests.training_loop.test_training_fit.test_gathered_weights_are_those_of_torchs_blocks_and_tables
    """
    if training.zero_stage < 3:
        return 0
    if training.gathered_layers is None:
        raise ValueError(
            "gathered_layers must be stated at zero_stage=3: 1 whole layer at a time, or 2 where the next is gathered"
            " ahead"
        )
    checks.count(gathered_layers=training.gathered_layers)
    layer = max(_weights_bytes(_held(kind, training), training) for kind in _kinds(training))
    tables = _weights_bytes(_held(_head(training), training), training)
    return ceil(_tables(training, first, last) * tables + training.gathered_layers * layer)


def handed_out_bytes(training: Training, *, first: bool, last: bool) -> tuple[int, int]:
    """Whole gradients while FSDP2's mixed precision hands a layer's out, and at the end those of table and head; 0 for
    other recipes.

    Formula:  layer: parameters of the largest * (g + gradient_bytes) + g * the head's (last); end: parameters of the
              tables * (g + gradient_bytes), with g = gathered_weight_bytes: gradients are there as the backward pass
              made them, and widened to be added up
    Assumes:  units as for gathered_bytes: the head's gradient waits for the table's, and both leave when their weights
              are gone. The shard that comes out has its place among the states
    Source:   PyTorch documentation, torch.distributed.fsdp.MixedPrecisionPolicy (reduce_dtype)
    Measured: tests.training_loop.test_sharded_mixed.tracked
    """
    recipe = training.used_recipe
    narrow = recipe.gathered_weight_bytes
    if training.zero_stage < 3 or narrow is None:
        return 0, 0
    both = narrow + recipe.others.gradient_bytes
    layer, table = max(_held(kind, training).total for kind in _kinds(training)), _held(_head(training), training).total
    waits = narrow * table if last and training.classes is None else 0
    return ceil(layer * both + waits), ceil(_tables(training, first, last) * table * both)


def stage_copies_bytes(training: Training, *, num_layers: int, in_flight: float) -> int:
    """Autocast's 16-bit copies of one stage's hidden matrices when its forward passes have run; 0 for recipes without
    autocast.

    Formula:  bytes_per_element * matrices of the stage * in_flight; with recompute "full" once, whatever is in flight
    Assumes:  autocast is entered once per micro-batch. A product with a 16-bit copy saves the copy for its backward
              pass. Under full recompute nothing is saved, but autocast caches the copies until its block ends; ZeRO
              shards the weights, not what autocast makes of them
    Measured: tests.training_loop.test_training_fit.test_copies_are_as_large_as_torchs_matrices_cast
    """
    counts = (count for _, count in training.model.groups)
    mean_bytes = (
        sum(copies * count for copies, count in zip(_copies_of_kinds(training), counts, strict=True))
        / training.model.num_layers
    )
    return ceil((1 if training.recompute == "full" else in_flight) * num_layers * mean_bytes)


def layer_copies_bytes(training: Training) -> int:
    """Autocast's copies of the largest layer: what recomputing one layer makes again."""
    return ceil(max(_copies_of_kinds(training)))


def head_copies_bytes(training: Training) -> int:
    """Autocast's copy of the output head, tied or not; looking tokens up makes none."""
    if not training.used_recipe.autocast:
        return 0
    if training.classes is not None:
        return training.bytes_per_element * training.classes * training.model.hidden
    return ceil(training.bytes_per_element * _held(_head(training), training).total)


def _kinds(training: Training) -> list[ParameterBuckets]:
    return [layer_buckets(layer, hidden=training.model.hidden) for layer, _ in training.model.groups]


def _head(training: Training) -> ParameterBuckets:
    return ParameterBuckets(split_others=training.vocab * training.model.hidden)


def _held(buckets: ParameterBuckets, training: Training) -> ParameterBuckets:
    return rank_buckets(buckets, tp=training.tp, pp=1, ep=training.ep, expert_tp=training.expert_tp)


def _tables(training: Training, first: bool, last: bool) -> int:
    """Tables of the vocabulary's size that a stage has: look-up and head, or one for both; a task's head is none."""
    if training.classes is not None:
        return 1
    return 1 if first and last and training.model.tied_head else first + last


def _weights_bytes(held: ParameterBuckets, training: Training) -> float:
    recipe = training.used_recipe
    if recipe.gathered_weight_bytes is not None:
        return held.total * recipe.gathered_weight_bytes
    return (
        held.matrices * recipe.hidden_matrices.weight_bytes + (held.total - held.matrices) * recipe.others.weight_bytes
    )


def _copies_of_kinds(training: Training) -> list[float]:
    if not training.used_recipe.autocast:
        return [0.0 for _ in training.model.groups]
    return [training.bytes_per_element * _held(kind, training).matrices for kind in _kinds(training)]
