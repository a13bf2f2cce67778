"""Drills on served points: what a throughput per GPU, per user and over a whole answer says, and what it does not."""

import functools
import random
from collections.abc import Callable
from itertools import pairwise

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.measured.rows import gpu_name, took
from threeloops.facts.served_points import ServedPoint, served_points, served_sources
from threeloops.product_loop import queueing, serving

COST = Taught("product", "Capacity and cost")

SOURCE_LOOP = "Little, Operations Research 9(3), 1961, doi:10.1287/opre.9.3.383 (a closed loop)"


@functools.cache
def points_where(asked: Callable[[ServedPoint], bool]) -> tuple[ServedPoint, ...]:
    """The served points that a question can be asked about."""
    return tuple(filter(asked, served_points()))


def numbers_of(point: ServedPoint) -> dict[str, object]:
    """A point as the numbers of a draw; lengths are means."""
    return {
        "model": catalogued.model_name(point.model),
        "engine": f"{point.engine} {point.version}".strip(),
        "gpu": gpu_name(point.part),
        "tp": point.tp,
        "requests": point.requests,
        "prompt": point.mean_prompt,
        "answer": point.mean_answer,
        "ttft_s": point.ttft_s,
        "tpot_s": point.tpot_s,
        "row": row_of_point(point),
    }


def row_of_point(point: ServedPoint) -> str:
    """Where a point was published."""
    (one,) = served_sources()
    engine = f"{point.engine} {point.version or '(version not said)'}"
    settings = f"{point.tp} GPUs, {point.requests} at a time, up to {point.prompt} and {point.answer} tokens"
    return f"{engine}, {settings}: {one.source} ({one.licence}), read in 2026"


def server(p: Draw) -> str:
    """A server and its load in words."""
    return (
        f"{p.engine} serves {p.model} on {p.tp} GPU{'s' if p.tp > 1 else ''} ({p.gpu}) with {p.requests} requests at a"
        f" time: as one ends, the next begins. Prompts have {p.prompt:,} tokens and answers {p.answer:,} in the mean"
    )


# --- output tokens per second and GPU --------------------------------------------------------------


def is_shared(point: ServedPoint) -> bool:
    return point.tp > 1 and point.requests > 1


def small_point(rng: random.Random) -> Draw:
    return drawn(
        tp=rng.choice((2, 3, 4)),
        requests=rng.randrange(3, 9),
        prompt=rng.randrange(10, 30),
        answer=rng.randrange(4, 12),
        ttft_s=rng.randrange(20, 60),
        tpot_s=rng.randrange(2, 9),
        row="drawn in 2026",
    )


def _request_s(p: Draw) -> float:
    return serving.request_s(ttft_s=p.ttft_s, itl_s=p.tpot_s, output_tokens=p.answer)


def output_per_gpu_s(p: Draw) -> float:
    ended_per_s = queueing.closed_loop_per_s(clients=p.requests, answer_s=_request_s(p), think_s=0)
    return float(ended_per_s * p.answer / p.tp)


def _count_output(p: Draw) -> float:
    """Seats whose requests follow each other; every token as it comes, over some whole rounds."""
    rounds, tokens, clocks = 3, 0, [0] * p.requests
    for seat in range(p.requests):
        for _ in range(rounds):
            for token in range(p.answer):
                clocks[seat] += p.tpot_s if token else p.ttft_s
                tokens += 1
    return float(tokens / max(clocks) / p.tp)


