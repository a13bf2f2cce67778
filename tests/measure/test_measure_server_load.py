"""The load generator, the fitted step model, and the real scheduler against the simulator's, step by step."""

from collections.abc import Iterator

import pytest
import torch
from served_here import in_this_process

from threeloops.measure.product_loop.character_decoder import Decoder, DecoderSizes
from threeloops.measure.product_loop.server import load, running, step_times
from threeloops.measure.product_loop.server.engine import Engine, Limits, StepRecord
from threeloops.measure.product_loop.server.generation import Order
from threeloops.simulate.product_loop import serving_run, traffic
from threeloops.simulate.product_loop.serving_policies import chunked_prefill
from threeloops.simulate.product_loop.serving_steps import AffineStep, StepContents

pytestmark = pytest.mark.timeout(60)
SIZES = DecoderSizes(hidden=16, layers=1, heads=2, kv_heads=1, head_dim=8, intermediate=24)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return Decoder(SIZES).eval().requires_grad_(False)


def requests(*lengths: tuple[int, int]) -> list[traffic.Request]:
    return traffic.together([0.0] * len(lengths), *zip(*lengths, strict=True))


@pytest.mark.parametrize(
    "asked",
    [
        requests((100, 4)),
        requests((5, 9), (5, 2), (90, 3), (17, 6), (30, 1)),
        requests(*((10 + 7 * place, 3 + place % 5) for place in range(14))),
    ],
    ids=["one", "five", "fourteen"],
)
def test_engine_and_simulator_plan_the_same_steps(decoder: Decoder, asked: list[traffic.Request]) -> None:
    """Two programs, one written for tensors and one for a clock, put the same tokens into the same steps."""
    limits = Limits(slots=4, token_budget=24, blocks=64, block_tokens=8, context=256)
    engine = Engine(decoder, limits=limits)
    for request in asked:
        engine.submit(Order(prompt=[3] * request.prompt_tokens, max_tokens=request.output_tokens, temperature=0))
    while engine.step():
        pass
    policy = chunked_prefill(slots=4, token_budget=24)
    played = serving_run.run(asked, step_s=AffineStep(base_s=1.0), policy=policy, keep_steps=True)
    assert [StepContents(*record[:3]) for record in engine.steps] == [step.contents for step in played.kept]


TRUE = AffineStep(base_s=2e-3, per_prefill_token_s=1e-4, per_decode_s=4e-5, per_cached_token_s=2e-6)
CONTENTS = [(0, 1, 30), (0, 16, 900), (48, 0, 0), (20, 9, 400), (7, 3, 100), (0, 8, 2000), (33, 2, 50), (0, 4, 10)] * 2


def records(model: AffineStep, **changes: float) -> list[StepRecord]:
    return [StepRecord(*row, seconds=model(StepContents(*row)) + changes.get("more", 0.0)) for row in CONTENTS]


def test_a_fit_finds_the_model_that_made_the_steps() -> None:
    found = step_times.fitted(records(TRUE))
    for name in ("base_s", "per_prefill_token_s", "per_decode_s", "per_cached_token_s"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name))
    assert step_times.median_error(found, records(TRUE)) < 1e-9
    twice = AffineStep(base_s=4e-3, per_prefill_token_s=2e-4, per_decode_s=8e-5, per_cached_token_s=4e-6)
    assert step_times.median_error(twice, records(TRUE)) == pytest.approx(1.0)


def test_a_fit_has_no_negative_terms() -> None:
    steps = [StepRecord(prefill, decodes, cached, 5e-3 - 1e-6 * cached) for prefill, decodes, cached in CONTENTS]
    assert step_times.fitted(steps).per_cached_token_s == 0
    with pytest.raises(ValueError, match="9 steps are too few"):
        step_times.fitted(steps[:9])


def test_measured_steps_hold_every_mixture(decoder: Decoder) -> None:
    steps = step_times.measured_steps(decoder, limits=Limits())
    assert max(step.decodes for step in steps) == 16
    assert {1, 2, 4, 8, 16} <= {step.decodes for step in steps}
    assert max(step.prefill_tokens for step in steps) == 48
    assert all(step.seconds > 0 for step in steps)


def test_an_open_loop_gets_every_token_of_every_answer(decoder: Decoder) -> None:
    asked = traffic.together([0.0, 0.0, 0.01, 0.1, 0.1], [3, 40, 20, 9, 1], [5, 1, 8, 30, 2])
    with in_this_process(decoder, model="target") as (front, url):
        loaded = load.open_loop(url, asked)
        assert not loaded.refused
        for moments, request in zip(loaded.run.moments, asked, strict=True):
            assert moments.request is request
            assert len(moments.token_s) == request.output_tokens
            assert moments.token_s == sorted(moments.token_s)
            assert request.arrival_s < moments.first_token_s <= moments.finished_s <= loaded.run.end_s
        assert front.engine.metrics.generation_tokens == loaded.run.output_tokens == 46
        assert front.engine.metrics.prompt_tokens == 73


def test_an_open_loop_counts_who_was_turned_away(decoder: Decoder) -> None:
    limits = Limits(slots=1, token_budget=4, most_waiting=1)
    asked = traffic.together([0.0] * 12, [150] * 12, [20] * 12)
    with in_this_process(decoder, model="target", limits=limits) as (_, url):
        loaded = load.open_loop(url, asked)
    shed = sum(moments.shed for moments in loaded.run.moments)
    assert loaded.refused == {429: shed}
    assert 0 < shed < 12
    assert len(loaded.run.served) == 12 - shed


def test_prompts_are_as_long_as_asked_and_differ() -> None:
    one, other = (load.text_of(traffic.Request(0.0, 33, 1), place) for place in (1, 2))
    assert len(one) == len(other) == 33
    assert one != other


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="invalid choice"):
        running.start("nobody")


def test_the_mean_step_needs_only_the_sums() -> None:
    steps = records(TRUE)
    totals = {"steps_total": float(len(steps))} | {
        f"step_{name}_total": float(sum(getattr(step, name) for step in steps)) for name in StepContents._fields
    }
    mean = sum(step.seconds for step in steps) / len(steps)
    assert step_times.mean_step_s(TRUE, totals) == pytest.approx(mean)


def test_metrics_tell_what_was_in_the_steps(decoder: Decoder) -> None:
    engine = Engine(decoder, limits=Limits())
    for length in (5, 60):
        engine.submit(Order(prompt=[2] * length, max_tokens=4, temperature=0))
    while engine.step():
        pass
    assert engine.metrics.steps == len(engine.steps)
    assert engine.metrics.in_steps == [sum(column) for column in list(zip(*engine.steps, strict=True))[:3]]
    assert engine.metrics.in_steps[:2] == [65, 6]
