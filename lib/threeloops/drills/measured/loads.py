"""Drills on one server under two loads: the prompts of others in a token, and what more requests at a time buy."""

import functools
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, changed, drawn
from threeloops.drills.engine.searches import wanted
from threeloops.drills.measured.rows import took
from threeloops.drills.measured.served import SOURCE_LOOP, numbers_of, row_of_point, server
from threeloops.facts.served_points import ServedPoint, served_points
from threeloops.product_loop import batching, queueing, serving

BATCHING = Taught("product", "Batching")

# --- the prompts of others -------------------------------------------------------------------------


@functools.cache
def two_loads() -> tuple[tuple[ServedPoint, ServedPoint], ...]:
    """Two loads of one server, the lighter one first; of few requests a prompt hardly waits."""
    by_server: dict[tuple[object, ...], list[ServedPoint]] = {}
    for point in served_points():
        server_of = point.model, point.part, point.engine, point.version, point.format, point.tp, point.ep
        by_server.setdefault((*server_of, point.prompt, point.answer), []).append(point)
    return tuple(
        (one, other)
        for some in by_server.values()
        for one in some
        for other in some
        if other.requests >= 2 * one.requests
    )


def with_lighter(light: ServedPoint, heavy: ServedPoint) -> Draw:
    return drawn(
        **numbers_of(heavy),
        light=light.requests,
        light_ttft_s=light.ttft_s,
        light_tpot_s=light.tpot_s,
        row_light=row_of_point(light),
    )


FEW, MOST = 4, 0.9  # requests beside which a prompt is hardly held up; a share that other causes leave


@functools.cache
def _prompted() -> tuple[tuple[ServedPoint, ServedPoint], ...]:
    def share(light: ServedPoint, heavy: ServedPoint) -> float:
        return (heavy.requests - 1) / heavy.mean_answer * light.ttft_s / heavy.tpot_s

    return tuple(pair for pair in two_loads() if pair[0].requests <= FEW and 0.1 < share(*pair) < MOST)


def _small_prompts(rng: random.Random) -> Draw:
    requests = rng.randrange(3, 7)
    return drawn(
        requests=requests,
        answer=requests * rng.randrange(2, 6),
        prompt=rng.randrange(50, 90),
        light=2,
        light_ttft_s=rng.randrange(2, 9),
        light_tpot_s=1,
        ttft_s=rng.randrange(10, 20),
        tpot_s=rng.randrange(5, 30),
        tp=1,
        row="drawn in 2026",
    )


def _prompts_share(p: Draw, *, requests: int = 0, prompt_s: float = 0.0) -> float:
    others_s = batching.others_prompts_s(
        requests=requests or p.requests, output_tokens=p.answer, prompt_s=prompt_s or p.light_ttft_s
    )
    return float(others_s / p.tpot_s)


def _count_prompts(p: Draw) -> float:
    """Seats that end one after another, each once in as many steps as an answer has tokens; one seat watches."""
    apart, stalled = p.answer // p.requests, 0
    for step in range(p.answer):
        for seat in range(1, p.requests):  # the watcher's own prompt is over
            if step == seat * apart:
                stalled += p.light_ttft_s
    return float(stalled / p.answer / float(p.tpot_s))


PROMPTS = Drill(
    key="measured-prompts-of-others",
    taught=BATCHING,
    title="The prompts of others in a TPOT",
    unit="",
    target_s=130,
    draw=lambda rng: with_lighter(*rng.choice(_prompted())),
    small=_small_prompts,
    prompt=lambda p: (
        f"{server(p)}. TPOT is {took(p.tpot_s)}, TTFT {took(p.ttft_s)}. With only {p.light} requests at a time, TTFT"
        f" was {took(p.light_ttft_s)}; take that for the time that reading one prompt takes. Say that a prompt stops"
        " all other requests' tokens while it is read. What share of the TPOT do the prompts of others make up?"
    ),
    derive=lambda p: Derivation(
        value=_prompts_share(p),
        formula="(requests − 1) / answer × time of a prompt / TPOT",
        substitution=f"({p.requests} − 1) / {p.answer} × {p.light_ttft_s!r} / {p.tpot_s!r}",
        source=f"Agrawal et al., Sarathi-Serve, OSDI 2024, arXiv:2403.02310, section 3 (generation stalls); {p.row}",
    ),
    count=_count_prompts,
    slips=(
        Slip("loaded-ttft", lambda p: _prompts_share(p, prompt_s=p.ttft_s))
        | "You took the TTFT under load for the time of a prompt. Most of its extra time is waiting.",
        Slip("one-prompt", lambda p: _prompts_share(p, requests=2))
        | "You let one other prompt come in the time of an answer. Each of the others brings one.",
        Slip("per-token", lambda p: p.light_ttft_s / p.tpot_s)
        | "You put a whole prompt between two tokens. How many prompts come in the time of a whole answer?",
        Slip("by-the-prompt", lambda p: (p.requests - 1) / p.prompt * p.light_ttft_s / p.tpot_s)
        | "You spread the prompts over the tokens of a prompt. They come in the time of an answer.",
        Slip("rest", lambda p: 1 - _prompts_share(p)) | "That is the share of everything else.",
    ),
)

