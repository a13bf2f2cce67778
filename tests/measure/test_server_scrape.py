"""The server of chapter 3 under more requests than its blocks or its slots hold, by its own /metrics: its scheduler
plans, a clock of ours says how long a step takes, and `threeloops log` has to say what it suffers from.
"""

from collections import Counter

import pytest

from threeloops.measure.product_loop.server.blocks import BlockPool
from threeloops.measure.product_loop.server.generation import Generation, Order
from threeloops.measure.product_loop.server.metrics import Metrics, prometheus_text
from threeloops.measure.product_loop.server.scheduler import Scheduler
from threeloops.product_loop.logged.engine_account import admission
from threeloops.product_loop.logged.engine_suspects import ANSWERS, CACHE_FULL, NO_SEATS, engine_suspects
from threeloops.product_loop.logged.scraped_metrics import ScrapedMetrics

STEP_S, PROMPT, ANSWER = 0.1, 20, 12


def served(*, blocks: int, slots: int, requests: int, steps: int) -> tuple[Scheduler, Metrics]:
    """So many steps of a server to which all requests came at once; not as many as end with a seat just left."""
    scheduler, metrics = Scheduler(BlockPool(blocks=blocks, block_tokens=8), slots=slots, token_budget=64), Metrics()
    for _ in range(requests):
        scheduler.waiting.append(Generation(Order(prompt=[1] * PROMPT, max_tokens=ANSWER), arrived_s=0.0))
    for step in range(1, steps + 1):
        for share in scheduler.plan():
            one = share.generation
            one.cached += share.tokens
            if not one.to_compute:
                one.accept(2, step * STEP_S)
                metrics.token(one)
            if len(one.made) == ANSWER:
                scheduler.leave(one)
                metrics.finished(one, "length")
    return scheduler, metrics


@pytest.mark.parametrize(
    ("blocks", "slots", "requests", "steps", "wanted"),
    [(11, 16, 30, 60, CACHE_FULL), (400, 3, 30, 57, NO_SEATS), (400, 16, 2, 14, ANSWERS)],
)
def test_the_first_suspect_is_what_the_server_suffers_from(blocks, slots, requests, steps, wanted) -> None:
    scheduler, metrics = served(blocks=blocks, slots=slots, requests=requests, steps=steps)
    text = prometheus_text(metrics, scheduler, refused=Counter(), vanished=0)
    reader = ScrapedMetrics()
    for line in text.splitlines():
        reader.take(line)
    reader.close()
    log = reader.record
    log.seats = slots
    assert (log.columns["running"][0], log.columns["waiting"][0]) == (len(scheduler.running), len(scheduler.waiting))
    assert log.preempted == scheduler.preemptions
    assert engine_suspects(log, admission(log), None)[0].illness == wanted
