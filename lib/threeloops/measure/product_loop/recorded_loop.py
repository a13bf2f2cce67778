"""Recorded loop: the simulated server beside a loop of users that was recorded on a GPU, with an engine of which every
line is known.

The simulator is given what a decode step and a prompt take, and how many users there are; who waits for whom is its
own. The two times come from recordings of the same card, or from tables of kernels that others timed. Nothing is
fitted to the loop.

>>> [moments.tpot_s > 0 for moments in simulated_loop(4, part="h100-sxm5", by="recorded").served[:2]]
[True, True]
"""

from collections.abc import Callable
from typing import Any

from threeloops import checks
from threeloops.facts.recorded import Measured, find
from threeloops.facts.recorded_cases import Case
from threeloops.facts.recorded_suite import suite
from threeloops.models import catalogue
from threeloops.models.recorded_work import loop_answers
from threeloops.operations.expected_times import expected_product
from threeloops.product_loop.expected.expected_token import expected_token
from threeloops.simulate.product_loop.serving_policies import Policy
from threeloops.simulate.product_loop.serving_requests import Request
from threeloops.simulate.product_loop.serving_run import Run, run
from threeloops.simulate.product_loop.serving_steps import StepContents

SHAPE = "bf16-layers32-hidden4096-heads32-kv_heads8-head_dim128-intermediate14336"  # of Llama 3 8B
MODEL = "llama-3-8b"
PLAIN = "SGLang"  # an engine that reads prompts in steps of their own, as the recorded one does
TIMES = ("recorded", "expected")
LOOPS = {case.sizes["users"]: case for case in suite(device="cuda", quick=False) if case.kind == "loop_gap"}


def recorded_loop(users: int, *, part: str, what: str) -> Measured:
    """The recorded seconds of a loop's requests: "first", to the first token, or "gap", between two.

    Raises:   ValueError for a number of users or a part that was not recorded
    """
    checks.one_of(map(str, LOOPS), users=str(users))
    case = LOOPS[users]
    return _took(Case(kind=f"loop_{what}", dtype=case.dtype, sizes=case.sizes).name, part)


def simulated_loop(users: int, *, part: str, by: str) -> Run:
    """The same requests through the simulator: as many slots as users, prompts before single tokens.

    Formula:  a step = a prompt's time for each prompt in it, or a decode step's time for all users
    Assumes:  the caches have their full length from the start, as the recorded engine's have; a step costs the same
              whether all users have a request in it or not; by recorded: decode step out of a graph and prompt, each
              its median as recorded alone, + the head by kernel tables + the recorded choice of the likeliest token;
              by expected: every kernel by tables
    Raises:   ValueError for a number of users or a part that was not recorded
    """
    decode_s, prompt_s = loop_times(users, part=part, by=by)
    case = LOOPS[users]
    tokens = case.sizes["prompt"]
    requests = [Request(0.0, tokens, answer) for answer in loop_answers(case)]
    policy = Policy(name="a prompt at a time", slots=users, order="prefill first", token_budget=tokens)
    return run(requests, step_s=_step(decode_s, prompt_s / tokens), policy=policy)


def loop_times(users: int, *, part: str, by: str) -> tuple[float, float]:
    """Seconds of a decode step for so many users and of one prompt, as simulated_loop takes them."""
    checks.one_of(map(str, LOOPS), users=str(users))
    checks.one_of(TIMES, by=by)
    return (_recorded_times if by == "recorded" else _expected_times)(LOOPS[users], part)


def _step(decode_s: float, token_s: float) -> Callable[[StepContents], float]:
    return lambda contents: contents.prefill_tokens * token_s + (decode_s if contents.decodes else 0.0)


def _recorded_times(case: Case, part: str) -> tuple[float, float]:
    sizes = case.sizes
    context = sizes["prompt"] + sizes["answer"]
    step = _took(f"decode_graph-{SHAPE}-batch{sizes['users']}-context{context}", part)
    prompt = _took(f"prefill_eager-{SHAPE}-batch1-tokens{sizes['prompt']}", part)
    rows = 1 if sizes["users"] == 1 else 64  # the choice takes a launch's time up to there
    chosen = _took(f"sample_greedy-fp32-rows{rows}-width{sizes['vocabulary']}", part)
    head = expected_product(part, m=sizes["users"], n=sizes["vocabulary"], k=sizes["hidden"], format=case.dtype)
    return step.median + head.seconds + chosen.median, prompt.median


def _expected_times(case: Case, part: str) -> tuple[float, float]:
    sizes = case.sizes
    formats: dict[str, Any] = {"part": part, "format": case.dtype, "cache": case.dtype, "tp": 1, "engine": PLAIN}
    full, one = (
        expected_token(catalogue.model(MODEL), **formats, requests=sizes["users"], prompt=prompt, answer=2)
        for prompt in (sizes["prompt"] + sizes["answer"] - 1, sizes["prompt"])
    )
    return full.step_s, one.prompt_s


def _took(case: str, part: str) -> Measured:
    found = find(case, part)
    if not isinstance(found, Measured):
        raise ValueError(f"part={part!r}: no loop was recorded on it ({found.words}); take h100-sxm5 or h200-sxm")
    return found
