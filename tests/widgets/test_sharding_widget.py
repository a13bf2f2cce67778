"""The sharding map and its explorer, from state to text: no browser needed."""

import itertools
import re

import pytest

from threeloops.figures.training_loop.sharding_map import LEFT, WIDTH, Piece, sharding_map
from threeloops.models import catalogue, parameters
from threeloops.simulate.training_loop.sharding import Grid, Parameter, stored_bytes
from threeloops.training_loop.memory import rank_states
from threeloops.widgets.training_loop import sharding as widget
from threeloops.widgets.training_loop.sharding_view import (
    MODELS,
    RECOMPUTE,
    SEQUENCES,
    WAYS,
    State,
    ranks,
    sent_bytes,
    view,
)

FINE = {"way": "zero-3", "model": "llama-3-8b", "sequence": 4096, "recompute": "none"}
every_way = pytest.mark.parametrize("way", WAYS.values())


def drawn(state: State) -> list[dict[str, object]]:
    return view(state).figure.body["layer"][1]["data"]["values"]


def area(pieces: list[dict[str, object]]) -> float:
    return sum((piece["x2"] - piece["x"]) * (piece["y2"] - piece["y"]) for piece in pieces)


# --- the map ---


@every_way
def test_equal_areas_are_equal_bytes(way: str) -> None:
    state = State(**{**FINE, "way": way})
    per_byte = []
    for gpu, held in enumerate(ranks(state)):
        for kind, amount in (
            ("weights", held.states.weights_bytes),
            ("optimiser state", held.states.optimiser_bytes),
            ("activations", held.activations_bytes),
        ):
            mine = [
                piece
                for piece in drawn(state)
                if piece["words"].startswith(f"GPU {gpu + 1}:") and piece["kind"] == kind
            ]
            per_byte.append(area(mine) / amount)
    assert max(per_byte) == pytest.approx(min(per_byte))


@every_way
def test_the_scale_stays_while_one_goes_through_the_ways(way: str) -> None:
    weights = [piece for piece in drawn(State(**{**FINE, "way": way})) if piece["kind"] == "weights"]
    reference = [piece for piece in drawn(State(**{**FINE, "way": "ddp"})) if piece["kind"] == "weights"]
    height = reference[0]["y2"] - reference[0]["y"]
    for piece in weights:  # norms stand whole on every tensor rank
        assert piece["y2"] - piece["y"] == pytest.approx(height, rel=1e-3)


@pytest.mark.parametrize("way", ["zero-3", "tp", "pp"])
def test_four_gpus_together_hold_the_model_once(way: str) -> None:
    spans = [
        (piece["x"], piece["x2"])
        for piece in drawn(State(**{**FINE, "way": way}))
        if piece["kind"] == "optimiser state"
    ]
    # all maps laid over one another
    covered = sorted(((left - LEFT) % (WIDTH + LEFT), (right - LEFT) % (WIDTH + LEFT)) for left, right in spans)
    for (_, right), (left, _) in itertools.pairwise(covered):
        assert left == pytest.approx(right, abs=0.01)
    assert covered[-1][1] - covered[0][0] == pytest.approx(WIDTH)


def test_a_map_needs_slots_with_a_height() -> None:
    piece = Piece(gpu=0, kind="weights", left=0, right=1, height=2, words="all of it")
    with pytest.raises(ValueError, match=re.escape("slots[weights]=0 must be")):
        sharding_map(
            [piece], slots={"weights": 0}, names=["GPU 1"], title="A finding", caption="What to see.", alt="Words."
        )
    with pytest.raises(ValueError, match="kind='masters' is not known"):
        Piece(gpu=0, kind="masters", left=0, right=1, height=2, words="none")


# --- from state to text ---


