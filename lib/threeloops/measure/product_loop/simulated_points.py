"""Simulated points: the serving simulator of chapter 3 with expected kernel times, beside servers that others measured.

>>> one = next(one for one in judged_points() if one.seated and one.point.requests == 4)
>>> found = simulated_point(one)
>>> 0.5 < found.tpot_s / one.point.tpot_s < 1.5
True
"""

import functools
from dataclasses import dataclass
from statistics import mean

import numpy as np

from threeloops import checks
from threeloops.product_loop.expected.expected_token import FLOOR, MIXED, PROMPTS
from threeloops.product_loop.expected.judged_points import JudgedPoint, judged_points
from threeloops.simulate.product_loop.serving_policies import Policy
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_run import run
from threeloops.simulate.product_loop.serving_steps import AffineStep

SEED = 1
ROUNDS = 10  # requests over those at a time, where a run does not say
ATTENTION = (FLOOR[1], "attention beyond that")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPoint:
    """Means over the requests of a run."""

    judged: JudgedPoint
    tpot_s: float
    ttft_s: float

    @property
    def error(self) -> float:
        """Simulated over measured time between two tokens, less 1."""
        return self.tpot_s / self.judged.point.tpot_s - 1

    @property
    def first_error(self) -> float | None:
        """The same of the time to the first token; None where a run does not say how many requests it had."""
        return None if self.judged.point.rounds is None else self.ttft_s / self.judged.point.ttft_s - 1


def simulated_point(one: JudgedPoint) -> SimulatedPoint:
    """A run of so many requests at a time, of lengths drawn as the run's were.

    Formula:  a step = what all its users share + attention by cached tokens + what a prompt takes beyond what it
              shares with a step
    Assumes:  the expected times of expected_token; one prompt a step, beside single tokens where the engine is in
              MIXED, else before them; a step shares the same whether a few users less decode; no time of the host
    Raises:   ValueError where the caches do not hold all requests: who waits for a seat is not known
    """
    point, parts = one.point, one.expected.parts
    if not one.seated:
        raise ValueError(f"{point.requests} requests at a time do not all have a seat; choose points that are seated")
    context = point.mean_prompt + point.mean_answer // 2
    attention_s = sum(parts[name] for name in ATTENTION)
    shared_s = sum(seconds for name, seconds in parts.items() if name != PROMPTS) - attention_s
    step_s = AffineStep(
        base_s=shared_s,
        per_prefill_token_s=max(0.0, one.expected.prompt_s - shared_s) / point.mean_prompt,
        per_cached_token_s=max(0.0, attention_s) / (point.requests * context),
    )
    mixed = MIXED[point.engine]
    policy = Policy(
        name="one prompt a step",
        slots=point.requests,
        order="decode first" if mixed else "prefill first",
        token_budget=point.mean_prompt + (point.requests if mixed else 0),
    )
    done = run(_requests(one), step_s=step_s, policy=policy)
    firsts = [moments.ttft_s - moments.waited_s for moments in done.served]  # from the moment that it has a seat
    return SimulatedPoint(judged=one, tpot_s=float(done.tpot_s.mean()), ttft_s=mean(firsts))


def _requests(one: JudgedPoint) -> list[Request]:
    point = one.point
    count = point.requests * (point.rounds or ROUNDS)
    shares = point.shortest + (1 - point.shortest) * np.random.default_rng(SEED).random((2, count))
    prompts, answers = np.rint(np.array([[point.prompt], [point.answer]]) * shares).astype(int)
    return [Request(0.0, int(prompt), max(2, int(answer))) for prompt, answer in zip(prompts, answers, strict=True)]


@functools.cache
def simulated_points(every: int) -> tuple[SimulatedPoint, ...]:
    """Every `every`-th of the served points whose caches hold all requests, in the order of the catalogue."""
    checks.count(every=every)
    return tuple(simulated_point(one) for one in [one for one in judged_points() if one.seated][::every])
