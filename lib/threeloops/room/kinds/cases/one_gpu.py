"""Two cases of one GPU: busy and yet slow, and a small model that waits for its processor. Figures of the traces are
invented; models and cards are the catalogue's.
"""

import random
from collections.abc import Callable
from typing import Any

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.kv_cache.contexts import real_shape
from threeloops.drills.roofline.intensity import dense
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown, value_of
from threeloops.units import billion, fmt_percent, fmt_seconds, fmt_si, us

# --- busy, and yet slow --------------------------------------------------------------------------


def _draw_busy(rng: random.Random) -> Draw:
    part, shape = dict[str, Any](dense("h100-sxm5")), real_shape("llama-3-8b")
    parameters = round(model_parameters(catalogued.model("llama-3-8b")).total / 1e8) * 1e8
    gpus, mfu = rng.choice((16, 32, 48)), rng.choice((0.19, 0.22, 0.25))
    return drawn(
        **part,
        name=shape["name"],
        layers=shape["layers"],
        gpus=gpus,
        parameters=parameters,
        tokens_per_s=int(round(mfu * gpus * part["peak"] / (6 * parameters), -3)),
        heads=shape["query_heads"],
        kv_heads=shape["kv_heads"],
        head_dim=shape["head_dim"],
        batch=rng.choice((2, 3)),
        tokens=rng.choice((2000, 2500, 3000)),
        bytes_per_element=2,
        # Matmuls and attention take no less than their roofs allow with these numbers; a test holds that.
        shares=(rng.choice((45, 48, 52)), rng.choice((18, 22, 28)), rng.choice((10, 14, 18))),
        quicker=(rng.choice((1.3, 1.5, 1.7)), rng.choice((2, 3, 4)), rng.choice((2, 3))),
        trace=DRILLS["profiling-idle-share"].draw(rng),
        compiled=DRILLS["overheads-compile-paid"].draw(rng),
        ceiling=DRILLS["roofline-measured-ceiling"].draw(rng),
    )


def _utilisation(p: Draw) -> float:
    """What the tool reports: the time in which any kernel ran, in percent."""
    return float(sum(p.shares))


def _elsewhere(key: str, numbers: str, said: str) -> Callable[[Draw], str]:  # another job than the case's
    return lambda p: f"{said} {DRILLS[key].prompt(getattr(p, numbers))}"


def _one_quicker(p: Draw, place: int) -> Draw:
    return drawn(shares=p.shares, factors=tuple(q if at == place else 1 for at, q in enumerate(p.quicker)))