@pytest.mark.parametrize(
    ("way", "stage", "tp"), [("ddp", 0, 1), ("zero-1", 1, 1), ("zero-2", 2, 1), ("zero-3", 3, 1), ("tp", 0, 4)]
)
def test_the_shares_are_those_of_a_count(way: str, stage: int, tp: int) -> None:
    """A model small enough to deal out value by value, in the proportions that the explorer shows for a large one."""
    weights = [Parameter(name="w", size=240, kind="split", stage=0)]
    counted = stored_bytes(
        weights, Grid(dp=4 // tp, tp=tp, pp=1), zero_stage=stage, matrix_bytes=(2, 2, 12), other_bytes=(2, 2, 12)
    )[0, 0]
    total = parameters.model_parameters(catalogue.model("llama-3-8b")).total
    for held in ranks(State(**{**FINE, "way": way})):
        # norms stand whole on every tensor rank
        assert held.states.weights_bytes / total == pytest.approx(counted.weights / 240, rel=1e-3)
        assert held.states.gradients_bytes / total == pytest.approx(counted.gradients / 240, rel=1e-3)
        assert held.states.optimiser_bytes / total == pytest.approx(counted.optimiser / 240, rel=1e-3)


def test_pipeline_stages_add_up_to_the_model() -> None:
    model = catalogue.model("llama-3-8b")
    whole = rank_states.model_states(
        parameters=rank_states.ParameterBuckets(split_matrices=parameters.model_parameters(model).total),
        recipe="zero-paper",
        zero_stage=0,
        dp=1,
        tp=1,
        pp=1,
    )
    assert sum(held.states.total_bytes for held in ranks(State(**{**FINE, "way": "pp"}))) == pytest.approx(
        whole.total_bytes, rel=1e-6
    )


def test_data_parallel_ways_keep_their_activations() -> None:
    each = {way: ranks(State(**{**FINE, "way": way}))[0].activations_bytes for way in WAYS.values()}
    assert each["ddp"] == each["zero-1"] == each["zero-2"] == each["zero-3"]
    assert each["tp"] < 0.3 * each["ddp"]


def test_stage_three_sends_half_as_much_again() -> None:
    sent = {way: sent_bytes(State(**{**FINE, "way": way})) for way in WAYS.values()}
    assert sent["zero-1"] == sent["zero-2"] == sent["ddp"]
    assert sent["zero-3"] == pytest.approx(1.5 * sent["ddp"])
    assert sent["pp"] < 0.02 * sent["ddp"]


def test_the_summary_says_what_fits() -> None:
    assert view(State(**FINE)).summary.startswith(
        "ZeRO-3 (FSDP): the fullest GPU holds 59.7 GB and has room on an 80 GB card"
    )
    assert "does not fit" in view(State(**{**FINE, "way": "ddp"})).summary
    assert "1.00 copies" in view(State(**FINE)).summary
    assert "4.00 copies" in view(State(**{**FINE, "way": "ddp"})).summary


@every_way
def test_every_setting_can_be_shown(way: str) -> None:
    for model, sequence, recompute in itertools.product(
        MODELS.values(), (SEQUENCES[0], SEQUENCES[-1]), RECOMPUTE.values()
    ):
        shown = view(State(way=way, model=model, sequence=sequence, recompute=recompute))
        assert len(shown.rows) == 4
        assert shown.table.count("<tr>") == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"way": "zero-4"}, "way='zero-4' is not known"),
        ({"model": "gpt-5"}, "model='gpt-5' is not known"),
        ({"sequence": 3000}, "sequence=3000 must be one of 1024, 2048, 4096, 8192"),
        ({"recompute": "some"}, "recompute='some' is not known"),
    ],
)
def test_impossible_states_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        State(**{**FINE, **change})


# --- the controls ---


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(way="tp")
    assert explorer.state.way == "tp"
    assert explorer.view.summary.startswith("Tensor parallelism")
    assert explorer.panel.shown != before
    explorer.turn(sequence=8192)
    explorer.turn(recompute="full")
    explorer.turn(model="llama-2-13b")
    assert explorer.state == State(way="tp", model="llama-2-13b", sequence=8192, recompute="full")
