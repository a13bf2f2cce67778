"""Follow-ups on a server under load: prompts among tokens, a queue with a few long ones, a prefix that many share."""

import random

from threeloops.drills.engine.drill import Draw, changed, drawn
from threeloops.room.kinds.chains.chain import Chain, Step
from threeloops.room.kinds.chains.change import Best, Change, redrawn, told_apart
from threeloops.units import fmt_percent, ms, us

# --- prompts among tokens ------------------------------------------------------------------------


def _draw_gap(rng: random.Random) -> Draw:
    return drawn(
        rate=rng.choice((30, 42, 54)),
        gpus=rng.choice((5, 6)),
        weights_us=rng.choice((4000, 5000, 7000)),
        prefill_ms=rng.choice((32, 45, 60)),
        cache_ms=rng.choice((9, 14, 22)),
        hit=rng.choice((0.3, 0.5, 0.7)),
        itl_ms=rng.choice((55, 70, 90)),
        step_ms=rng.choice((15, 22, 28)),
        token_us=rng.choice((28, 37, 52)),
        prompt=rng.choice((6000, 8200, 11_500)),
        chunk=rng.choice((512, 768, 1280)),
    )


GAP_STEPS = (
    Step(drill="serving-largest-chunk", numbers=lambda p: p),
    Step(
        drill="serving-chunked-ttft",
        numbers=lambda p: p,
        text=lambda p: (
            f"Chunks of {p.chunk:,} it is, one a step. A prompt of {p.prompt:,} tokens is read at {p.token_us} µs per"
            f" token, and every step, the last one too, also decodes for {p.step_ms} ms. No other request waits. How"
            " long until it is read and its last step done?"
        ),
    ),
    Step(drill="capacity-gap-between-tokens", numbers=lambda p: p),
)
GAP_CHOICE = Best(
    drill="capacity-gap-between-tokens",
    now=lambda p: p,
    text=lambda p: (
        f"{p.gpus} GPUs share {p.rate} requests per second. Each reads its weights in {p.weights_us * us / ms:g} ms; a"
        f" request costs {p.prefill_ms} ms of prefill and {p.cache_ms} ms of cache reads in all. Which change shortens"
        " the mean gap between tokens most?"
    ),
    changes=(
        Change(key="gpu", text=lambda p: "one GPU more", numbers=lambda p: changed(p, gpus=p.gpus + 1)),
        Change(
            key="prefix",
            text=lambda p: f"a prefix cache that saves {fmt_percent(p.hit)} of the prefill",
            numbers=lambda p: changed(p, prefill_ms=p.prefill_ms * (1 - p.hit)),
        ),
        Change(
            key="weights",
            text=lambda p: "weights in 8 bits: read in half the time",
            numbers=lambda p: changed(p, weights_us=p.weights_us / 2),
        ),
    ),
)
GAP = Chain(
    key="gap",
    title="Prompts among tokens",
    draw=redrawn(
        _draw_gap,
        lambda p: (
            p.rate / p.gpus * (p.prefill_ms + p.cache_ms) < 900  # of 1,000 ms: below, the queue is stable
            and told_apart(GAP_STEPS, p)
            and GAP_CHOICE.clear(p)
        ),
    ),
    steps=GAP_STEPS,
    decision=GAP_CHOICE.decision,
)

# --- a queue with a few long ones ----------------------------------------------------------------


def _draw_queue(rng: random.Random) -> Draw:
    return drawn(
        service_ms=rng.choice((90, 140, 220)),
        percent=rng.choice((60, 75, 85)),
        short_ms=rng.choice((40, 60, 80)),
        long_ms=rng.choice((700, 1100, 1600)),
        per_minute=rng.choice((120, 170, 230)),
        cut=rng.choice((0.5, 0.7, 0.85)),
        cached=rng.choice((0.1, 0.25)),
        quicker=rng.choice((0.6, 0.8)),
        before=rng.choice((24, 30)),
        arrive=rng.choice((37, 42)),
        after=rng.choice((52, 61)),
        late_s=rng.choice((60, 95, 140)),
    )


