"""Model states: weights, gradients and optimiser state, per rank, sharded by ZeRO within tensor, pipeline and expert
parallelism.

Three kinds of parameters have three divisors. Tensor parallelism splits most matrices, but norms and routers stand
whole on every tensor rank; experts are split by their own degrees and repeated over their own, smaller, data-parallel
group. Pipeline parallelism splits all of them.

>>> states = model_states(
...     parameters=ParameterBuckets.plain(7.5e9), recipe="zero-paper", zero_stage=1, dp=64, tp=1, pp=1
... )
>>> round(states.total_bytes / 1e9, 1)
31.4

Source: Rajbhandari et al., 2019, arXiv:1910.02054, section 5 (stages); Shoeybi et al., 2019, arXiv:1909.08053 (what
        tensor parallelism splits)
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from threeloops import checks
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.training_loop.memory.recipes import Recipe, StateBytes, check_zero_stage, recipe_named


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStates:
    """Bytes of model states on one rank, and the conventions they were counted by."""

    weights_bytes: float
    gradients_bytes: float
    master_bytes: float
    gradient_copy_bytes: float
    moments_bytes: float
    recipe: str
    zero_stage: int
    dp: int
    tp: int
    pp: int
    ep: int
    expert_dp: int | None  # ranks that hold the same experts; None without experts

    @property
    def optimiser_bytes(self) -> float:
        return self.master_bytes + self.gradient_copy_bytes + self.moments_bytes

    @property
    def total_bytes(self) -> float:
        return self.weights_bytes + self.gradients_bytes + self.optimiser_bytes


def expert_data_parallel(*, dp: int, tp: int, ep: int, expert_tp: int) -> int:
    """Ranks of one pipeline stage that hold the same experts.

    Formula:  dp * tp / (ep * expert_tp)
    Assumes:  expert groups are cut out of the dp * tp ranks of a stage, as in Megatron Core
    Raises:   ValueError if ep * expert_tp does not divide dp * tp
    Counted:  drills.training_memory.experts.EXPERTS

    >>> expert_data_parallel(dp=10, tp=3, ep=5, expert_tp=1)
    6
    """
    checks.count(dp=dp, tp=tp, ep=ep, expert_tp=expert_tp)
    checks.divides(part="ep*expert_tp", part_value=ep * expert_tp, whole="dp*tp", whole_value=dp * tp)
    return dp * tp // (ep * expert_tp)


@lru_cache(maxsize=4096)
def rank_buckets(parameters: ParameterBuckets, *, tp: int, pp: int, ep: int, expert_tp: int | None) -> ParameterBuckets:
    """Parameters that one rank computes with, before ZeRO shards their states.

    Formula:  split / (tp * pp), whole / pp, experts / (ep * expert_tp * pp)
    Counted:  drills.training_memory.sharding.GRID

    >>> rank_buckets(ParameterBuckets(split_matrices=60, whole_others=6), tp=3, pp=2, ep=1, expert_tp=None).total
    13.0
    """
    checks.count(tp=tp, pp=pp, ep=ep)
    expert_ranks = ep * _stated_expert_tp(expert_tp) * pp if parameters.has_experts else 1
    return ParameterBuckets(
        split_matrices=parameters.split_matrices / (tp * pp),
        split_others=parameters.split_others / (tp * pp),
        whole_matrices=parameters.whole_matrices / pp,
        whole_others=parameters.whole_others / pp,
        expert_matrices=parameters.expert_matrices / expert_ranks,
        expert_others=parameters.expert_others / expert_ranks,
    )


def model_states(
    *,
    parameters: ParameterBuckets,
    recipe: str | Recipe,
    zero_stage: int,
    dp: int,
    tp: int,
    pp: int,
    ep: int = 1,
    expert_tp: int | None = None,
) -> ModelStates:
    """Bytes of weights, gradients and optimiser state on one rank.

    Formula:  for each bucket: parameters / ranks that split it * bytes per parameter of the recipe; then optimiser
              state / D from stage 1, gradients / D from stage 2, weights / D at stage 3. Ranks that split: tp * pp,
              pp (held whole), ep * expert_tp * pp (experts); D: dp, or dp * tp / (ep * expert_tp) for experts
    Units:    returns bytes per rank
    Assumes:  pipeline stages hold equal shares (for one real stage pass that stage's buckets and pp=1); shards
              without padding. Where context-parallel ranks share the optimiser's shards, dp counts them too.
              Frameworks refuse some crossings (DeepSpeed: stages 2 and 3 with pipelines)
    Raises:   ValueError if there are experts and expert_tp is not stated: frameworks differ (Megatron Core: tp; most
              MoE reports: 1); for a stage at which the recipe does not hold
    Source:   Rajbhandari et al., 2019, arXiv:1910.02054, section 5; Megatron Core User Guide, Distributed Optimizer
    Counted:  simulate.training_loop.sharding.stored_bytes
    Measured: tests.measure.test_measure_sharded_state.held

    >>> buckets = ParameterBuckets(split_matrices=6.0e9, split_others=0.5e9, whole_others=1e6)
    >>> states = model_states(parameters=buckets, recipe="megatron", zero_stage=1, dp=10, tp=3, pp=2)
    >>> (
    ...     round(states.weights_bytes / 1e9, 3),
    ...     round(states.gradients_bytes / 1e9, 3),
    ...     round(states.optimiser_bytes / 1e9, 3),
    ... )
    (2.168, 4.335, 1.301)
    """
    checks.count(dp=dp, tp=tp, pp=pp, ep=ep)
    if zero_stage not in (0, 1, 2, 3):
        raise ValueError(f"zero_stage={zero_stage!r} must be 0, 1, 2 or 3")
    used = recipe if isinstance(recipe, Recipe) else recipe_named(recipe)
    check_zero_stage(used, zero_stage=zero_stage)
    expert_dp = _expert_dp(parameters, dp=dp, tp=tp, ep=ep, expert_tp=expert_tp)

    held = rank_buckets(parameters, tp=tp, pp=pp, ep=ep, expert_tp=expert_tp)
    shares = [
        _Share(held.split_matrices + held.whole_matrices, used.hidden_matrices, dp),
        _Share(held.split_others + held.whole_others, used.others, dp),
    ]
    if expert_dp is not None:
        shares.append(_Share(held.expert_matrices, used.hidden_matrices, expert_dp))
        shares.append(_Share(held.expert_others, used.others, expert_dp))
    return ModelStates(
        weights_bytes=sum(share.kept(zero_stage >= 3) * share.state.weight_bytes for share in shares),
        gradients_bytes=sum(share.kept(zero_stage >= 2) * share.state.gradient_bytes for share in shares),
        master_bytes=sum(share.kept(zero_stage >= 1) * share.state.master_bytes for share in shares),
        gradient_copy_bytes=sum(share.kept(zero_stage >= 1) * share.state.gradient_copy_bytes for share in shares),
        moments_bytes=sum(share.kept(zero_stage >= 1) * share.state.moment_bytes for share in shares),
        recipe=used.name,
        zero_stage=zero_stage,
        dp=dp,
        tp=tp,
        pp=pp,
        ep=ep,
        expert_dp=expert_dp,
    )


def fewest_data_parallel_ranks(
    *, parameters: ParameterBuckets, recipe: str | Recipe, zero_stage: int, usable_bytes: float
) -> int:
    """The fewest data-parallel ranks with which the model states of each fit in usable_bytes.

    Formula:  shared / (usable_bytes - whole), rounded up; shared: the optimiser's state, from stage 2 also the
              gradients, at stage 3 also the weights; whole: the other states
    Assumes:  neither tensor, pipeline nor expert parallelism; shards without padding
    Raises:   ValueError for stage 0, which shares nothing out, or where what stays whole leaves no room
    Source:   Rajbhandari et al., 2019, arXiv:1910.02054, section 5
    Counted:  simulate.training_loop.sharding.stored_bytes

    >>> fewest_data_parallel_ranks(
    ...     parameters=ParameterBuckets.plain(20e9), recipe="megatron", zero_stage=1, usable_bytes=150e9
    ... )
    8
    """
    checks.positive(usable_bytes=usable_bytes)
    states = model_states(parameters=parameters, recipe=recipe, zero_stage=zero_stage, dp=1, tp=1, pp=1, expert_tp=1)
    if zero_stage == 0:
        raise ValueError("zero_stage=0 must be 1, 2 or 3: at stage 0 more ranks share nothing")
    shared_bytes = states.optimiser_bytes
    shared_bytes += states.gradients_bytes if zero_stage >= 2 else 0
    shared_bytes += states.weights_bytes if zero_stage >= 3 else 0
    whole_bytes = states.total_bytes - shared_bytes
    if usable_bytes <= whole_bytes:
        raise ValueError(f"usable_bytes={usable_bytes:g} must exceed the {whole_bytes:g} bytes that stay whole")
    return math.ceil(shared_bytes / (usable_bytes - whole_bytes))


def _expert_dp(parameters: ParameterBuckets, *, dp: int, tp: int, ep: int, expert_tp: int | None) -> int | None:
    if not parameters.has_experts:
        if ep > 1:
            raise ValueError(f"ep={ep} needs experts to split; a model without experts has ep=1")
        return None
    return expert_data_parallel(dp=dp, tp=tp, ep=ep, expert_tp=_stated_expert_tp(expert_tp))


def _stated_expert_tp(expert_tp: int | None) -> int:
    if expert_tp is None:
        raise ValueError(
            "expert_tp must be stated for a model with experts: 1 keeps each expert whole, tp splits it as the dense"
            " matrices are split"
        )
    return expert_tp


@dataclass(frozen=True, slots=True)
class _Share:
    """Parameters of one bucket that one rank computes with, and how many ranks compute with the same ones."""

    parameters: float
    state: StateBytes
    replicas: int

    def kept(self, sharded: bool) -> float:
        """Parameters whose state this rank stores: all of them, or its part of what the replicas would each have
        stored.
        """
        return self.parameters / self.replicas if sharded else self.parameters
