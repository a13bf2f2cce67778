"""`threeloops step`: where the time of one training step goes under a layout, cause by cause."""

import argparse
from dataclasses import asdict

from threeloops import checks, units
from threeloops.commands.cluster import RULES, SOURCES, Asked, asked, throughput_lines
from threeloops.commands.expected import BESIDE, EXPECTS, beside, carried_over, expected_of
from threeloops.commands.training_flags import DEGREES
from threeloops.commands.working import Line, Working, plain
from threeloops.training_loop.parallelism import planner
from threeloops.training_loop.parallelism.expected_step import ExpectedStep
from threeloops.training_loop.parallelism.group_traffic import group_traffic
from threeloops.training_loop.parallelism.layout_rules import refusal
from threeloops.training_loop.parallelism.layout_step import hiding_s, pass_times, shape_rates
from threeloops.training_loop.parallelism.layouts import Layout, last_layers, stage_layers
from threeloops.training_loop.parallelism.planner import Planned

# How many passes for gradients of weights a schedule takes out of each micro-batch of its bubble.
FILLED = {"gpipe": 0, "1f1b": 0, "interleaved": 0, "zb-h1": 2, "zb-h2": 3, "zb-interleaved": 2}


def from_flags(given: argparse.Namespace) -> Working:
    """The account that the flags ask for."""
    checks.one_of(FILLED, schedule=given.schedule)
    layout = Layout(
        **{degree: getattr(given, degree) for degree in DEGREES},
        micro_batch=given.micro_batch,
        zero_stage=given.zero,
        recompute=given.recompute,
        schedule=given.schedule,
        chunks=given.chunks,
    )
    wanted = asked(given, num_gpus=layout.num_gpus)
    broken = refusal(layout, job=wanted.job, cluster=wanted.cluster, rules=RULES)
    if broken:
        raise ValueError(broken.sentence)
    return working(wanted, planner.planned(layout, job=wanted.job, cluster=wanted.cluster))


