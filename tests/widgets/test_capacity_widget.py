"""The capacity explorer, from state to text: no browser needed."""

import itertools
import random

import pytest

from threeloops.figures import still
from threeloops.widgets.product_loop import capacity_plan
from threeloops.widgets.product_loop.capacity_plan_view import ITLS, OUTPUTS, PROMPTS, RATES, State, gpu, plan, view

CHAT = State(rate=40, prompt=1500, output=300, itl_ms=30)


def test_the_chapters_load_takes_five() -> None:
    shown = view(CHAT)
    assert shown.figure.title == "5 GPUs: the rate decides"
    assert [row[0] for row in shown.rows] == ["ITL", "rate"]
    assert "rate 4.2; rate is the largest" in shown.figure.alt
    assert "4.2 ← decides" in still.svg(shown.figure.spec)


def test_every_state_has_a_plan_that_keeps_its_itl() -> None:
    states = list(itertools.product(RATES, PROMPTS, OUTPUTS, ITLS))
    for rate, prompt, output, itl_ms in random.Random(2).sample(states, 120):
        shown = view(State(rate=rate, prompt=prompt, output=output, itl_ms=itl_ms))
        gap_ms = shown.summary.rpartition("tokens are ")[2].removesuffix(" ms apart.")
        assert float(gap_ms) <= itl_ms * 1.01


def test_each_bound_decides_somewhere() -> None:
    assert plan(CHAT)[1].binding == "rate"
    assert plan(State(rate=5, prompt=500, output=8000, itl_ms=50))[1].binding == "rate"
    assert plan(State(rate=80, prompt=500, output=150, itl_ms=6))[1].binding == "itl"


def test_double_the_load_takes_double() -> None:
    one, two = (plan(State(rate=rate, prompt=500, output=300, itl_ms=20))[1] for rate in (20, 40))
    assert (two.itl, two.rate) == pytest.approx((2 * one.itl, 2 * one.rate))


def test_the_remedy_is_for_the_largest_piece_of_the_work() -> None:
    """Chat reads prompts, long answers read caches."""
    chat, essay = view(CHAT), view(State(rate=5, prompt=500, output=8000, itl_ms=50))
    assert "prefixes that hit" in chat.rows[1][2]
    assert "cached token" in essay.rows[1][2]
    assert "73.8 ms of a GPU: prefill 48.7 ms" in chat.summary


def test_turning_a_control_changes_what_is_shown() -> None:
    made = capacity_plan.explorer()
    before = made.view.summary
    made.turn(itl_ms=6)
    assert made.state.itl_ms == 6
    assert made.view.summary != before
    assert made.view.summary == view(made.state).summary
    assert "ITL decides" in made.view.summary
    assert made.view.table.count("<tr>") == 3
    data, about = made._repr_mimebundle_()
    assert "GPUs: the ITL decides" in data["text/plain"]
    assert about["image/png"]["alt"]


def test_states_that_no_control_offers_are_refused() -> None:
    with pytest.raises(ValueError, match="rate=3 must be one of 1, 2, 5"):
        State(rate=3, prompt=1500, output=300, itl_ms=30)
    assert gpu().num_gpus == 1
