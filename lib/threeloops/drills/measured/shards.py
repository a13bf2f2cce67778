"""A drill on what a published run with parameters in shards had to send."""

import functools
import random
from typing import TYPE_CHECKING

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions, giga
from threeloops.drills.measured.layouts import micro_batches_of
from threeloops.drills.measured.rows import gpu_name, printed_steps
from threeloops.drills.measured.steps import cited, multiplied, named
from threeloops.simulate.training_loop.zero_ranks import play
from threeloops.training_loop.network.traffic import data_parallel_traffic
from threeloops.units import BITS_PER_BYTE, fmt_si

if TYPE_CHECKING:
    from threeloops.training_loop.parallelism.published_steps import PublishedStep

SHARDS = Taught("training", "ZeRO and FSDP")

SOURCE_ZERO = "Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 7"

# --- what shards send ------------------------------------------------------------------------------


NETWORKS = ("infiniband-hdr", "infiniband-ndr", "infiniband-xdr")  # a card for each GPU


@functools.cache
def _sharded() -> "tuple[PublishedStep, ...]":
    """Between nodes, with all parameters in shards."""
    return tuple(
        row
        for row in printed_steps()
        if row.layout.zero_stage == 3
        and row.layout.dp == row.cluster.num_gpus > row.cluster.domain_gpus
        and micro_batches_of(row)
    )


def _draw_sent(rng: random.Random) -> Draw:
    row = rng.choice(_sharded())
    return drawn(
        publisher=row.publisher,
        model=named(row),
        parameters=multiplied(row.model),
        gpu=gpu_name(row.part),
        gpus=row.cluster.num_gpus,
        batch=row.job.global_batch,
        micro_batch=row.layout.micro_batch,
        network=catalogued.part(rng.choice(NETWORKS))["bytes_per_s_one_way"],
        step_s=float(f"{row.measured_s:.4g}"),
        row=cited(row),
    )


def _small_sent(rng: random.Random) -> Draw:
    gpus = rng.choice((3, 4, 5))
    micro_batch = rng.choice((2, 3))
    return drawn(
        parameters=rng.randrange(100, 400),
        gpus=gpus,
        micro_batch=micro_batch,
        batch=gpus * micro_batch * rng.choice((1, 2, 3)),
        network=rng.randrange(30, 60),
        row="drawn in 2026",
    )


def _sent_s(p: Draw) -> float:
    sent = data_parallel_traffic(
        zero_stage=3,
        num_parameters=p.parameters,
        dp=p.gpus,
        bytes_per_gradient=2,
        bytes_per_parameter=2,
        micro_batches=p.batch // (p.gpus * p.micro_batch),
    )
    return float(sent.total_bytes / p.network)


def _derive_sent(p: Draw) -> Derivation:
    rounds, once = f"{p.batch} / ({p.gpus} × {p.micro_batch})", f"({p.gpus} − 1) / {p.gpus} × {p.parameters!r}"
    return Derivation(
        value=_sent_s(p),
        formula=(
            "micro-batches × 3 × 2 bytes × (n − 1)/n × weights / rate, with micro-batches = batch / (GPUs ×"
            " micro-batch)"
        ),
        substitution=f"{rounds} × 3 × 2 × {once} / ({giga(BITS_PER_BYTE * p.network)} / {BITS_PER_BYTE})",
        source=f"{SOURCE_ZERO}; {p.row}",
    )


def _count_sent(p: Draw) -> float:
    """Ranks that hold shards, played through one micro-batch after another."""
    sent = 0.0
    for _ in range(0, p.batch, p.gpus * p.micro_batch):
        sent += 2 * p.parameters * play(stage=3, ranks=p.gpus, layers=2 * p.gpus).sent_models
    return float(sent / p.network)


SENT = Drill(
    key="measured-shards-on-the-wire",
    taught=SHARDS,
    title="What a published run had to send",
    unit="s",
    target_s=130,
    draw=_draw_sent,
    small=_small_sent,
    prompt=lambda p: (
        f"{p.publisher} trained {p.model} ({billions(p.parameters)} weights) with FSDP on {p.gpus} GPUs ({p.gpu}): all"
        " parameters in shards over all GPUs, gathered for the forward pass and again for the backward pass,"
        f" gradients reduce-scattered, all in 2 bytes and for each micro-batch of {p.micro_batch} sequences. A step"
        f" over {p.batch:,} sequences took {p.step_s:.4g} s. Suppose that each GPU sends through a card of"
        f" {fmt_si(BITS_PER_BYTE * p.network, 'bit/s')}, one way. For how many seconds of a step does a GPU send at"
        " least?"
    ),
    derive=_derive_sent,
    count=_count_sent,
    wanted=lambda p: _sent_s(p) < p.step_s,
    slips=(
        Slip("gathered-once", lambda p: _sent_s(p) * 2 / 3)
        | "You gathered the parameters once. They are dropped after the forward pass, and needed again.",
        Slip("gradients-alone", lambda p: _sent_s(p) / 3)
        | "You sent the gradients alone. With shards, parameters travel too.",
        Slip("bits-for-bytes", lambda p: _sent_s(p) / BITS_PER_BYTE) | "You took bits per second for bytes per second.",
        Slip("both-directions", lambda p: _sent_s(p) / 2)
        | "You let the card send at twice its rate. Each direction has the rate that is printed.",
    ),
)

DRILLS = (SENT,)