def working(wanted: Asked, plan: Planned) -> Working:
    """The step of a legal layout, whether it fits or not."""
    layout, step = plan.layout, plan.step
    expected = expected_of(wanted, layout)
    total = Line(
        name="step",
        formula="sum",
        numbers=" + ".join(plain(seconds) for seconds in step.parts.values() if seconds),
        value=step.total_s,
        unit="s",
    )
    told = sorted(step.time.shares.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{units.fmt_percent(share)} {cause}" for cause, share in told if share)
    over = plan.memory_bytes - plan.usable_bytes
    fits = (
        f" It fits: {units.fmt_bytes(-over, base=2)} are left on the fullest GPU."
        if plan.fits
        else f" As if it fitted: the fullest GPU needs {units.fmt_bytes(over, base=2)} more than it has."
    )
    return Working(
        title=f"One step of {wanted.job.model.name}, {layout}",
        inputs=wanted.inputs,
        table=(("cause", "at best rates", "share", "expected"), *_rows(plan, expected)),
        lines=(*_lines(wanted, plan), total, *_expected_lines(expected), *throughput_lines(wanted, plan)),
        conclusion=(
            f"{units.fmt_seconds(step.total_s)} a step: {shares}.{_expected_words(step.total_s, expected)}{fits}"
        ),
        assumes=(
            "every kernel runs at the best rate of its shape, nobody is late, nothing fails: a run takes longer",
            "a backward pass costs two forward passes; the slowest stage sets the pace",
            "tensor, context and expert exchanges are waited for; the exchange of replicas runs beside the computing",
            "MFU counts attention as a causal mask leaves it",
            EXPECTS,
            *carried_over(expected),
        ),
        sources=SOURCES,
        data={
            "layout": asdict(layout),
            "parts_s": step.parts,
            "hidden_exchange_s": step.hidden_data_s,
            "expected_parts_s": expected.parts if isinstance(expected, ExpectedStep) else None,
            "memory_bytes": plan.memory_bytes,
            "usable_bytes": plan.usable_bytes,
            "fits": plan.fits,
        },
    )


def _rows(plan: Planned, expected: ExpectedStep | str) -> list[tuple[str, ...]]:
    """Every cause that takes time, with what is expected of it, and what is hidden behind the computing."""
    step, known = plan.step, expected if isinstance(expected, ExpectedStep) else None
    rows: list[tuple[str, ...]] = []
    for cause, seconds in step.parts.items():
        told = beside(known, cause) if known else 0.0
        if seconds or told:
            share = units.fmt_percent(seconds / step.total_s)
            rows.append((cause, units.fmt_seconds(seconds), share, units.fmt_seconds(told) if known else "not said"))
        if known:
            rows += [
                (f"  {one}", "", "", units.fmt_seconds(known.parts[one]))
                for one in BESIDE.get(cause, ())
                if known.parts[one] and one != cause
            ]
    if step.hidden_data_s:
        rows.append(("hidden behind them: exchange of replicas", units.fmt_seconds(step.hidden_data_s), "", ""))
    return rows


def _expected_lines(expected: ExpectedStep | str) -> list[Line]:
    if isinstance(expected, str):
        return []
    numbers = " + ".join(plain(seconds) for seconds in expected.parts.values() if seconds)
    return [_line("expected step", "sum by measured kernels", numbers, expected.total_s)]


def _expected_words(step_s: float, expected: ExpectedStep | str) -> str:
    if isinstance(expected, str):
        return f" {expected[0].upper()}{expected[1:]}."
    more = expected.total_s / step_s - 1
    return f" Expected, by measured kernels: {units.fmt_seconds(expected.total_s)} ({more:+.0%})."


def _lines(wanted: Asked, plan: Planned) -> list[Line]:
    """How each cause comes about."""
    layout, step, job = plan.layout, plan.step, wanted.job
    m = step.micro_batches
    forward_s, again_s = step.forward_backward_s / (3 * m), step.recompute_s / m
    waited = {
        "tensor-parallel exchanges": step.tensor_s,
        "context-parallel exchanges": step.context_s,
        "expert exchanges": step.expert_s,
        "hops between stages": step.pipeline_s,
    }
    lines = [
        _line(
            "micro-batches",
            "batch / (dp × micro-batch)",
            f"{job.global_batch} / ({layout.dp} × {layout.micro_batch})",
            m,
            unit="",
        ),
        _forward_line(wanted, layout, forward_s),
        _line(
            "forward and backward passes",
            "micro-batches × 3 × forward pass",
            f"{m} × 3 × {plain(forward_s)}",
            step.forward_backward_s,
        ),
        _line(
            "recomputation",
            "micro-batches × what is computed again",
            f"{m} × {plain(again_s)}",
            step.recompute_s,
        ),
    ]
    lines += [
        _line(cause, "micro-batches × what one waits for", f"{m} × {plain(seconds / m)}", seconds)
        for cause, seconds in waited.items()
    ]
    rate = wanted.cluster.memory_bytes_per_s
    lines += [
        _bubble_line(plan, forward_s),
        _exchange_line(wanted, plan, forward_s, again_s),
        _line(
            "optimiser",
            "bytes of its share, read and written / memory bandwidth",
            f"{plain(step.optimiser_s * rate)} / {plain(rate)}",
            step.optimiser_s,
        ),
    ]
    return [line for line in lines if line.value]


def _line(name: str, formula: str, numbers: str, value: float, unit: str = "s") -> Line:
    return Line(name=name, formula=formula, numbers=numbers, value=value, unit=unit)


def _forward_line(wanted: Asked, layout: Layout, forward_s: float) -> Line:
    job = wanted.job
    once = pass_times(job=job, cluster=wanted.cluster, tp=layout.tp, cp=layout.cp, rates=shape_rates(layout, job=job))
    most = stage_layers(layout, job=job)
    last = last_layers(layout, job=job)
    layer, head = plain(once.layer_s), plain(once.head_s)
    return _line(
        "forward pass of one micro-batch on the slowest stage",
        "sequences × max of (most layers × layer) and (last stage's layers × layer + head)",
        f"{layout.micro_batch} × max({most} × {layer}, {last} × {layer} + {head})",
        forward_s,
    )


def _bubble_line(plan: Planned, forward_s: float) -> Line:
    layout, step = plan.layout, plan.step
    each = (step.compute_s + step.tensor_s + step.context_s + step.expert_s) / step.micro_batches
    filled = FILLED[layout.schedule]
    less = f" - {filled} × weight gradients" if filled else ""
    return _line(
        "pipeline bubble",
        f"(pp - 1) × (one micro-batch{less}) / chunks",
        f"({layout.pp} - 1) × ({plain(each)} - {filled} × {plain(forward_s)}) / {layout.chunks}",
        step.bubble_s,
    )


def _exchange_line(wanted: Asked, plan: Planned, forward_s: float, again_s: float) -> Line:
    layout, job = plan.layout, wanted.job
    sent = group_traffic(layout, job=job, cluster=wanted.cluster, num_layers=stage_layers(layout, job=job))
    gradients, weights = hiding_s(
        layout, micro_batches=plan.step.micro_batches, forward_s=forward_s, backward_s=2 * forward_s + again_s
    )
    return _line(
        "exchange of gradients and weights",
        "what sticks out from behind the computing: of gradients, and of weights",
        f"max(0, {plain(sent.gradients_s)} - {plain(gradients)}) + max(0, {plain(sent.weights_s)} - {plain(weights)})",
        plan.step.data_s,
    )