BUSY = Case(
    key="case-low-mfu",
    title="Busy, and yet slow",
    loop="inner",
    section="Profiling",
    draw=_draw_busy,
    requirements=requirements(
        lambda p: (
            f"nvidia-smi says {_utilisation(p):.0f} % utilisation, and we are told that our training is slow. Is it?"
        ),
        (
            "what “utilisation” counts there: time with any kernel at all, not work done",
            lambda p: "the tool's own figure; FLOPs have not been counted",
        ),
        (
            "tokens per second, GPUs and parameters: with these three the MFU is known",
            lambda p: (
                f"{p.tokens_per_s:,} tokens per second, {p.gpus} GPUs, {p.parameters / billion:.1f} billion parameters"
            ),
        ),
        ("which card, which format, and its dense peak", lambda p: f"{p.part}, BF16, {fmt_si(p.peak, 'FLOP/s')} dense"),
        (
            "sequence length and micro-batch, and whether attention is fused",
            lambda p: f"{p.batch} sequences of {p.tokens:,} tokens; attention is three kernels",
        ),
        (
            "a trace of some steps after warming up, and not of the first",
            lambda p: f"matmuls {p.shares[0]} %, attention {p.shares[1]} %, norms and copies {p.shares[2]} % of a step",
        ),
        ("what was tried already, and what it gave", lambda p: "a larger batch: no gain worth a mention"),
    ),
    estimates=(
        Step(drill="roofline-mfu", numbers=lambda p: p),
        Step(drill="attention-unfused-traffic", numbers=lambda p: p),
        Step(
            drill="profiling-idle-share",
            numbers=lambda p: p.trace,
            text=_elsewhere(
                "profiling-idle-share", "trace", "For a trace of every kernel they ran a much smaller step."
            ),
        ),
    ),
    design=design(
        lambda p: "Say how you go on from here: in which order you look, and what each look may tell you.",
        (
            "what is useful over what is possible (MFU), and why a busy GPU can have a small one",
            "one step taken to pieces: matmuls, attention, small kernels, exchange, gaps, each in milliseconds",
            "for each piece its own roof: matmuls by arithmetic, norms and unfused attention by bytes",
            "the gaps: launches, reads like .item(), the loader; where the processor runs behind",
            "the largest loss first, with what it can give at most, before anybody writes a kernel",
            "one change at a time, measured over enough steps on a warm card, and the loss curve compared",
        ),
        lambda p: (
            f"The MFU is {fmt_percent(value_of('roofline-mfu', p))}: the card is busy, but not with matmuls at its"
            f" peak. Unfused attention moves {shown('attention-unfused-traffic', p)} a layer,"
            f" {fmt_seconds(value_of('attention-unfused-traffic', p) / p.memory)} at {fmt_si(p.memory, 'B/s')}, and"
            f" there are {p.layers} layers, forward alone. In the short trace the GPU runs nothing for"
            f" {fmt_percent(value_of('profiling-idle-share', p.trace))} of a step: that is the processor's part. By"
            " Amdahl's law each piece's share bounds what its repair can give, counted before anybody writes a"
            " kernel. Matmuls I hold against the best rate ever measured on this card, not against the datasheet."
        ),
    ),
    trade_off=Best(
        drill="amdahl-part-by-part",
        now=lambda p: drawn(shares=p.shares, factors=(1, 1, 1)),
        more=True,
        text=lambda p: (
            f"A step: {p.shares[0]} % matmuls, {p.shares[1]} % attention, {p.shares[2]} % norms and copies, the"
            " rest waiting; nothing overlaps. You have one week. Which makes the step fastest?"
        ),
        changes=(
            Change(
                key="products",
                text=lambda p: f"shapes and formats that make matmuls {p.quicker[0]} times as fast",
                numbers=lambda p: _one_quicker(p, 0),
            ),
            Change(
                key="attention",
                text=lambda p: f"fused attention, {p.quicker[1]} times as fast",
                numbers=lambda p: _one_quicker(p, 1),
            ),
            Change(
                key="norms",
                text=lambda p: f"a compiler that fuses norms and copies, {p.quicker[2]} times as fast",
                numbers=lambda p: _one_quicker(p, 2),
            ),
        ),
    ),
    price=(
        "fused attention and a compiler are a line each; new shapes change the model, new formats its training",
        "after the first repair the shares are others: look again before the second",
        "a compiler that compiles anew for every shape gives back what it won",
    ),
    follow_ups=(
        Step(
            drill="roofline-measured-ceiling",
            numbers=lambda p: p.ceiling,
            text=_elsewhere("roofline-measured-ceiling", "ceiling", "On another job, with figures of its own:"),
        ),
        Step(
            drill="overheads-compile-paid",
            numbers=lambda p: p.compiled,
            text=_elsewhere("overheads-compile-paid", "compiled", "A third job, with figures of its own:"),
        ),
    ),
)

# --- a small model that waits for its processor --------------------------------------------------


def _draw_small(rng: random.Random) -> Draw:
    key, card = rng.choice(("gpt2-large", "gpt2-xl")), rng.choice(("h100-sxm5", "a100-sxm4-80gb"))
    model = catalogued.model(key)
    parameters = model_parameters(model).total
    launches, spec, launch_s = rng.choice((12, 14, 17)), dict[str, Any](dense(card)), rng.choice((4, 6, 8)) * us
    reading_s = 2 * parameters / spec["memory"] / (model.num_layers * launches)  # a kernel's share of the weights
    return drawn(
        **spec,
        name=catalogued.model_name(key),
        layers=model.num_layers,
        parameters=parameters,
        billions=round(parameters / billion, 2),
        launches=launches,
        fewer=launches // 2 - 1,
        launch_s=launch_s,
        issue=rng.choice((1.4, 1.8, 3)),
        ops=launches,
        issue_s=launch_s,
        kernel_s=round(reading_s / us + rng.choice((0.6, 0.9, 1.3)), 1) * us,
        gap_s=rng.choice((0.9, 1.2, 1.5)) * us,
        recording_s=rng.choice((30, 45, 60)) * us,
        group=rng.choice((32, 64)),
        promise_ms=rng.choice((2, 3)),
        reads=DRILLS["profiling-hidden-syncs"].draw(rng),
        shapes=DRILLS["overheads-padded-shapes"].draw(rng),
    )


