"""`threeloops plan`: the best layouts of a model on a cluster, what they cost, and why the others lost."""

import argparse
from dataclasses import asdict, replace

from threeloops import checks, units
from threeloops.commands.cluster import RULES, SOURCES, Asked, asked, throughput_lines
from threeloops.commands.expected import EXPECTS, carried_over, expected_of
from threeloops.commands.training_flags import DEGREES
from threeloops.commands.working import Line, Working, plain
from threeloops.training_loop.memory.recipes import recipe_named
from threeloops.training_loop.parallelism import planner
from threeloops.training_loop.parallelism.alternatives import alternatives, misses, slower
from threeloops.training_loop.parallelism.expected_step import ExpectedStep
from threeloops.training_loop.parallelism.layout_rules import refuse_unplanned
from threeloops.training_loop.parallelism.planner import Choices, Planned, Search

FEWEST_TOKENS = 4096  # of a sequence, on each rank of a context-parallel group
NOT_SAID = "-"
_SPLITS = "dp * tp * cp * pp are all of them, and ep divides the experts of a model that has any"
ASSUMES = (
    "a plan promises more than a run reaches: every kernel at the best rate of its shape, equal experts, no rank late,"
    " nothing fails; differences between layouts are worth more than their level",
    "tensor groups stay inside a node; stages may be uneven; a rank of a context group keeps"
    f" {FEWEST_TOKENS:,} tokens or more",
    "MFU counts attention as a causal mask leaves it; memory is what the fullest GPU holds, without fragments and"
    " workspaces: --share 0.9 leaves room for them",
    EXPECTS,
)


def from_flags(given: argparse.Namespace) -> Working:
    """The plan that the flags ask for."""
    checks.count(top=given.top)
    wanted = asked(given, num_gpus=given.gpus)
    refuse_unplanned(wanted.job.model)
    choices, said = _narrowed(choices_for(sequence=wanted.job.sequence, recipe=given.recipe), given)
    wanted = replace(wanted, inputs=wanted.inputs | said)
    found = planner.search(job=wanted.job, cluster=wanted.cluster, rules=RULES, choices=choices)
    if not found.considered:
        raise ValueError(f"no split of {units.counted(given.gpus, 'GPU')} has {said['given']}: {_SPLITS}")
    return _best(wanted, found, choices, given.top) if found.fitting else _nothing(wanted, found, choices)


def choices_for(*, sequence: int, recipe: str) -> Choices:
    """What is tried besides the degrees.

    >>> choices_for(sequence=16384, recipe="deepspeed").context, choices_for(sequence=1, recipe="deepspeed").zero_stages
    ((1, 2, 4), (0, 1, 2))
    """
    context = [1]
    while sequence // (2 * context[-1]) >= FEWEST_TOKENS:
        context.append(2 * context[-1])
    return Choices(
        micro_batches=(1, 2, 4, 8),
        zero_stages=recipe_named(recipe).zero_stages,
        recomputes=("none", "selective", "full"),
        schedules=(("1f1b", 1), ("interleaved", 2), ("interleaved", 4)),
        context=tuple(context),
    )


def _narrowed(choices: Choices, given: argparse.Namespace) -> tuple[Choices, dict[str, str]]:
    """The choices that what was given leaves, and what was given in words."""
    degrees = {name: getattr(given, name) for name in DEGREES if getattr(given, name) is not None}
    said = {f"--{name}": degree for name, degree in degrees.items()}
    for flag in ("micro_batch", "zero", "recompute"):
        if getattr(given, flag) is not None:
            said[f"--{flag.replace('_', '-')}"] = getattr(given, flag)
    if given.zero is not None and given.zero not in choices.zero_stages:
        stages = ", ".join(map(str, choices.zero_stages))
        raise ValueError(f"--zero {given.zero} is no stage of --recipe {given.recipe}, which has {stages}")
    if given.zero is not None:
        choices = replace(choices, zero_stages=(given.zero,))
    if given.micro_batch is not None:
        choices = replace(choices, micro_batches=(given.micro_batch,))
    if given.recompute is not None:
        choices = replace(choices, recomputes=(given.recompute,))
    context = (degrees["cp"],) if "cp" in degrees else choices.context
    words = {"given": " ".join(f"{flag} {one}" for flag, one in said.items())} if said else {}
    return replace(choices, context=context, given=degrees), words


