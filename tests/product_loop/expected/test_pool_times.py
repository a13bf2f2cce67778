"""Pool times: by a play, request by request, and beside servers that others measured."""

import random
from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from statistics import median
from typing import Any

import pytest

from threeloops.models import catalogue
from threeloops.product_loop.expected.expected_token import ExpectedToken, expected_token
from threeloops.product_loop.expected.judged_points import judged_pools
from threeloops.product_loop.expected.pool_times import pool_times, pools_at, prompt_every_s

ANSWER, PROMPT_S = 200, 0.25


def step_s(inside: int) -> float:
    return 0.010 + 0.0001 * inside


def play(requests: int, *, servers: int, step_s: Callable[[int], float], rounds: int = 12) -> tuple[float, float]:
    """Requests per second and seconds of a step, in the second half: each that ends asks again, answers are drawn."""
    draw = random.Random(1)
    free, read = [0.0] * servers, list[float]()
    for _ in range(requests):
        heapreplace(free, free[0] + PROMPT_S)
        heappush(read, max(free))
    heapify(free)
    now, inside, ended, steps = 0.0, list[int](), list[float](), list[tuple[float, float]]()
    while len(ended) < rounds * requests:
        now = max(now, read[0]) if not inside else now
        while read and read[0] <= now:
            heappop(read)
            inside.append(draw.randint(ANSWER // 2, ANSWER + ANSWER // 2) - 1)
        steps.append((now, step_s(len(inside))))
        now += step_s(len(inside))
        inside = [left - 1 for left in inside]
        for _ in range(inside.count(0)):
            ended.append(now)
            begin_s = max(now, free[0])
            heapreplace(free, begin_s + PROMPT_S)
            heappush(read, begin_s + PROMPT_S)
        inside = [left for left in inside if left]
    half = len(ended) // 2
    late = [took_s for at_s, took_s in steps if at_s >= ended[half]]
    return (len(ended) - half) / (now - ended[half]), sum(late) / len(late)


@pytest.mark.parametrize(("requests", "servers"), [(8, 4), (60, 2), (120, 12)])
def test_two_pools_played_request_by_request(requests: int, servers: int) -> None:
    """Few requests, a prefill pool that binds, and one that nearly does."""
    load: dict[str, Any] = {"answer": ANSWER, "prompt_s": PROMPT_S, "step_s": step_s}
    told = pools_at(requests, **load, reads_per_s=servers / PROMPT_S)
    flow, took_s = play(requests, servers=servers, step_s=step_s)
    assert told.requests_per_s == pytest.approx(flow, rel=0.08)
    assert told.tpot_s == pytest.approx(took_s, rel=0.08)


def test_a_full_prefill_pool_leaves_the_others_waiting() -> None:
    load: dict[str, Any] = {"answer": ANSWER, "prompt_s": PROMPT_S, "step_s": step_s}
    few, many = (pools_at(requests, **load, reads_per_s=8.0) for requests in (60, 600))
    assert few.busy_prefill == many.busy_prefill == 1
    assert few.requests_per_s == many.requests_per_s == 8.0
    assert few.decoding == many.decoding < 60
    idle = pools_at(2, **load, reads_per_s=8.0)
    assert idle.decoding == 2
    assert idle.busy_prefill < 0.2


def test_groups_that_read_at_once_share_the_experts() -> None:
    """Eight groups with a prompt each: the experts compute all of them, and each group what is its own."""
    token = expected_token(
        catalogue.model("deepseek-v3"),
        **{"part": "h200-sxm", "format": "fp8", "cache": "bf16", "engine": "SGLang"},  # type: ignore[arg-type]
        **{"tp": 1, "dp": 8, "ep": 8, "requests": 1, "prompt": 4096, "answer": 2},  # type: ignore[arg-type]
    )
    own_s = token.prompt_s - token.shared_prompt_s
    assert 8 * prompt_every_s(token, 8) == pytest.approx(own_s + 8 * token.shared_prompt_s)
    assert prompt_every_s(ExpectedToken(parts={}, prompt_s=0.5, shared_prompt_s=0.1), 1) == 0.5


def test_published_pools_take_about_what_is_expected() -> None:
    """Nothing is fitted to them."""
    judged = judged_pools()
    assert len(judged) > 100
    assert median(abs(one.error) for one in judged) < 0.2
    assert median(abs(one.flow_error) for one in judged) < 0.2
    assert all(one.point.ttft_s > one.expected.prompt_s for one in judged), "no first token before its prompt is read"


def test_a_layout_whose_exchanges_nobody_timed_is_refused() -> None:
    point = judged_pools()[0].point
    wide = type(point.decode)(workers=1, tp=1, dp=64, ep=64)
    with pytest.raises(ValueError, match="ranks"):
        pool_times(
            catalogue.model("deepseek-v3"),
            **{"part": "h200-sxm", "format": "fp8", "cache": "bf16", "engine": "SGLang"},  # type: ignore[arg-type]
            **{"prefill": point.prefill, "decode": wide},  # type: ignore[arg-type]
            **{"requests": 64, "prompt": 1024, "answer": 1024},  # type: ignore[arg-type]
        )
