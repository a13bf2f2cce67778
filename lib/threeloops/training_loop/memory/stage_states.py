"""Stage states: what one rank of a pipeline stage keeps from step to step, and what of it waits in the host's memory.

>>> ranks = {"parameters": ParameterBuckets.plain(2851e6), "dp": 8, "tp": 1, "pp": 1}
>>> shards = model_states(recipe="deepspeed-zero-3", zero_stage=3, **ranks)
>>> [round(left_on_gpu(shards, offload=what).total_bytes / 2**30, 2) for what in OFFLOADS]
[5.97, 1.99, 0.66, 0.0]

Source: Rajbhandari et al., 2019, arXiv:1910.02054, section 5; Ren et al., ZeRO-Offload, 2021, arXiv:2101.06840
"""

from dataclasses import replace
from functools import lru_cache
from math import ceil

from threeloops import checks
from threeloops.models.architecture import Model
from threeloops.models.parameter_buckets import ParameterBuckets, buckets_sum, stage_buckets
from threeloops.training_loop.memory.rank_states import ModelStates, model_states
from threeloops.training_loop.memory.recipes import Recipe
from threeloops.training_loop.memory.setup import OFFLOADS, Training
from threeloops.training_loop.memory.task_heads import task_head_buckets


def left_on_gpu(states: ModelStates, *, offload: str) -> ModelStates:
    """Model states without those that wait in the host's memory.

    Formula:  "optimiser": master copy, gradient copy and moments are 0; "gradients": these and the gradients;
              "weights": all, so that the GPU has only what it gathers
    Assumes:  what comes and goes takes no room for longer than a layer: copies on their way are not counted
    Raises:   ValueError for another word; for "weights" below zero_stage 3, whose GPUs multiply by whole weights
    Source:   Ren et al., 2021, arXiv:2101.06840, section 4 (gradients leave as they are made); Rajbhandari et al.,
              2021, arXiv:2104.07857, section 5 (weights too); PyTorch documentation,
              torch.distributed.fsdp.CPUOffloadPolicy
    Counted:  tests.training_loop.test_sharded_mixed.PRINTED
    """
    checks.one_of(OFFLOADS, offload=offload)
    if offload == "weights" and states.zero_stage < 3:
        raise ValueError(
            f"offload='weights' needs ZeRO stage 3, which gathers a layer at a time, not zero_stage="
            f"{states.zero_stage}; try offload='gradients'"
        )
    if offload == "nothing":
        return states
    left = replace(states, master_bytes=0, gradient_copy_bytes=0, moments_bytes=0)
    if offload == "optimiser":
        return left
    return replace(left, gradients_bytes=0, weights_bytes=0 if offload == "weights" else states.weights_bytes)


def stage_states(training: Training, *, stage: int) -> ModelStates:
    """Model states of one rank of a stage, in whole bytes."""
    copies = 2 if training.schedule == "dualpipe" else 1  # DualPipe: every stage stands on two ranks of each pipeline
    held = held_buckets(training, stage=stage)
    ep = training.ep if held.has_experts else 1  # the end of a pipeline may hold nothing but a table
    return _whole_states(
        held,
        training.used_recipe,
        training.zero_stage,
        copies * training.dp * training.cp,
        training.tp,
        ep,
        training.expert_tp,
    )


@lru_cache(maxsize=4096)
def _whole_states(
    held: ParameterBuckets, recipe: Recipe, zero_stage: int, dp: int, tp: int, ep: int, expert_tp: int | None
) -> ModelStates:
    """Model states in whole bytes; the buckets are one rank's already, so that pp is 1."""
    exact = model_states(
        parameters=held, recipe=recipe, zero_stage=zero_stage, dp=dp, tp=tp, pp=1, ep=ep, expert_tp=expert_tp
    )
    parts = ("weights_bytes", "gradients_bytes", "master_bytes", "gradient_copy_bytes", "moments_bytes")
    return replace(exact, **{part: ceil(getattr(exact, part)) for part in parts})


def held_buckets(training: Training, *, stage: int) -> ParameterBuckets:
    """Parameters that the ranks of one stage hold between them, before tensor and expert parallelism cut them; under
    DualPipe those of two stages.
    """
    if training.classes is not None:
        return task_head_buckets(replace(training.model, vocab=training.vocab), classes=training.classes)
    return _held_buckets(
        training.model, training.vocab, stage, training.pp, training.schedule, training.tables_as_layers
    )


@lru_cache(maxsize=4096)
def _held_buckets(
    model: Model, vocab: int, stage: int, pp: int, schedule: str, tables_as_layers: bool
) -> ParameterBuckets:
    """Parameters of a rank's stage; DualPipe feeds both ends, so that a rank holds the stage at the same distance
    from the other end, too.
    """
    padded = replace(model, vocab=vocab)
    stages = (stage, pp - 1 - stage) if schedule == "dualpipe" else (stage,)
    return buckets_sum(*(stage_buckets(padded, stage=one, pp=pp, tables_as_layers=tables_as_layers) for one in stages))