def _best(wanted: Asked, found: Search, choices: Choices, top: int) -> Working:
    best = found.best
    shown = _one_a_split(found)[:top]
    others = alternatives(found, job=wanted.job, cluster=wanted.cluster, rules=RULES, choices=choices)
    asked_about = {**{plan.layout.split: slower(plan, best) for plan in shown[1:]}, **others}
    lost = [(what, other.sentence) for what, other in asked_about.items()]
    step = Line(
        name="step",
        formula="sum of what it spends on each cause (`threeloops step` takes it apart)",
        numbers=" + ".join(plain(seconds) for seconds in best.step.parts.values() if seconds),
        value=best.step.total_s,
        unit="s",
    )
    lines = [step, *throughput_lines(wanted, best)]
    days, money = wanted.training_s(best), wanted.dollars(best)
    whole_run = f", {units.fmt_seconds(days)} for the whole run" if days else ""
    bill = f", {units.fmt(money, 'dollar')}" if money else ""
    return Working(
        title=_title(wanted),
        inputs=wanted.inputs,
        table=(_HEAD, *(_row(plan, wanted) for plan in shown)),
        lines=tuple(lines),
        reasons=tuple(lost),
        conclusion=(
            f"Of {found.considered:,} layouts {found.legal:,} are legal and {len(found.fitting):,} fit; the fastest is"
            f" {best.layout}: {units.fmt(wanted.job.tokens / best.step.total_s, 'token/s')}{whole_run}{bill}."
        ),
        assumes=(*ASSUMES, *carried_over(expected_of(wanted, best.layout))),
        sources=SOURCES,
        data={
            "fits": True,
            "considered": found.considered,
            "legal": found.legal,
            "fitting": len(found.fitting),
            "layouts": [_data(plan, wanted) for plan in shown],
        },
    )


def _nothing(wanted: Asked, found: Search, choices: Choices) -> Working:
    """Where no layout fits, what comes nearest; where none is legal, which rules stood in the way."""
    reasons = [
        (f"{cut.count:,} layouts", f"not legal, the first of them because {cut.sentence}.") for cut in found.cuts
    ]
    if found.nearest_bytes is not None:
        missed = misses(job=wanted.job, cluster=wanted.cluster, rules=RULES, choices=choices)
        reasons = [(split, miss.sentence) for split, miss in missed.items()]
        missing = units.fmt_bytes(found.nearest_bytes - wanted.cluster.usable_bytes, base=2)
        verdict = (
            f"Nothing fits: {found.legal:,} of {found.considered:,} layouts are legal, and the leanest needs at least"
            f" {missing} more than a GPU has. Give more GPUs, larger ones, or a shorter sequence."
        )
    else:
        verdict = f"Nothing is legal: each of {found.considered:,} layouts breaks a rule. Change what they name."
    return Working(
        title=_title(wanted),
        inputs=wanted.inputs,
        lines=(),
        reasons=tuple(reasons),
        conclusion=verdict,
        assumes=ASSUMES,
        sources=SOURCES,
        data={"fits": False, "considered": found.considered, "legal": found.legal, "fitting": 0, "layouts": []},
    )


def _title(wanted: Asked) -> str:
    return f"Training {wanted.job.model.name} on {units.counted(wanted.cluster.num_gpus, 'GPU')}: {wanted.part.name}"


def _one_a_split(found: Search) -> list[Planned]:
    """The fastest layout of every split of the model, fastest first."""
    best: dict[str, Planned] = {}
    for plan in found.fitting:
        best.setdefault(plan.layout.split, plan)
    return list(best.values())


_HEAD = ("layout", "memory", "step", "expected", "tokens/s", "MFU", "training", "dollars")


def _row(plan: Planned, wanted: Asked) -> tuple[str, ...]:
    days, money = wanted.training_s(plan), wanted.dollars(plan)
    return (
        str(plan.layout),
        units.fmt_bytes(plan.memory_bytes, base=2),
        units.fmt_seconds(plan.step.total_s),
        NOT_SAID if (likely := _expected_s(plan, wanted)) is None else units.fmt_seconds(likely),
        f"{wanted.job.tokens / plan.step.total_s:,.0f}",
        units.fmt_percent(wanted.mfu(plan)),
        NOT_SAID if days is None else units.fmt_seconds(days),
        NOT_SAID if money is None else f"{money:,.0f}",
    )


def _expected_s(plan: Planned, wanted: Asked) -> float | None:
    expected = expected_of(wanted, plan.layout)
    return expected.total_s if isinstance(expected, ExpectedStep) else None


def _data(plan: Planned, wanted: Asked) -> dict[str, object]:
    return {
        **asdict(plan.layout),
        "memory_bytes": plan.memory_bytes,
        "usable_bytes": plan.usable_bytes,
        "step_s": plan.step.total_s,
        "parts_s": plan.step.parts,
        "expected_s": _expected_s(plan, wanted),
        "tokens_per_s": wanted.job.tokens / plan.step.total_s,
        "mfu": wanted.mfu(plan),
        "training_s": wanted.training_s(plan),
        "dollars": wanted.dollars(plan),
    }