def _mixed(p: Draw) -> Draw:
    return changed(p, percent=10)


QUEUE_STEPS = (
    Step(drill="queue-p99", numbers=lambda p: p),
    Step(drill="queue-long-among-short", numbers=_mixed),
    Step(drill="queue-late-servers", numbers=lambda p: p),
)
QUEUE_CHOICE = Best(
    drill="queue-long-among-short",
    now=_mixed,
    text=lambda p: (
        f"Back to one server: {p.per_minute} requests per minute, 90 % of {p.short_ms} ms, 10 % of {p.long_ms:,} ms,"
        " in no order. Which change shortens the mean wait most?"
    ),
    changes=(
        Change(
            key="cut",
            text=lambda p: f"long ones are cut off after {p.long_ms * p.cut:,.0f} ms",
            numbers=lambda p: changed(_mixed(p), long_ms=p.long_ms * p.cut),
        ),
        Change(
            key="cached",
            text=lambda p: f"{fmt_percent(p.cached)} of all requests, long and short, answered from a cache",
            numbers=lambda p: changed(_mixed(p), per_minute=p.per_minute * (1 - p.cached)),
        ),
        Change(
            key="quicker",
            text=lambda p: f"short ones in {p.short_ms * p.quicker:.0f} ms",
            numbers=lambda p: changed(_mixed(p), short_ms=p.short_ms * p.quicker),
        ),
    ),
)
QUEUE = Chain(
    key="queue",
    title="A queue",
    draw=redrawn(
        _draw_queue,
        lambda p: (
            p.per_minute / 60 * (0.9 * p.short_ms + 0.1 * p.long_ms) < 900
            and told_apart(QUEUE_STEPS, p)
            and QUEUE_CHOICE.clear(p)
        ),
    ),
    steps=QUEUE_STEPS,
    decision=QUEUE_CHOICE.decision,
)

# --- a prefix that many share --------------------------------------------------------------------


def _draw_prefix(rng: random.Random) -> Draw:
    return drawn(
        block=16,
        requests=rng.choice((24, 37, 58)),
        longest=rng.choice((4096, 8192)),
        answer=rng.choice((180, 260, 410)),
        shared=rng.choice((605, 917, 1321)),
        own=rng.choice((170, 330, 490)),
        hit=rng.choice((0.55, 0.65, 0.75)),
        better=rng.choice((0.1, 0.2)),
        moved=rng.choice((80, 150)),
    )


PREFIX_STEPS = (
    Step(
        drill="kv-reserved-in-advance",
        numbers=lambda p: drawn(longest=p.longest, prompt=p.shared + p.own, answer=p.answer),
    ),
    Step(drill="kv-shared-prefix", numbers=lambda p: p),
    Step(drill="serving-prefix-savings", numbers=lambda p: p),
)
PREFIX_CHOICE = Best(
    drill="serving-prefix-savings",
    now=lambda p: p,
    more=True,
    text=lambda p: (
        f"{p.shared:,} shared tokens, {p.own} of each request's own, hits in {fmt_percent(p.hit)} of the requests."
        " Which change saves the largest share of prompt tokens?"
    ),
    changes=(
        Change(
            key="hits",
            text=lambda p: f"a router that raises the hits to {fmt_percent(p.hit + p.better)}",
            numbers=lambda p: changed(p, hit=p.hit + p.better),
        ),
        Change(
            key="order",
            text=lambda p: f"{p.moved} tokens that are the same for all, moved from the end to the shared beginning",
            numbers=lambda p: changed(p, shared=p.shared + p.moved, own=p.own - p.moved),
        ),
        Change(
            key="shorter",
            text=lambda p: "each request's own part at half its length",
            numbers=lambda p: changed(p, own=p.own // 2),
        ),
    ),
)
PREFIX = Chain(
    key="prefix",
    title="A prefix that many share",
    draw=redrawn(_draw_prefix, lambda p: told_apart(PREFIX_STEPS, p) and PREFIX_CHOICE.clear(p)),
    steps=PREFIX_STEPS,
    decision=PREFIX_CHOICE.decision,
)