# --- more requests at a time -----------------------------------------------------------------------


def _made(p: Draw, requests: int, ttft_s: float, tpot_s: float) -> float:
    answer_s = serving.request_s(ttft_s=ttft_s, itl_s=tpot_s, output_tokens=p.answer)
    return float(p.answer * queueing.closed_loop_per_s(clients=requests, answer_s=answer_s, think_s=0))


def _gain(p: Draw) -> float:
    return _made(p, p.requests, p.ttft_s, p.tpot_s) / _made(p, p.light, p.light_ttft_s, p.light_tpot_s)


def _derive_crowd(p: Draw) -> Derivation:
    took_s = [
        f"({ttft!r} + ({p.answer} − 1) × {tpot!r})"
        for ttft, tpot in ((p.ttft_s, p.tpot_s), (p.light_ttft_s, p.light_tpot_s))
    ]
    return Derivation(
        value=_gain(p),
        formula="requests / (TTFT + (answer − 1) × TPOT), many at a time over few at a time",
        substitution=f"{p.requests} / {took_s[0]} / ({p.light} / {took_s[1]})",
        source=f"{SOURCE_LOOP}; {p.row}",
    )


def _count_crowd(p: Draw) -> float:
    """Both loads, token by token, over some whole rounds."""
    rates = []
    for requests, ttft_s, tpot_s in ((p.requests, p.ttft_s, p.tpot_s), (p.light, p.light_ttft_s, p.light_tpot_s)):
        tokens, clock = 0, 0
        for _ in range(3):
            for token in range(p.answer):
                clock += tpot_s if token else ttft_s
                tokens += requests
        rates.append(tokens / clock)
    return float(rates[0] / rates[1])


CROWD = Drill(
    key="measured-crowd-gain",
    taught=BATCHING,
    title="What more requests at a time buy",
    unit="",
    target_s=120,
    draw=lambda rng: with_lighter(*wanted(lambda: rng.choice(two_loads()), lambda pair: pair[1].tp > 1)),
    small=lambda rng: changed(
        _small_prompts(rng),
        light=rng.randrange(1, 3),
        light_ttft_s=rng.randrange(2, 9),
        light_tpot_s=rng.randrange(1, 5),
        tp=rng.choice((2, 4)),
    ),
    prompt=lambda p: (
        f"{server(p)}: TTFT {took(p.ttft_s)}, TPOT {took(p.tpot_s)}. With {p.light} at a time it had a TTFT of"
        f" {took(p.light_ttft_s)} and a TPOT of {took(p.light_tpot_s)}. How many times the output tokens per second"
        f" does the server make with {p.requests} at a time?"
    ),
    derive=_derive_crowd,
    count=_count_crowd,
    prerequisites=("measured-output-per-gpu",),
    slips=(
        Slip("requests-alone", lambda p: p.requests / p.light)
        | "You compared the requests at a time. Each of them also gets its tokens more slowly.",
        Slip("users-rate", lambda p: p.light_tpot_s / p.tpot_s)
        | "That is how much of its speed one user keeps. The server's tokens are asked for.",
        Slip("slower", lambda p: p.tpot_s / p.light_tpot_s)
        | "That is how much longer a user waits between two tokens.",
        Slip("per-gpu", lambda p: _gain(p) / p.tp) | "You divided by the GPUs. Both loads ran on the same ones.",
    ),
)

DRILLS = (PROMPTS, CROWD)
