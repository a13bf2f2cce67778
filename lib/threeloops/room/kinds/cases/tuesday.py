"""A case of finding out: a job that ran well on Monday and lost a third of its speed on Tuesday."""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown, value_of
from threeloops.units import GB, fmt_bytes, fmt_percent, fmt_seconds, fmt_si, ms

LOST = (0.24, 0.38)  # of the tokens per second: what the story calls a third


def _draw_tuesday(rng: random.Random) -> Draw:
    """Drawn until the broken cable costs about what the story says."""
    return wanted(lambda: _draw_job(rng), lambda p: LOST[0] < _lost(p) < LOST[1])


def _draw_job(rng: random.Random) -> Draw:
    nodes = rng.choice((6, 10, 12, 20))
    p = drawn(
        inside=catalogued.part("nvlink-4")["bytes_per_s_one_way"],
        between=catalogued.part("infiniband-ndr")["bytes_per_s_one_way"],
        gpu="H100",
        card=catalogued.part("infiniband-ndr").name,
        per_node=8,
        nodes=nodes,
        size=rng.choice((14, 16, 28, 32)) * GB,
        broken=rng.choice((2, 4)),
        buckets=rng.choice((5, 6, 8)),
        forward_ms=rng.choice((60, 80, 110, 160, 220)),
        update_ms=rng.choice((15, 25, 40, 90)),
        ranks=8 * nodes,
        every=rng.choice((60, 150, 250)),
        stall_s=rng.choice((0.4, 0.7, 1.1)),
        loader=DRILLS["profiling-loader-fixed"].draw(rng),
    )
    p.backward_ms = 2 * p.forward_ms
    p.well_ms, p.ill_ms = (round(value_of("two-level-all-reduce", q) / p.buckets / ms) for q in (p, _broken(p)))
    return p


def _broken(p: Draw) -> Draw:
    return changed(p, between=p.between / p.broken)


def _step(p: Draw) -> Draw:
    return changed(p, bucket_ms=p.ill_ms)


def _lost(p: Draw) -> float:
    """The share of the tokens per second that the cable costs."""
    well = value_of("step-overlapped-buckets", changed(p, bucket_ms=p.well_ms))
    return 1 - well / value_of("step-overlapped-buckets", _step(p))


def _step_words(p: Draw) -> str:
    return (
        f"{p.forward_ms} ms forward, {p.backward_ms} ms backward, {p.update_ms} ms for the update; gradients leave in"
        f" {p.buckets} equal buckets that become complete at equal distances in the backward pass, the last at its end,"
        " one at a time"
    )


def _stalls(p: Draw) -> Draw:
    step_s = round(value_of("step-overlapped-buckets", changed(p, bucket_ms=p.well_ms)), 2)
    return drawn(ranks=p.ranks, every=p.every, step_s=step_s, stall_s=p.stall_s)


