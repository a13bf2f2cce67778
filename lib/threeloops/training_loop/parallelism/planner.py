"""Planner: every layout of a model on a cluster, what is illegal and by which rule, what does not fit, what is
fastest, and why the next one lost.

Source: Narayanan et al., 2021, arXiv:2104.04473, section 3 (the search that this replaces takeaways by); layouts,
        layout_step and memory.fit count
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import add

from threeloops.training_loop.memory.fit import (
    RankMemory,
    decisive_stages,
    largest_rank_memory,
    rank_memory,
    stage_states,
)
from threeloops.training_loop.parallelism import layout_rules, layouts
from threeloops.training_loop.parallelism.layout_rules import Rules
from threeloops.training_loop.parallelism.layout_step import LayoutStep, layout_step
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.step_time import tokens_per_gpu_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the search may choose from, besides the degrees; each list is tried whole."""

    micro_batches: tuple[int, ...]  # sizes, in sequences
    zero_stages: tuple[int, ...]
    recomputes: tuple[str, ...]
    schedules: tuple[tuple[str, int], ...]  # with chunks: ("1f1b", 1), ("interleaved", 2)
    context: tuple[int, ...]  # degrees of context parallelism
    given: Mapping[str, int] = field(default_factory=dict)  # degrees that are not searched: {"tp": 8}

    def allows(self, **degrees: int) -> bool:
        """Whether degrees are those that were given, where any was."""
        return all(self.given.get(name, degree) == degree for name, degree in degrees.items())

    @property
    def per_split(self) -> int:
        """Candidates for one choice of degrees."""
        return len(self.micro_batches) * len(self.zero_stages) * len(self.recomputes) * len(self.schedules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A legal layout with its memory and its step."""

    layout: Layout
    memory_bytes: float  # of the fullest rank
    usable_bytes: float
    step: LayoutStep
    tokens_per_gpu_s: float

    @property
    def fits(self) -> bool:
        return self.memory_bytes <= self.usable_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Candidates that one rule cut, with the first of them."""

    rule: str
    count: int
    example: Layout
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What became of every candidate."""

    considered: int
    cuts: tuple[Cut, ...]  # most first
    too_big: int
    nearest_bytes: float | None  # the least memory of those that do not fit
    fitting: tuple[Planned, ...]  # fastest first

    @property
    def legal(self) -> int:
        return self.too_big + len(self.fitting)

    @property
    def best(self) -> Planned:
        if not self.fitting:
            raise ValueError(
                f"none of {self.considered:,} candidates fits; {self.legal:,} are legal. Try ZeRO, recompute, or more"
                " GPUs"
            )
        return self.fitting[0]

    @property
    def runner_up(self) -> Planned:
        """The fastest layout that splits the model another way; equal splits with another ZeRO stage or recompute are
        variants of the best.
        """
        for other in self.fitting[1:]:
            if _degrees(other.layout) != _degrees(self.best.layout):
                return other
        raise ValueError("only one split of the model fits; there is no runner-up")


def _degrees(layout: Layout) -> tuple[int, ...]:
    return layout.dp, layout.tp, layout.pp, layout.cp, layout.ep


def planned(layout: Layout, *, job: Job, cluster: Cluster) -> Planned:
    """One legal layout, whether it fits or not."""
    return _timed(layout, job, cluster, fullest_rank(layout, job=job).total_bytes)


def fullest_rank(layout: Layout, *, job: Job) -> RankMemory:
    """What the fullest rank of a layout holds, part by part."""
    setup = layouts.training(layout, job=job, zero_stage=layout.zero_stage)
    return largest_rank_memory(setup, micro_batch=layout.micro_batch, sequence=job.sequence // layout.cp)


def _timed(layout: Layout, job: Job, cluster: Cluster, memory_bytes: float) -> Planned:
    step = layout_step(layout, job=job, cluster=cluster)
    return Planned(
        layout=layout,
        memory_bytes=memory_bytes,
        usable_bytes=cluster.usable_bytes,
        step=step,
        tokens_per_gpu_s=tokens_per_gpu_s(tokens=job.tokens, step_s=step.total_s, num_gpus=cluster.num_gpus),
    )


def search(*, job: Job, cluster: Cluster, rules: Rules, choices: Choices) -> Search:
    """Every candidate: all splits of the cluster's GPUs into tp * cp * pp * dp, all ep that divide the experts, all
    choices.

    Assumes:  what layout_step and memory.fit assume. A whole branch is cut where its first degree is illegal
              already, and where model states alone do not fit; its candidates count as considered, since each has
              been ruled out
    """
    found = _Found(job=job, cluster=cluster, rules=rules, choices=choices)
    for shape in _legal_shapes(found):
        _weigh(shape, found)
    return Search(
        considered=found.considered,
        cuts=tuple(sorted(found.cuts.values(), key=lambda cut: -cut.count)),
        too_big=found.too_big,
        nearest_bytes=found.nearest_bytes,
        fitting=tuple(sorted(found.fitting, key=lambda plan: plan.step.total_s)),
    )


@dataclass(slots=True, kw_only=True)
class _Found:
    """A search under way."""

    job: Job
    cluster: Cluster
    rules: Rules
    choices: Choices
    considered: int = 0
    too_big: int = 0
    nearest_bytes: float | None = None
    cuts: dict[str, Cut] = field(default_factory=dict)
    fitting: list[Planned] = field(default_factory=list)

    def passes(self, rule: Callable[[Layout, Job, Cluster, Rules], None], layout: Layout, candidates: int) -> bool:
        """Whether a rule lets a branch live; if not, its candidates are counted and the first one's sentence is
        kept.
        """
        try:
            rule(layout, self.job, self.cluster, self.rules)
        except ValueError as error:
            name = rule.__name__.removesuffix("_refusal")
            before = self.cuts.get(name)
            known = before or Cut(rule=name, count=0, example=layout, sentence=str(error))
            self.cuts[name] = replace(known, count=known.count + candidates)
            self.considered += candidates
            return False
        return True

    def does_not_fit(self, memory_bytes: float, candidates: int) -> None:
        self.considered += candidates
        self.too_big += candidates
        self.nearest_bytes = memory_bytes if self.nearest_bytes is None else min(self.nearest_bytes, memory_bytes)


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _legal_shapes(found: _Found) -> Iterator[Layout]:
    """Layouts that break no rule, one for each split, micro-batch and schedule; ZeRO stage and recompute are still
    open.
    """
    choices, gpus = found.choices, found.cluster.num_gpus
    experts = _divisors(found.job.experts.num_experts) if found.job.experts else [1]
    experts = [ep for ep in experts if choices.allows(ep=ep)]
    pairs = len(choices.zero_stages) * len(choices.recomputes)
    each = len(experts) * choices.per_split
    for tp in _divisors(gpus):
        pieces = [(cp, pp) for cp in choices.context if gpus // tp % cp == 0 for pp in _divisors(gpus // tp // cp)]
        splits = [(cp, pp) for cp, pp in pieces if choices.allows(tp=tp, cp=cp, pp=pp, dp=gpus // (tp * cp * pp))]
        open_layout = _blank(choices, tp=tp)
        if not splits or not found.passes(layout_rules.tensor_refusal, open_layout, len(splits) * each):
            continue
        for cp, pp in splits:
            split = replace(open_layout, cp=cp, pp=pp, dp=gpus // (tp * cp * pp))
            if not found.passes(layout_rules.context_refusal, split, each):
                continue
            dealt = [replace(split, ep=ep) for ep in experts]
            for layout in (one for one in dealt if found.passes(layout_rules.expert_refusal, one, choices.per_split)):
                for schedule, chunks in choices.schedules:
                    piece = replace(layout, schedule=schedule, chunks=chunks)
                    if not found.passes(layout_rules.pipeline_refusal, piece, pairs * len(choices.micro_batches)):
                        continue
                    shapes = [replace(piece, micro_batch=micro_batch) for micro_batch in choices.micro_batches]
                    yield from (shape for shape in shapes if found.passes(layout_rules.batch_refusal, shape, pairs))


def _blank(choices: Choices, *, tp: int) -> Layout:
    schedule, chunks = choices.schedules[0]
    return Layout(
        dp=1,
        tp=tp,
        pp=1,
        cp=1,
        ep=1,
        micro_batch=choices.micro_batches[0],
        zero_stage=choices.zero_stages[0],
        recompute=choices.recomputes[0],
        schedule=schedule,
        chunks=chunks,
    )


def _weigh(shape: Layout, found: _Found) -> None:
    """All ZeRO stages and recomputes of one shape: weighed, and timed if they fit."""
    for zero_stage in found.choices.zero_stages:
        states = _end_states(replace(shape, zero_stage=zero_stage), found.job)
        if max(states) > found.cluster.usable_bytes:
            found.does_not_fit(max(states), len(found.choices.recomputes))
            continue
        for recompute in found.choices.recomputes:
            candidate = replace(shape, zero_stage=zero_stage, recompute=recompute)
            memory_bytes = max(
                map(add, states, _besides_states(replace(candidate, zero_stage=3 * (zero_stage == 3)), found.job))
            )
            if memory_bytes > found.cluster.usable_bytes:
                found.does_not_fit(memory_bytes, 1)
                continue
            found.considered += 1
            found.fitting.append(_timed(candidate, found.job, found.cluster, memory_bytes))


def _end_states(layout: Layout, job: Job) -> tuple[float, ...]:
    """Model states of the stages of which one is the fullest."""
    setup = layouts.training(layout, job=job, zero_stage=layout.zero_stage)
    return tuple(stage_states(setup, stage=stage).total_bytes for stage in decisive_stages(setup))


# ZeRO stages of one shape come one after another, and all but stage 3 keep the same beside their states
@lru_cache(maxsize=16)
def _besides_states(layout: Layout, job: Job) -> tuple[float, ...]:
    """Everything else on the same two stages at their worst moment."""
    setup = layouts.training(layout, job=job, zero_stage=layout.zero_stage)
    sequence = job.sequence // layout.cp
    stages = (
        rank_memory(setup, stage=stage, micro_batch=layout.micro_batch, sequence=sequence)
        for stage in decisive_stages(setup)
    )
    return tuple(memory.total_bytes - memory.states.total_bytes for memory in stages)