def _replayed(p: Draw) -> Draw:
    return changed(p, launch_s=p.recording_s)


def _floor(p: Draw) -> Draw:
    return drawn(billions=p.billions, group=p.group, bandwidth=p.memory, peak=p.peak)


SMALL = Case(
    key="case-small-model",
    title="A small model that waits for its processor",
    loop="inner",
    section="Overheads",
    draw=_draw_small,
    requirements=requirements(
        lambda p: f"{p.name} speaks for a toy, one child at a time. A token should take {p.promise_ms} ms. Does it?",
        (
            "which card, and how fast its memory is: one request reads all weights for every token",
            lambda p: f"{p.part}, {fmt_si(p.memory, 'B/s')}",
        ),
        (
            "how many kernels a layer is, and what issuing one costs",
            lambda p: f"{p.launches} kernels a layer in {p.layers} layers, {fmt_seconds(p.launch_s)} each from Python",
        ),
        (
            "whether shapes are the same in every step: only then can a step be recorded",
            lambda p: "yes in decoding; prompts come in every length",
        ),
        (
            "where values come back to the processor: sampling, a stop token, a log line",
            lambda p: "the next token is read back in every step",
        ),
        (
            "how often a late token matters, and whether the mean or a p99 is promised",
            lambda p: "p99: a stutter is heard",
        ),
    ),
    estimates=(
        Step(drill="roofline-launch-bound", numbers=lambda p: p),
        Step(drill="overheads-graph-replay", numbers=_replayed),
        Step(drill="decode-latency-floor", numbers=_floor),
    ),
    design=design(
        lambda p: (
            f"Now the design: {p.name} on one {p.part}, {p.promise_ms} ms a token. What runs, and in which order?"
        ),
        (
            "two clocks beside each other: issuing kernels and reading weights; the longer one counts",
            "which of the two it is, by measuring once with a tiny batch and once with a larger one",
            "if it is issuing: record the step as a graph, or let a compiler fuse; a graph for every shape in use",
            "if it is reading: narrow weights, or a card with a faster memory",
            "nothing that waits in the loop: sampling on the device, one read a step at most",
            "the tail: another process on the host, the collector of Python, clocks that sink",
        ),
        lambda p: (
            f"As it is, a step takes {shown('roofline-launch-bound', p)}: it issues {p.layers * p.launches:,} kernels"
            f" and reads {fmt_si(p.parameters, 'parameters')} in 16 bits; the longer counts. As a graph, kernels of"
            f" {fmt_seconds(p.kernel_s)} would go in {shown('overheads-graph-replay', _replayed(p))}. In 4 bits reading"
            f" alone would take {shown('decode-latency-floor', _floor(p))}, which no launch code can beat. So: record"
            " the decode step, sample on the device, pad prompts to a few lengths, and measure p99 with the toy's real"
            " program beside it."
        ),
    ),
    trade_off=Best(
        drill="roofline-launch-bound",
        now=lambda p: p,
        text=lambda p: (
            f"{p.name} ({fmt_si(p.parameters, 'parameters')} in 16 bits, {p.layers} layers of {p.launches} kernels)"
            f" decodes one request on an {p.part} ({fmt_si(p.memory, 'B/s')}); issuing a kernel takes"
            f" {fmt_seconds(p.launch_s)}, and the processor may run ahead. Which single change shortens a step most?"
        ),
        changes=(
            Change(
                key="fused",
                text=lambda p: f"a compiler that leaves {p.fewer} kernels a layer",
                numbers=lambda p: changed(p, launches=p.fewer),
            ),
            Change(
                key="issue",
                text=lambda p: f"a server in C++ that issues {p.issue:g} times as fast",
                numbers=lambda p: changed(p, launch_s=p.launch_s / p.issue),
            ),
            Change(
                key="weights",
                text=lambda p: "weights in 8 bits, kernels as before",
                numbers=lambda p: changed(p, parameters=p.parameters / 2),
            ),
        ),
    ),
    price=(
        "what is not the longer clock gives nothing: name the clock before the change",
        "a recorded graph holds addresses and shapes: who allocates in the step breaks it",
        "narrow weights need kernels that widen them on the chip, and an evaluation",
    ),
    follow_ups=(
        Step(drill="profiling-hidden-syncs", numbers=lambda p: p.reads),
        Step(drill="overheads-padded-shapes", numbers=lambda p: p.shapes),
    ),
)
