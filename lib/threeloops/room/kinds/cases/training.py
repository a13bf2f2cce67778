"""A case of training: a 405B on sixteen thousand GPUs. Failure rates and prices are invented; model and cards are the
catalogue's.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown, value_of
from threeloops.units import MB, billion, day, fmt_percent, fmt_seconds, hour, trillion

TP, PP = 8, 16


def _draw_large(rng: random.Random) -> Draw:
    part, gpus = catalogued.part("h100-sxm5"), rng.choice((15_360, 16_384))
    parameters = round(model_parameters(catalogued.model("llama-3-405b")).total / billion) * round(billion)
    p = drawn(
        name=catalogued.model_name("llama-3-405b"),
        part=part.name,
        peak=part.peak_flops_per_s("bf16"),
        sparse=part.sparse_peak_flops_per_s("bf16"),
        parameters=parameters,
        tokens=rng.choice((9.3e12, 12.4e12, 15.6e12)),
        gpus=gpus,
        percent=rng.choice((36, 38, 41)),
        tp=TP,
        pp=PP,
        dp=gpus // (TP * PP),
        m=rng.choice((24, 40, 56)),
        stage=rng.choice((1, 2, 3)),
        layer_bytes=rng.choice((150, 210, 260)) * MB,
        gpu_years=rng.choice((5, 6, 8)),
        save_s=rng.choice((60, 120, 240)),
        interval_s=rng.choice((1200, 2400, 3600)),
        recovery_s=rng.choice((600, 900, 1500)),
        dollars=rng.choice((2.2, 2.6, 3.1)),
        layers=catalogued.model("llama-3-405b").num_layers,
        again=rng.choice((42, 63, 84)),
        hfu=rng.choice((44, 47, 51)),
    )
    p.mtbf_s = float(f"{p.gpu_years * 365 * day / gpus / hour:.3g}") * hour  # as it is printed
    return p


def _large_stage(p: Draw) -> Draw:
    """An early stage; as many layers as divide evenly, the embedding and the head counted as one each."""
    return drawn(pp=PP, stage=p.stage, micro_batches=p.m, layers=p.layers + 2, layer_bytes=p.layer_bytes)


LARGE = Case(
    key="case-train-405b",
    title="Train a 405B on sixteen thousand GPUs",
    loop="training",
    section="Failure as routine",
    draw=_draw_large,
    requirements=requirements(
        lambda p: (
            f"You have {p.gpus:,} {p.part}. Train a dense model of {p.parameters / billion:g} billion parameters."
        ),
        (
            "how many tokens, and by when",
            lambda p: (
                f"{p.tokens / trillion:g} trillion, through {p.layers} layers ({p.layers + 2} in the pipeline, where"
                " embedding and head count as one each); the day follows from your estimate"
            ),
        ),
        (
            "how the machines are joined: which GPUs share fast links, what lies between nodes",
            lambda p: f"nodes of {TP} with NVLink, a card of 400 Gbit/s per GPU between them",
        ),
        (
            "what earlier runs of this size reached: MFU with all pauses, and not the best step",
            lambda p: f"an MFU of {p.percent} %",
        ),
        (
            "how often something fails, and how long until steps run again",
            lambda p: (
                f"a GPU every {p.gpu_years} years, so the job every {fmt_seconds(p.mtbf_s)};"
                f" {fmt_seconds(p.recovery_s)} until it works again"
            ),
        ),
        (
            "how long a save stops the job, and where it goes",
            lambda p: f"{fmt_seconds(p.save_s)}, to a parallel file system",
        ),
        ("what the run may cost, and who may stop it", lambda p: f"{p.dollars} dollars per GPU-hour; you may"),
    ),
    estimates=(
        Step(drill="step-days-of-training", numbers=lambda p: p),
        Step(drill="memory-in-flight", numbers=_large_stage),
        Step(drill="pipeline-bubble-share", numbers=lambda p: p),
        Step(drill="failure-save-interval", numbers=lambda p: p),
    ),
    design=design(
        lambda p: (
            f"Now the design: how are {p.parameters / billion:g} billion parameters laid out on {p.gpus:,} GPUs, and"
            " how does the run survive its own failures?"
        ),
        (
            "memory decides the cut: states per GPU, then activations, with what is recomputed",
            "tensor parallelism inside the node only; pipeline between nodes; data parallelism over what is left",
            "the bubble: how many micro-batches a replica has at this batch, and interleaving",
            "what is sharded over data-parallel ranks, and what is hidden behind the backward pass",
            "saves: how often, how long they stop the job, tried by really restoring one",
            "spares, health checks before the start, a timeout that finds a dead rank in minutes",
            "the loss watched as a signal too: spikes, a rank whose numbers differ",
        ),
        lambda p: (
            f"Tensor parallelism {TP} in the node, {PP} stages, {p.dp} replicas: each GPU holds"
            f" {shown('memory-zero-in-a-grid', p)} of states. With {p.m} micro-batches stage"
            f" {p.stage + 1} of the pipeline holds {shown('memory-in-flight', _large_stage(p))} of activations at its"
            " fullest, and a replica idles for"
            f" {fmt_percent(value_of('pipeline-bubble-share', p))} under plain 1F1B, so it is interleaved. At"
            f" {p.percent} % MFU the run takes {shown('step-days-of-training', p)}. Something fails every"
            f" {fmt_seconds(p.mtbf_s)}: by Young's rule one saves every {shown('failure-save-interval', p)}; with"
            f" {fmt_seconds(p.interval_s)} between saves {fmt_percent(value_of('failure-goodput', p))} of the time is"
            " kept."
        ),
    ),
    trade_off=Best(
        drill="failure-goodput",
        now=lambda p: p,
        more=True,
        text=lambda p: (
            f"The run trains {fmt_seconds(p.interval_s)}, stands still {fmt_seconds(p.save_s)} for a save, and so on."
            f" It fails every {fmt_seconds(p.mtbf_s)}, and then needs {fmt_seconds(p.recovery_s)} until it works again"
            " from the last save. Which single change keeps most of the time?"
        ),
        changes=(
            Change(
                key="shorter",
                text=lambda p: "saves that stop the job a quarter as long (to host memory first)",
                numbers=lambda p: changed(p, save_s=p.save_s / 4),
            ),
            Change(
                key="restart",
                text=lambda p: "half the time until it works again (spares that wait, a shorter timeout)",
                numbers=lambda p: changed(p, recovery_s=p.recovery_s / 2),
            ),
            Change(
                key="oftener",
                text=lambda p: "a save twice as often",
                numbers=lambda p: changed(p, interval_s=p.interval_s / 2),
            ),
        ),
    ),
    price=(
        "a copy in host memory dies with its node: it needs a partner, and the disk now and then",
        "a short timeout also kills ranks that are only slow",
        "spare nodes cost as much an hour as the others",
    ),
    follow_ups=(
        Step(
            drill="failure-dollars",
            numbers=lambda p: changed(p, days=round(value_of("step-days-of-training", p) / day)),
        ),
        Step(drill="step-mfu-from-hfu", numbers=lambda p: drawn(layers=p.layers, again=p.again, percent=p.hfu)),
    ),
)