TUESDAY = Case(
    key="case-slow-tuesday",
    title="Why did throughput drop on Tuesday",
    loop="training",
    section="Network and cluster",
    draw=_draw_tuesday,
    requirements=requirements(
        lambda p: (
            f"The job on {p.ranks} GPUs makes {fmt_percent(_lost(p))} fewer tokens per second since Tuesday. Why?"
        ),
        (
            "since when exactly, at once or slowly, and on this job alone or on others too",
            lambda p: "at once, with the restart on Tuesday morning; the other jobs are as they were",
        ),
        (
            "what changed: code, image, data, driver, nodes, the number of GPUs",
            lambda p: "the same code and image; after a failure the scheduler gave the job other nodes",
        ),
        (
            "whether every step is slower or a few are very slow: the distribution and not the mean",
            lambda p: "every step, by the same amount",
        ),
        (
            "step time per rank and per phase: loading, forward, backward, exchange, update",
            lambda p: f"{_step_words(p)}; all ranks wait at the end of the backward pass",
        ),
        (
            "what the hardware says: clocks, temperatures, ECC, link speeds and error counters",
            lambda p: (
                f"clocks as always; one {p.card} came up at a {'half' if p.broken == 2 else 'quarter'} of its rate"
            ),
        ),
        (
            "what one can compare with: a trace from Monday, a bandwidth test kept from the acceptance",
            lambda p: "a trace from Monday, and all_reduce_perf from the day the nodes were taken over",
        ),
    ),
    estimates=(
        Step(drill="two-level-all-reduce", numbers=lambda p: p),
        Step(
            drill="two-level-all-reduce",
            numbers=_broken,
            text=lambda p: (
                f"The same with one cable that came up at {fmt_si(_broken(p).between, 'B/s')} instead of"
                f" {fmt_si(p.between, 'B/s')}: a ring is as fast as its slowest link, so take all of them as that slow."
                f" ({p.nodes} nodes of 8, {fmt_bytes(p.size, base=10)} per GPU, {fmt_si(p.inside, 'B/s')} inside the"
                " nodes, one way, three phases one after another: reduce-scatter inside, ring between, all-gather"
                " inside.) How long does it take?"
            ),
        ),
        Step(
            drill="step-overlapped-buckets",
            numbers=_step,
            text=lambda p: (
                f"A step on Tuesday: {_step_words(p)}. Each bucket's all-reduce takes {p.ill_ms} ms (on Monday"
                f" {p.well_ms} ms). The update needs all of them. How long is the step?"
            ),
        ),
    ),
    design=design(
        lambda p: "Say how you find out, from the first look to the repair, so that a colleague could do it at night.",
        (
            "first the whole: which phase grew, from two traces beside each other, before any theory",
            "waiting is not the illness: all ranks wait for one; look for the rank that waits least",
            "a test that divides the nodes: bandwidth per pair or per rail, halves swapped until one is left",
            "each theory with the size it predicts, and that size against what was lost",
            "stop the loss first (take the node out, restart), repair afterwards",
            "what will find it in minutes next time: a test before each start, an alarm on link rates",
        ),
        lambda p: (
            f"On Monday the all-reduce took {shown('two-level-all-reduce', p)}, in {p.buckets} buckets of {p.well_ms}"
            f" ms that hid behind {p.backward_ms} ms of backward pass; a step took"
            f" {shown('step-overlapped-buckets', changed(p, bucket_ms=p.well_ms))}. With one cable at"
            f" {fmt_si(_broken(p).between, 'B/s')} every ring through it takes"
            f" {shown('two-level-all-reduce', _broken(p))} and a step {shown('step-overlapped-buckets', _step(p))}:"
            f" {fmt_percent(_lost(p))} fewer tokens per second, which is what was lost, so no second cause is needed."
            " The rank that waits least in the all-reduce sits behind that cable; all_reduce_perf over pairs of nodes"
            " confirms it. Take the node out, restart, change the cable, and test link rates before each start from"
            " now on."
        ),
    ),
    trade_off=Best(
        drill="step-overlapped-buckets",
        now=_step,
        text=lambda p: (
            f"No spare node is free until Friday. A step: {_step_words(p)}, {p.ill_ms} ms each. Which single change"
            " shortens it most?"
        ),
        changes=(
            Change(
                key="cable",
                text=lambda p: f"a technician at once, and the old cable's rate: {p.well_ms} ms a bucket",
                numbers=lambda p: changed(p, bucket_ms=p.well_ms),
            ),
            Change(
                key="narrow",
                text=lambda p: f"gradients exchanged in half the bytes: {p.ill_ms / 2:g} ms a bucket",
                numbers=lambda p: changed(p, bucket_ms=p.ill_ms / 2),
            ),
            Change(
                key="update",
                text=lambda p: f"a fused optimiser: {p.update_ms / 3:.0f} ms for the update",
                numbers=lambda p: changed(_step(p), update_ms=p.update_ms / 3),
            ),
        ),
    ),
    price=(
        "narrow gradients change the sums: do not change them in the middle of a run to get round a cable",
        "a repair that hides the cause leaves it to the next job",
        "a technician at night costs about what an hour of so many GPUs costs: say both figures",
    ),
    follow_ups=(
        Step(
            drill="failure-rare-stalls",
            numbers=_stalls,
            text=lambda p: (
                f"On Thursday the cable is new, and another job of {p.ranks} synchronous ranks is slow: steps take"
                f" {fmt_seconds(_stalls(p).step_s)}, but now and then a rank stalls for {fmt_seconds(p.stall_s)}, one"
                f" step in {p.every:,}, each rank by itself and independently. How long does a step take on average?"
            ),
        ),
        Step(drill="profiling-loader-fixed", numbers=lambda p: p.loader),
    ),
)
