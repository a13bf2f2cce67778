"""Alternatives: the layouts next to the best one, and in one sentence each why they lost.

A neighbour differs in one decision: twice or half of one degree, every GPU a replica, less recomputed, a larger
micro-batch, another schedule. What remains open in a neighbour's split is chosen as well as it can be, so that a
sentence speaks of the split and not of a bad choice inside it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from threeloops.training_loop.parallelism.layout_reasons import telling_differences
from threeloops.training_loop.parallelism.layout_rules import Rules, refusal
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.planner import Choices, Planned, Search, fullest_rank, planned
from threeloops.units import fmt_bytes, fmt_percent, fmt_seconds

_SPLIT = ("tp", "cp", "pp", "ep")
_MANY_TIMES = 2  # from here on, times are said instead of percent
_NOTABLE = 0.05  # a bubble, or communication that is waited for, is named from this share of the step


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A neighbour of the best layout."""

    layout: Layout
    verdict: str  # "not legal", "does not fit" or "slower"
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The search that the alternatives are judged by."""

    job: Job
    cluster: Cluster
    rules: Rules
    choices: Choices


def alternatives(
    found: Search, *, job: Job, cluster: Cluster, rules: Rules, choices: Choices
) -> dict[str, Alternative]:
    """The neighbours of the best layout of a search, by what they change.

    Raises:   ValueError where nothing fits: there is no best layout then
    """
    asked, best = _Asked(job=job, cluster=cluster, rules=rules, choices=choices), found.best
    fastest: dict[str, Planned] = {}
    for plan in found.fitting:
        fastest.setdefault(plan.layout.split, plan)
    judged = {}
    for split, degrees in _splits(best.layout, asked).items():
        judged[split] = slower(fastest[split], best) if split in fastest else _leanest(degrees, asked)
    for what, layout in _variants(best.layout, choices):
        judged[what] = _judged(layout, best, asked)
    return judged


def _splits(layout: Layout, asked: _Asked) -> dict[str, dict[str, int]]:
    """The splits to ask about, each under its name: degrees without dp, which takes what is left."""
    own = {name: getattr(layout, name) for name in _SPLIT}
    every = [dict.fromkeys(_SPLIT, 1)]
    for name in _SPLIT if asked.job.experts else _SPLIT[:3]:
        every += [own | {name: 2 * own[name]}] + ([own | {name: own[name] // 2}] if own[name] % 2 == 0 else [])
    named = {}
    for degrees in every:
        each = degrees["tp"] * degrees["cp"] * degrees["pp"]
        legal_size = degrees["cp"] == 1 or degrees["cp"] in asked.choices.context
        if degrees != own and legal_size and asked.cluster.num_gpus % each == 0 and _allowed(degrees, asked):
            named[_layout(degrees, asked).split] = degrees
    return named


def _allowed(degrees: dict[str, int], asked: _Asked) -> bool:
    each = degrees["tp"] * degrees["cp"] * degrees["pp"]
    return asked.choices.allows(dp=asked.cluster.num_gpus // each, **degrees)


def _layout(degrees: dict[str, int], asked: _Asked) -> Layout:
    """A split with the leanest of all other choices."""
    each = degrees["tp"] * degrees["cp"] * degrees["pp"]
    return Layout(
        dp=asked.cluster.num_gpus // each,
        **degrees,
        micro_batch=min(asked.choices.micro_batches),
        zero_stage=max(asked.choices.zero_stages),
        recompute=asked.choices.recomputes[-1],
        schedule="1f1b",
        chunks=1,
    )


def misses(*, job: Job, cluster: Cluster, rules: Rules, choices: Choices) -> dict[str, Alternative]:
    """Where nothing fits: the plainest splits with everything that saves memory, and by how much they miss."""
    asked = _Asked(job=job, cluster=cluster, rules=rules, choices=choices)
    inside = math.gcd(cluster.num_gpus, cluster.domain_gpus)
    plain = [
        {},
        {"tp": inside},
        {"pp": cluster.num_gpus},
        {"tp": inside, "pp": cluster.num_gpus // inside},
    ]
    every = [split for degrees in plain if _allowed(split := dict.fromkeys(_SPLIT, 1) | degrees, asked)]
    return {_layout(degrees, asked).split: _leanest(degrees, asked) for degrees in every}


def _leanest(degrees: dict[str, int], asked: _Asked) -> Alternative:
    """A split of which nothing fits, by its leanest layout; where none is legal, by the rule."""
    leanest = _layout(degrees, asked)
    lean = [
        replace(leanest, zero_stage=stage, schedule=schedule, chunks=chunks)
        for stage, (schedule, chunks) in product(asked.choices.zero_stages, asked.choices.schedules)
    ]
    legal = [layout for layout in lean if not _broken(layout, asked)]
    if not legal:
        return Alternative(layout=leanest, verdict="not legal", sentence=f"not legal: {_broken(leanest, asked)}.")
    needed = {layout: fullest_rank(layout, job=asked.job).total_bytes for layout in legal}
    layout = min(needed, key=lambda one: needed[one])
    leaving = f"even with micro-batch {layout.micro_batch}, ZeRO-{layout.zero_stage}, recompute {layout.recompute}"
    return _too_big(layout, needed[layout], asked, f", {leaving}")


def _variants(layout: Layout, choices: Choices) -> Iterator[tuple[str, Layout]]:
    """The same split with one other choice, what people ask for first."""
    for recompute in choices.recomputes[: choices.recomputes.index(layout.recompute)]:
        yield f"recompute {recompute}", replace(layout, recompute=recompute)
    larger = [size for size in choices.micro_batches if size > layout.micro_batch]
    if larger:
        yield f"micro-batch {min(larger)}", replace(layout, micro_batch=min(larger))
    for stage in choices.zero_stages if layout.dp * layout.cp > 1 else ():  # one replica has nothing to share out
        if stage != layout.zero_stage:
            yield f"ZeRO-{stage}", replace(layout, zero_stage=stage)
    if layout.pp > 1:
        for schedule, chunks in choices.schedules:
            if (schedule, chunks) != (layout.schedule, layout.chunks):
                name = f"{schedule} x{chunks}" if chunks > 1 else schedule
                yield name, replace(layout, schedule=schedule, chunks=chunks)


def _judged(layout: Layout, best: Planned, asked: _Asked) -> Alternative:
    broken = _broken(layout, asked)
    if broken:
        return Alternative(layout=layout, verdict="not legal", sentence=f"not legal: {broken}.")
    plan = planned(layout, job=asked.job, cluster=asked.cluster)
    return slower(plan, best) if plan.fits else _too_big(layout, plan.memory_bytes, asked, "")


def _broken(layout: Layout, asked: _Asked) -> str:
    why = refusal(layout, job=asked.job, cluster=asked.cluster, rules=asked.rules)
    return why.sentence.split("; try ")[0] if why else ""


def _too_big(layout: Layout, needed_bytes: float, asked: _Asked, leaving: str) -> Alternative:
    missing = fmt_bytes(needed_bytes - asked.cluster.usable_bytes, base=2)
    return Alternative(layout=layout, verdict="does not fit", sentence=f"does not fit by {missing}{leaving}.")


def slower(plan: Planned, best: Planned) -> Alternative:
    """Why a layout that fits lost to the best: by how much, and to which causes; a bubble of 5 % of the step or more,
    and so much exposed communication, are named.
    """
    lost_s = plan.step.total_s - best.step.total_s
    if lost_s <= 0:
        return Alternative(layout=plan.layout, verdict="slower", sentence="exactly as fast.")
    shares, notable = plan.step.time.shares, []
    if shares["bubble"] >= _NOTABLE:
        notable.append(f"its bubble is {fmt_percent(shares['bubble'])} of the step")
    if shares["communication"] >= _NOTABLE:
        notable.append(f"{fmt_seconds(shares['communication'] * plan.step.total_s)} of communication is exposed")
    also = f"; {' and '.join(notable)}" if notable else ""
    times = plan.step.total_s / best.step.total_s
    slow = f"{times:.3g} times as long" if times >= _MANY_TIMES else f"{fmt_percent(times - 1)} longer"
    return Alternative(
        layout=plan.layout,
        verdict="slower",
        sentence=f"a step takes {slow}: {telling_differences(plan, best)}{also}.",
    )
