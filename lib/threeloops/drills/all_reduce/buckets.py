"""Drills on gradients in buckets: how large one must be, how much of the exchange hides, and what becomes of the
learning rate when sums are not averaged.
"""

import random

from threeloops.drills.all_reduce.ring import SOURCE_PARTS, engineering
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.training_loop.network import collectives
from threeloops.training_loop.parallelism import step_time
from threeloops.training_loop.updates import accumulation
from threeloops.units import GB, fmt_percent, fmt_seconds, fmt_si, ms, us

SOURCE_DDP = (
    "Li et al., PyTorch Distributed, VLDB 2020, arXiv:2006.15704, section 3.2 (averaged gradients, buckets, overlap)"
)
TAUGHT = Taught("training", "Data parallelism and all-reduce")

# --- the smallest bucket that is not all latency -------------------------------------------------


def _bucket(p: Draw) -> float:
    """Bytes at which the latency is that share of the ring's time: both parts are known for one byte."""
    unit = collectives.collective_time(
        op="all_reduce", algorithm="ring", size_bytes=1, ranks=p.ranks, alpha_s=p.alpha, bytes_per_s_one_way=p.rate
    )
    return float(unit.latency_s * (1 - p.share) / p.share / unit.bandwidth_s)


def _count_bucket(p: Draw) -> float:
    """A simulated ring of one element per rank, its messages made longer until the latency's share has fallen to the
    one that was asked for.
    """
    # numpy, which a reader's own drills do not need
    from threeloops.simulate.training_loop.collectives import simulated

    run = simulated(op="all_reduce", algorithm="ring", ranks=p.ranks, elements=p.ranks)
    bytes_s, all_s = (
        run.seconds(alpha_s=0, bytes_per_s_one_way=p.rate),
        run.seconds(alpha_s=p.alpha, bytes_per_s_one_way=p.rate),
    )
    short, long = 1.0, 1e6
    while long - short > 1e-12 * long:
        middle = (short + long) / 2
        short, long = (
            (middle, long) if (all_s - bytes_s) / (all_s - bytes_s + middle * bytes_s) > p.share else (short, middle)
        )
    return float(8 * p.ranks * long)


BUCKET = Drill(
    key="bucket-for-latency",
    taught=TAUGHT,
    title="The smallest bucket worth sending",
    unit="B",
    target_s=120,
    draw=lambda rng: drawn(
        ranks=rng.choice((48, 64, 96, 128, 192)),
        alpha=rng.randrange(3, 9) * us,
        rate=rng.choice((25, 50, 100)) * GB,
        share=rng.choice((0.1, 0.15, 0.2, 0.25)),
    ),
    small=lambda rng: drawn(
        ranks=rng.choice((6, 8, 9)),
        alpha=rng.choice((3.0, 4.0)),
        rate=rng.choice((5.0, 6.0)),
        share=rng.choice((0.1, 0.2)),
    ),
    prompt=lambda p: (
        f"{p.ranks} GPUs all-reduce their gradients in buckets, each by a ring. A step of the ring costs"
        f" {fmt_seconds(p.alpha)} of latency and its bytes at {fmt_si(p.rate, 'B/s')} one way. Latency shall take no"
        f" more than {fmt_percent(p.share)} of a bucket's all-reduce. How large must a bucket be, at least?"
    ),
    derive=lambda p: Derivation(
        value=_bucket(p),
        formula="n × latency × rate × (1 − f)/f, since 2 (n − 1) latency : 2 (n − 1)/n × S / rate shall be f : (1 − f)",
        substitution=f"{p.ranks} × {engineering(p.alpha)} × {engineering(p.rate)} × (1 − {p.share}) / {p.share}",
        source=SOURCE_PARTS,
    ),
    count=_count_bucket,
    prerequisites=("ring-small-message",),
    slips=(
        Slip("share-of-the-bytes", lambda p: p.ranks * p.alpha * p.rate / p.share)
        | "You made the latency that share of the bytes' time. It shall be that share of the whole, in which it"
        " is contained.",
        Slip("one-message", lambda p: p.alpha * p.rate * (1 - p.share) / p.share)
        | "That is the size of one message. A bucket is cut into as many pieces as there are GPUs.",
        Slip("whole-bucket-once", lambda p: 2 * (p.ranks - 1) * p.alpha * p.rate * (1 - p.share) / p.share)
        | "You counted the latency of every step, but let the bucket cross a link once. Each GPU sends nearly"
        " twice its bytes.",
        Slip("break-even", lambda p: p.ranks * p.alpha * p.rate)
        | "At that size latency and bytes take equally long. The question asks for less latency than that.",
        Slip("upside-down", lambda p: p.ranks * p.alpha * p.rate * p.share / (1 - p.share))
        | "There the bytes have the share that was meant for the latency. Larger buckets have relatively less"
        " latency.",
    ),
)

# --- the hidden share ----------------------------------------------------------------------------


def _draw_hidden(rng: random.Random) -> Draw:
    backward = rng.randrange(300, 900, 20) * ms
    return drawn(
        forward=backward / 2,
        backward=backward,
        send=round(backward * rng.uniform(2.0, 2.6), 2),
        buckets=rng.choice((4, 5, 6)),
    )