OUTPUT = Drill(
    key="measured-output-per-gpu",
    taught=COST,
    title="Output tokens per second and GPU",
    unit="token/s",
    target_s=110,
    draw=lambda rng: drawn(**numbers_of(rng.choice(points_where(is_shared)))),
    small=small_point,
    prompt=lambda p: (
        f"{server(p)}. TTFT is {took(p.ttft_s)}, the time between two tokens of a request (TPOT) {took(p.tpot_s)}. How"
        " many output tokens per second does the server make, per GPU?"
    ),
    derive=lambda p: Derivation(
        value=output_per_gpu_s(p),
        formula="requests × answer / (TTFT + (answer − 1) × TPOT) / GPUs",
        substitution=f"{p.requests} × {p.answer} / ({p.ttft_s!r} + ({p.answer} − 1) × {p.tpot_s!r}) / {p.tp}",
        source=f"{SOURCE_LOOP}; {p.row}",
    ),
    count=_count_output,
    slips=(
        Slip("whole-server", lambda p: output_per_gpu_s(p) * p.tp) | "That is what all GPUs of the server make.",
        Slip("prompts-counted", lambda p: output_per_gpu_s(p) * (p.prompt + p.answer) / p.answer)
        | "You counted the tokens of prompts as well. They are read, not made.",
        Slip("no-first-token", lambda p: p.requests / p.tpot_s / p.tp)
        | "You divided the requests by TPOT. While one waits for its first token, it gets none.",
        Slip("one-user", lambda p: 1 / p.tpot_s) | "That is what one user sees while tokens come.",
    ),
    function=AsFunction(
        takes=("requests", "answer", "ttft_s", "tpot_s", "tp"),
        limit={"answer": 1},
        limit_case="answers of a single token, which comes with TTFT",
    ),
)

# --- TPOT from a whole answer ----------------------------------------------------------------------


def _is_slow_to_start(point: ServedPoint) -> bool:
    return point.requests > 1 and point.ttft_s > 0.06 * point.mean_answer * point.tpot_s


def _draw_tpot(rng: random.Random) -> Draw:
    p = drawn(**numbers_of(rng.choice(points_where(_is_slow_to_start))))
    p.whole_s = float(f"{_request_s(p):.4g}")
    return p


def _small_tpot(rng: random.Random) -> Draw:
    p = small_point(rng)
    p.whole_s = p.ttft_s + (p.answer - 1) * p.tpot_s
    return p


def _tpot(p: Draw) -> float:
    return serving.tpot_s(request_s=p.whole_s, ttft_s=p.ttft_s, output_tokens=p.answer)


def _count_tpot(p: Draw) -> float:
    """When each token came, and how far each is from the one before."""
    came = [p.ttft_s + token * p.tpot_s for token in range(p.answer)]
    assert came[-1] == p.whole_s
    gaps = [later - earlier for earlier, later in pairwise(came)]
    return float(sum(gaps) / len(gaps))


TPOT = Drill(
    key="measured-tpot-of-an-answer",
    taught=Taught("product", "What a request goes through"),
    title="TPOT from a whole answer",
    unit="s",
    target_s=75,
    draw=_draw_tpot,
    small=_small_tpot,
    prompt=lambda p: (
        f"{server(p)}. A report says that a request takes {p.whole_s:.4g} s from its arrival to its last token, and"
        f" that the first token comes after {took(p.ttft_s)}. What is the TPOT, the mean time between two tokens of a"
        " request?"
    ),
    derive=lambda p: Derivation(
        value=_tpot(p),
        formula="(time of the whole request − TTFT) / (answer − 1)",
        substitution=f"({p.whole_s!r} − {p.ttft_s!r}) / ({p.answer} − 1)",
        source=f"vLLM, benchmarks, the definition of TPOT, read in 2026; {p.row}",
    ),
    count=_count_tpot,
    slips=(
        Slip("whole-over-tokens", lambda p: p.whole_s / p.answer)
        | "You spread the whole request over its tokens. The wait for the first one is no time between two.",
        Slip("prompt-counted", lambda p: (p.whole_s - p.ttft_s) / (p.prompt + p.answer))
        | "You counted the tokens of the prompt. They are read before the first token comes.",
        Slip("server-gap", lambda p: _tpot(p) / p.requests)
        | "That is how often the server makes a token. Each request gets one of so many.",
        Slip("ttft-added", lambda p: (p.whole_s + p.ttft_s) / p.answer)
        | "You added the wait for the first token. The whole time holds it already.",
    ),
)

DRILLS = (OUTPUT, TPOT)
