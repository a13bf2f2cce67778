"""The scaling explorer, from state to text: no browser needed."""

import re

import pytest

from threeloops.figures import still
from threeloops.figures.training_loop import scaling_curve
from threeloops.simulate.training_loop import overlapped_step
from threeloops.widgets.training_loop import scaling as widget
from threeloops.widgets.training_loop.scaling_view import (
    BATCHES,
    BILLIONS,
    BUCKETS,
    CARDS,
    GPUS,
    OVERHEAD_S,
    State,
    exchange_s,
    most_gpus,
    step,
    view,
)

FINE = {"gpus": 1024, "billions": 8, "batch_tokens": 2**20, "cards": 8}


# --- from state to text ---


def test_the_summary_says_what_it_is_worth() -> None:
    shown = view(State(**FINE))
    assert (
        shown.summary
        == "1,024 GPUs: a step takes 198 ms, and for 78.4 ms of it they wait for the exchange. Efficiency 50.3 %: as"
        " much as 515 GPUs that never wait."
    )
    assert shown.figure.title == "1,024 GPUs work like 515"
    assert "1,024 GPUs" in shown.figure.alt


def test_one_gpu_is_perfect_and_waits_for_nobody() -> None:
    for billions in BILLIONS:
        shown = view(State(gpus=1, billions=billions, batch_tokens=2**24, cards=8))
        assert "no GPU waits" in shown.summary
        assert shown.summary.endswith("Efficiency 100 %: as much as 1 GPU that never waits.")


@pytest.mark.parametrize("gpus", [8, 64, 512, 1024])
def test_a_step_is_as_long_as_a_clock_says(gpus: int) -> None:
    """A device and a link, played bucket by bucket by a player that knows no formula."""
    found = step(gpus, 8, 2**20, 8)
    send_s = exchange_s(gpus, 8, 8)
    played = overlapped_step.play(
        forward_s=found.compute_s / 3,
        slices_s=[2 * found.compute_s / 3 / BUCKETS] * BUCKETS,
        sends_s=[send_s / BUCKETS] * BUCKETS,
        update_s=OVERHEAD_S,
    )
    assert played.finished_s == pytest.approx(found.total_s, rel=1e-9)
    rows = {row[0]: row[2] for row in view(State(gpus=gpus, billions=8, batch_tokens=2**20, cards=8)).rows}
    assert rows["exchange, waited for"] == f"{100 * played.device_waits_s / played.finished_s:#.3g} %"


def test_a_larger_batch_helps_and_more_gpus_never_help_efficiency_within_the_network() -> None:
    def worth(**change: int) -> float:
        found = re.search(r"Efficiency ([\d.]+) %", view(State(**{**FINE, **change})).summary)
        assert found
        return float(found[1])

    batches = [worth(batch_tokens=batch) for batch in BATCHES if most_gpus(batch) >= 1024]
    assert batches == sorted(batches)
    assert len(batches) > 3
    gpus = [worth(gpus=number) for number in GPUS if number <= most_gpus(2**20)]
    assert gpus == sorted(gpus, reverse=True)


def test_one_card_for_eight_gpus_brings_the_bend_forward() -> None:
    waits = [step(256, 8, 2**20, cards).total_s for cards in (8, 1)]
    assert waits[1] > 1.9 * waits[0]
    assert step(8, 8, 2**20, 8) == step(8, 8, 2**20, 1)  # one node needs no card
    # An eighth of 16 GB crosses the network for each GPU, twice: by one card for eight in eight times the time.
    between = [exchange_s(1024, 8, cards) - exchange_s(8, 8, cards) for cards in (8, 1)]
    assert between[1] / between[0] == pytest.approx(8, rel=0.02)


def test_every_setting_can_be_shown() -> None:
    for batch in BATCHES:
        for billions in BILLIONS:
            for cards in CARDS.values():
                shown = view(State(gpus=most_gpus(batch), billions=billions, batch_tokens=batch, cards=cards))
                assert shown.table.count("<tr>") == 1 + len(shown.rows)
                assert shown.text.count("\n") == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": 3}, "gpus=3 must be one of 1, 2, 4"),
        ({"billions": 7}, "billions=7 must be one of 1, 3, 8, 30, 70"),
        ({"batch_tokens": 1000}, "batch_tokens=1000 must be one of"),
        ({"cards": 4}, "cards=4 must be one of 8, 1"),
        ({"gpus": 2048}, "gpus=2048 must be at most 1024: a batch of 1,048,576 tokens has no more sequences"),
    ],
)
def test_impossible_states_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**{**FINE, **change})


# --- the figure ---


def test_the_figure_has_both_lines_and_the_mark() -> None:
    figure = view(State(**FINE)).figure
    drawn = still.svg(figure.spec)
    assert "perfect" in drawn
    assert "1,024 GPUs:" in drawn
    lines = figure.body["layer"][0]["data"]["values"]
    perfect = [row["rate"] / row["gpus"] for row in lines if row["line"] == "perfect"]
    assert perfect == pytest.approx([perfect[0]] * len(perfect))
    assert len(perfect) == 11  # 1 to 1,024 GPUs: the last batch of 2^20 tokens that has a sequence for each


def test_curves_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="over the same numbers"):
        scaling_curve.scaling_curve([(1, 1.0), (2, 2.0)], [(1, 1.0), (4, 4.0)], here=(1, 1.0), title="a", caption="b")
    with pytest.raises(ValueError, match="tokens_per_s=0"):
        scaling_curve.scaling_curve([(1, 1.0), (2, 0.0)], [(1, 1.0), (2, 2.0)], here=(1, 1.0), title="a", caption="b")


# --- the controls ---


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(gpus=64)
    assert explorer.state.gpus == 64
    assert explorer.view.summary.startswith("64 GPUs:")
    assert explorer.panel.shown != before


def test_a_smaller_batch_takes_gpus_away_and_a_larger_one_offers_them_again() -> None:
    explorer = widget.explorer()
    explorer.turn(batch_tokens=2**18)
    assert explorer.state.gpus == 256
    assert explorer.controls["gpus"].ends == (1, 256)
    explorer.turn(batch_tokens=2**24)
    assert explorer.state.gpus == 256
    assert explorer.controls["gpus"].ends == (1, 4096)
