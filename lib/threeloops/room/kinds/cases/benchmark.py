"""A case of reading what others measured: a published throughput, and what it says of one's own plans."""

import random

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, changed
from threeloops.drills.engine.phrasing import people
from threeloops.drills.measured.rows import took
from threeloops.room.kinds.cases.case import Case, design, requirements
from threeloops.room.kinds.chains.chain import Step
from threeloops.room.kinds.chains.change import Best, Change, shown
from threeloops.room.kinds.chains.measured import caches_s, others_s, published_server, weights_s
from threeloops.units import fmt_seconds

HIT = 0.5  # of each prompt's tokens, found in a cache of prompts


def _draw_slide(rng: random.Random) -> Draw:
    p = published_server(rng)
    p.narrower = DRILLS["measured-narrower-cache"].draw(rng)
    return p


def _hit(p: Draw) -> Draw:
    """With so much of each prompt found: as much less of others' prompts in a TPOT, and of one's own before it."""
    return changed(p, ttft_s=p.ttft_s - HIT * p.light_ttft_s, tpot_s=p.tpot_s - HIT * others_s(p))


BENCHMARK = Case(
    key="case-read-a-benchmark",
    title="Read another team's benchmark",
    loop="product",
    section="Capacity and cost",
    draw=_draw_slide,
    requirements=requirements(
        lambda p: (
            f"A slide says: {p.model}, {people(p.total)} tokens per second and GPU with {p.engine}. Shall we expect"
            " that, too?"
        ),
        (
            "tokens of what: of answers alone, or of prompts as well",
            lambda p: "prompts and answers added up",
        ),
        (
            "the lengths of prompts and answers, as means or as limits",
            lambda p: f"prompts of {p.prompt:,} tokens and answers of {p.answer:,} in the mean",
        ),
        (
            "how many requests at a time, or how many a second, and until when it was measured",
            lambda p: f"{p.requests} at a time, each followed by the next; also a run with {p.light}",
        ),
        (
            "TTFT and TPOT beside the throughput, and whether they are means, medians or p99",
            lambda p: (
                f"TTFT {took(p.ttft_s)} and TPOT {took(p.tpot_s)} (with {p.light} at a time {took(p.light_ttft_s)} and"
                f" {took(p.light_tpot_s)}); means or medians, it does not say"
            ),
        ),
        (
            "which GPU, how many of them serve one copy, and in which formats weights and caches are",
            lambda p: (
                f"{p.tp} GPUs a copy ({p.gpu}), weights in {8 * p.width} bits, keys and values in {8 * p.cache_width}"
            ),
        ),
        (
            "the version of the engine and its settings, and whether the run can be repeated",
            lambda p: f"{p.engine}, a single run; the load generator is not named",
        ),
    ),
    estimates=(
        Step(drill="measured-user-rate", numbers=lambda p: p),
        Step(drill="measured-over-the-floor", numbers=lambda p: p),
        Step(drill="measured-prompts-of-others", numbers=lambda p: p),
    ),
    design=design(
        lambda p: "Say how you would measure it yourself, so that your figure and the slide's can stand in one table.",
        (
            "the same lengths, or better your own traffic's, drawn from a distribution and not all alike",
            "the same requests at a time for the comparison, and open arrivals for what users will see",
            "output tokens per second and GPU as the figure; prompts' tokens beside it, never added to it",
            "TTFT and TPOT at p50 and p99, from the client's clock, without the first minutes",
            "a prediction first: floor, prompts of others, what is left; a run far off it is looked into, not averaged",
            "versions, formats and settings written down, and the run repeated on another day",
        ),
        lambda p: (
            f"{people(p.total)} tokens per second and GPU count the prompts: one user sees"
            f" {shown('measured-user-rate', p)} of the answer. The floor of a step is {fmt_seconds(weights_s(p))} for"
            f" weights and {fmt_seconds(caches_s(p))} for caches, and the TPOT of {took(p.tpot_s)} is"
            f" {shown('measured-over-the-floor', p)} times that; prompts of others explain a share of"
            f" {shown('measured-prompts-of-others', p)} of it. I run one load generator on both, with our own"
            f" lengths, first with {p.requests} requests at a time on {p.tp} GPUs, then with arrivals as ours come,"
            " and report output tokens per second and GPU beside TTFT and TPOT at p50 and p99. Where my run is off the"
            " slide by more than a tenth I look for another format, another version or another count of tokens before"
            " I believe either."
        ),
    ),
    trade_off=Best(
        drill="measured-output-per-gpu",
        now=lambda p: p,
        more=True,
        text=lambda p: (
            f"On the slide's machine, {p.requests} requests at a time, prompts of {p.prompt:,} and answers of"
            f" {p.answer:,} tokens, TTFT {took(p.ttft_s)}, TPOT {took(p.tpot_s)}. Say that each change saves just what"
            " it no longer reads. Which single one raises output tokens per second and GPU most?"
        ),
        changes=(
            Change(
                key="weights",
                text=lambda p: f"weights in {4 * p.width} bits instead of {8 * p.width}",
                numbers=lambda p: changed(p, tpot_s=p.tpot_s - weights_s(p) / 2),
            ),
            Change(
                key="caches",
                text=lambda p: f"caches in {4 * p.cache_width} bits instead of {8 * p.cache_width}",
                numbers=lambda p: changed(p, tpot_s=p.tpot_s - caches_s(p) / 2),
            ),
            Change(
                key="prompts",
                text=lambda p: "half of every prompt found in a cache of prompts",
                numbers=_hit,
            ),
        ),
    ),
    price=(
        "narrower weights and caches may cost points in the answers: measure them on your own tasks",
        "a cache of prompts helps only requests that begin alike, and takes memory from all",
        "each gain holds at this load: at a few requests the weights decide, at many the caches and the prompts",
    ),
    follow_ups=(
        Step(drill="measured-crowd-gain", numbers=lambda p: p),
        Step(drill="measured-narrower-cache", numbers=lambda p: p.narrower),
    ),
)
