"""The KV explorer and its figure, from state to text: no browser needed."""

import re

import pytest

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.widgets.product_loop import kv as widget
from threeloops.widgets.product_loop.kv_view import CARDS, FORMATS, MODELS, SHARE, TOKENS, State, possible_tp, view

FINE = {"model": "llama-3-8b", "card": "h100-sxm5", "tp": 1, "kept_in": "bf16", "tokens": 8192, "requests": 32}


def test_the_summary_says_bytes_and_how_many_fit() -> None:
    """32 requests of exactly 1 GiB each beside 8.03 billion weights of two bytes."""
    shown = view(State(**FINE))
    assert "34.4 GB of cache beside 16.1 GB of weights" in shown.summary
    assert "Most that fit: 55." in shown.summary
    assert shown.figure.title.startswith("It fits")


def test_it_fits_exactly_as_often_as_the_table_says() -> None:
    most = int(re.search(r"fit: (\d+)", view(State(**FINE)).summary)[1])  # type: ignore[index]
    budget, always, request = SHARE * hardware.part("h100-sxm5")["usable_bytes"], 2 * 8_030_261_248 + 3e9, 2**30
    assert always + most * request <= budget < always + (most + 1) * request
    assert view(State(**FINE | {"requests": 64})).figure.title.startswith("It does not fit")
    assert view(State(**FINE | {"model": "llama-3-70b"})).figure.title == "Nothing is left for the cache"
    assert view(State(**FINE | {"model": "llama-3-70b"})).rows[0][3] == "0"


def test_every_state_can_be_shown() -> None:
    for key in MODELS.values():
        for tp in possible_tp(catalogue.model(key)):
            for kept_in in FORMATS:
                for tokens in (TOKENS[0], TOKENS[-1]):
                    shown = view(State(**FINE | {"model": key, "tp": tp, "kept_in": kept_in, "tokens": tokens}))
                    assert [row[0] for row in shown.rows] == list(FORMATS)
                    fits = [int(row[3].replace(",", "")) for row in shown.rows]
                    bf16, fp8, int8, nvfp4 = fits
                    assert bf16 <= int8 <= fp8 <= nvfp4
    assert all(view(State(**FINE | {"card": card})).rows for card in CARDS.values())


def test_only_degrees_over_which_the_heads_split_are_offered() -> None:
    assert possible_tp(catalogue.model("qwen2.5-7b")) == (1, 2, 4)  # 28 query heads
    assert possible_tp(catalogue.model("llama-3-8b")) == (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "gpt2"}, "model='gpt2' is not known"),
        ({"kept_in": "int3"}, "kept_in='int3' is not known"),
        ({"tokens": 8000}, "tokens=8000 must be one of 512"),
        ({"tp": 3}, "tp=3 must be one of 1, 2, 4, 8"),
    ],
)
def test_impossible_states_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**{**FINE, **change})


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(kept_in="fp8")
    assert "17.2 GB of cache" in explorer.view.summary
    assert explorer.panel.shown != before


def test_another_model_takes_a_number_of_gpus_that_it_can_have() -> None:
    explorer = widget.explorer(State(**FINE | {"tp": 8}))
    explorer.turn(model="qwen2.5-7b")
    assert explorer.state.tp == 4
    explorer.turn(model="deepseek-v3")
    explorer.turn(tp=8)
    assert explorer.state.tp == 8