def _hidden(p: Draw) -> float:
    step = step_time.data_parallel_step(
        forward_s=p.forward, backward_s=p.backward, send_s=p.send, buckets=p.buckets, overhead_s=0.0
    )
    return float((p.forward + p.backward + p.send - step.total_s) / p.send)


def _count_hidden(p: Draw) -> float:
    from threeloops.simulate.training_loop.overlapped_step import play  # only the count needs it

    played = play(
        forward_s=p.forward,
        slices_s=[p.backward / p.buckets] * p.buckets,
        sends_s=[p.send / p.buckets] * p.buckets,
        update_s=0.0,
    )
    return float(1 - played.device_waits_s / played.link_busy_s)


HIDDEN = Drill(
    key="hidden-share-of-exchange",
    taught=TAUGHT,
    title="How much of it hides",
    unit="",
    target_s=90,
    draw=_draw_hidden,
    small=_draw_hidden,
    prompt=lambda p: (
        f"A step has a forward pass of {fmt_seconds(p.forward)} and a backward pass of {fmt_seconds(p.backward)}."
        f" All-reducing the gradients takes {fmt_seconds(p.send)}. They leave in {p.buckets} equal buckets, which"
        " become complete at equal distances in the backward pass and go over the link one after the other. Which"
        " share of the all-reduce does the step not have to wait for?"
    ),
    derive=lambda p: Derivation(
        value=_hidden(p),
        formula=(
            "what the link does before the backward pass ends, over all that it does: backward × (1 − 1/buckets) /"
            " exchange"
        ),
        substitution=f"{p.backward:.6g} × (1 − 1/{p.buckets}) / {p.send:.6g}",
        source=SOURCE_DDP,
    ),
    count=_count_hidden,
    prerequisites=("step-overlapped-buckets",),
    slips=(
        Slip("from-the-start", lambda p: p.backward / p.send)
        | "You let the link work through the whole backward pass. It has nothing to send until the first bucket"
        " is complete.",
        Slip("last-bucket-only", lambda p: 1 - 1 / p.buckets)
        | "You took it that only the last bucket sticks out. The link is slower than the backward pass here, and"
        " a queue builds up.",
        Slip("exposed", lambda p: 1 - _hidden(p)) | "That is the share that the step does wait for.",
        Slip("one-bucket", lambda p: p.backward / p.buckets / p.send)
        | "That much is over before the first bucket leaves. What counts is what the link does after it.",
    ),
)

# --- sum, not average ----------------------------------------------------------------------------


def _draw_sum(rng: random.Random) -> Draw:
    return drawn(
        ranks=rng.choice((6, 8, 12, 16, 24)),
        micro_batches=rng.choice((3, 4, 5)),
        rate=rng.choice((0.12, 0.15, 0.18, 0.24, 0.3, 0.36, 0.45, 0.54, 0.6)),
    )


def _count_sum(p: Draw) -> float:
    """Two updates from the same made-up gradients: their mean times the rate, and their sum times what makes it the
    same.
    """
    gradients = [[1 + 0.3 * rank + 0.07 * micro for micro in range(p.micro_batches)] for rank in range(p.ranks)]
    everything = [one for rank in gradients for one in rank]
    wanted = p.rate * sum(everything) / len(everything)
    total = 0.0
    for rank in gradients:
        accumulated = 0.0
        for one in rank:
            accumulated += one
        total += accumulated
    return float(wanted / total)


SUM = Drill(
    key="sum-not-average",
    taught=TAUGHT,
    title="Summed where it should have been averaged",
    unit="",
    target_s=75,
    draw=_draw_sum,
    small=_draw_sum,
    prompt=lambda p: (
        f"A recipe trains with plain SGD at a learning rate of {p.rate:g}, on the mean loss over the global batch."
        f" The same global batch is now spread over {p.ranks} GPUs with {p.micro_batches} equal micro-batches each."
        " Every micro-batch's loss is its mean; the gradients of a GPU's micro-batches add up in place, and a"
        " hand-written all-reduce adds up those of the GPUs. Nothing is divided anywhere. Which learning rate makes"
        " the same updates as the recipe?"
    ),
    derive=lambda p: Derivation(
        value=accumulation.learning_rate_of_sums(learning_rate=p.rate, replicas=p.ranks, micro_batches=p.micro_batches),
        formula="rate / (GPUs × micro-batches), as the sum of that many means is that many times their mean",
        substitution=f"{p.rate:g} / ({p.ranks} × {p.micro_batches})",
        source=SOURCE_DDP,
    ),
    count=_count_sum,
    slips=(
        Slip("ranks-only", lambda p: p.rate / p.ranks)
        | "You put right what the all-reduce sums, and not what adds up on each GPU before it.",
        Slip("micro-batches-only", lambda p: p.rate / p.micro_batches)
        | "You put right what adds up on one GPU, and not what the all-reduce sums.",
        Slip("unchanged", lambda p: p.rate)
        | "You changed nothing. The recipe averages; here the gradient of a step is a sum of means.",
        Slip("scaled-up", lambda p: p.rate * p.ranks * p.micro_batches)
        | "You raised the rate, as one does when the batch grows. The batch is the recipe's; it is the gradient"
        " that has become larger.",
        Slip("square-root", lambda p: p.rate / (p.ranks * p.micro_batches) ** 0.5)
        | "A square root belongs to noise. This is plain arithmetic: how often is the same gradient counted?",
    ),
)

DRILLS = (BUCKET, HIDDEN, SUM)
