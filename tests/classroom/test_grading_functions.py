"""Functions that learners write: what each mistake is told, at home and by the grader."""

import math
import threading
import time

import numpy
import pytest
from tests.each import each
from tests.seeds import seeds

from threeloops.drills.engine.calls import as_returned, called, signature_problem
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.functions import FunctionDrill, Returned, judge_function

every_function = each("asked", FUNCTIONS, by=lambda asked: asked.drill.family)
PAGED = FUNCTIONS["kv-paged-blocks"]


def paged(*, block: int, tokens: int, per_token: int, requests: int) -> float:
    return requests * -(-tokens // block) * block * per_token


def results(asked: FunctionDrill, function: object, seed: str = "a") -> list[Returned]:
    return [called(function, asked.arguments(p)) for p in asked.draws(seed)]  # type: ignore[arg-type]


@every_function
def test_the_answer_is_a_number_in_every_draw(asked: FunctionDrill) -> None:
    for seed in seeds(200):
        values = [asked.drill.derive(p).value for p in asked.draws(str(seed))]
        assert all(math.isfinite(value) and value >= 0 for value in values), f"seed {seed}"
        assert all(value > 0 for value in values[:-1]), f"seed {seed}: only the limit case may come out at nothing"


@every_function
def test_every_slip_of_a_function_is_named(asked: FunctionDrill) -> None:
    for seed in seeds(100):
        draws = asked.draws(str(seed))
        for slip in asked.drill.slips:
            returned = []
            for p in draws:
                try:
                    returned.append(Returned(value=float(slip.wrong(p))))
                except ArithmeticError:
                    returned.append(Returned(value=0.0))
            verdict = judge_function(asked, draws, returned)
            assert verdict.slips == (slip.key,), (seed, slip.key, verdict)


def test_a_function_that_counts_one_too_few_of_thousands_is_refused() -> None:
    for key, slip in (("capacity-full-slots", "too-few"), ("layout-last-of-the-group", "off-by-one")):
        asked = FUNCTIONS[key]
        draws = asked.draws("beside")
        verdict = judge_function(asked, draws, [Returned(value=asked.target(p) - 1) for p in draws])
        assert verdict.slips == (slip,)


@every_function
def test_the_limit_case_is_one(asked: FunctionDrill) -> None:
    """A function that knows the answer everywhere else fails in the limit case alone, and is told which it is."""
    draws = asked.draws("limit")
    values = [asked.drill.derive(p).value for p in draws]
    verdict = judge_function(asked, draws, [Returned(value=value) for value in [*values[:-1], values[-1] * 1.1 + 1]])
    assert (verdict.status, asked.limit_case in verdict.message) == ("limit", True)


@every_function
def test_draws_depend_on_the_words_alone_and_differ(asked: FunctionDrill) -> None:
    assert [vars(p) for p in asked.draws("one")] == [vars(p) for p in asked.draws("one")]
    assert [asked.arguments(p) for p in asked.draws("one")] != [asked.arguments(p) for p in asked.draws("two")]


def test_a_right_function_is_right() -> None:
    verdict = judge_function(PAGED, PAGED.draws("a"), results(PAGED, paged))
    assert verdict.right
    assert "five" in verdict.message or "5" in verdict.message


@pytest.mark.parametrize(
    ("function", "status", "told"),
    [
        (lambda **_: None, "unanswered", "returns nothing yet"),
        (lambda **_: "24.5 GB", "failed", "a str, not a number"),
        (lambda **_: [1.0], "failed", "a list, not a number"),
        (lambda **_: True, "failed", "a bool, not a number"),
        (lambda **_: float("nan"), "failed", "not finite"),
        (lambda **_: 10**10_000, "failed", "not one finite number"),
        (lambda **_: numpy.ones(3), "failed", "not one finite number"),
        (lambda **_: 1 / 0, "failed", "raised ZeroDivisionError: division by zero"),
        (lambda **p: paged(**p) / 1e9, "off", "base units"),
        (lambda **p: paged(**p) * 1.7, "off", "too large by one and the same factor"),
        (lambda **p: -paged(**p), "off", "negative"),
        (lambda **p: p["tokens"] * p["per_token"] * p["requests"], "slip", "by the token"),
    ],
)
def test_what_is_said(function: object, status: str, told: str) -> None:
    verdict = judge_function(PAGED, PAGED.draws("a"), results(PAGED, function))
    assert (verdict.status, told in verdict.message) == (status, True), verdict


def test_one_number_in_an_array_or_tensor_counts() -> None:
    torch = pytest.importorskip("torch")
    assert as_returned(numpy.float32(0.5)).value == 0.5
    assert as_returned(numpy.array([7])).value == 7.0
    assert as_returned(torch.tensor(2.5)).value == 2.5
    assert as_returned(torch.ones(2)).problem == "returned a Tensor that is not one finite number"


def test_a_call_that_hangs_is_left_after_its_time() -> None:
    start, morning = time.monotonic(), threading.Event()
    assert called(lambda: any(zero for zero in iter(int, 1)), {}, limit_s=0.2).problem == "took longer than 0.2 s"
    assert called(lambda: morning.wait(60), {}, limit_s=0.2).problem == "took longer than 0.2 s"
    # A thread that sleeps takes its interruption only when it wakes, and for as long CPython 3.11 makes every thread
    # look for it at every call: what runs after this test would be slower by seconds.
    morning.set()
    assert time.monotonic() - start < 40  # not the minute


def test_a_call_that_exits_does_not_end_the_notebook() -> None:
    assert called(lambda: exit(), {}).problem.startswith("raised SystemExit")


def test_a_wrong_signature_names_the_arguments() -> None:
    assert (
        signature_problem(lambda a: a, {"tokens": 1, "block": 2})
        == "It must take these arguments by name: tokens, block."
    )
    assert signature_problem(lambda tokens, block: 1, {"tokens": 1, "block": 2}) == ""
