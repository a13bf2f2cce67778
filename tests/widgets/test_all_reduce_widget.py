"""The all-reduce explorer, from state to text: no browser needed."""

import pytest

from threeloops.simulate.training_loop.collectives import simulated
from threeloops.training_loop.network.collectives import bus_factor
from threeloops.widgets.training_loop import all_reduce as widget
from threeloops.widgets.training_loop.all_reduce_view import ALGORITHMS, State, played, rank_choices, view


@pytest.mark.parametrize("algorithm", ALGORITHMS.values())
def test_every_step_of_every_setting_ends_where_the_plain_simulation_ends(algorithm: str) -> None:
    for ranks in rank_choices(algorithm):
        last = played(algorithm, ranks).steps
        shown = [view(State(algorithm=algorithm, ranks=ranks, step=step)) for step in range(last + 1)]
        assert [row[3] for row in shown[-1].rows] == [f"{ranks}"] * ranks, "every rank has every piece"
        assert all(row[3] == "0" for row in shown[0].rows)
        plain = simulated(op="all_reduce", algorithm=algorithm, ranks=ranks, elements=840)
        assert plain.steps == last
        assert [row[4] for row in shown[-1].rows] == [f"{sent / (840 * 8):.3g}" for sent in plain.sent_bytes]
        assert max(plain.sent_bytes) / (840 * 8) >= bus_factor(op="all_reduce", ranks=ranks) - 1e-9


def test_what_is_sent_in_a_step_is_received_in_it() -> None:
    rows = view(State(algorithm="ring", ranks=4, step=1)).rows
    assert [row[1:3] for row in rows] == [
        ("to 1", "from 3"),
        ("to 2", "from 0"),
        ("to 3", "from 1"),
        ("to 0", "from 2"),
    ]
    assert view(State(algorithm="through-root", ranks=3, step=1)).rows[2][1:3] == ("nothing", "nothing")


def test_another_algorithm_takes_ranks_that_it_can_have_and_begins_anew() -> None:
    explorer = widget.explorer(State(algorithm="ring", ranks=6, step=7))
    explorer.turn(algorithm="halving-doubling")
    assert explorer.state == State(algorithm="halving-doubling", ranks=4, step=0)


def test_times_of_a_chosen_gpu_stand_beside_the_steps() -> None:
    explorer = widget.explorer(State(algorithm="ring", ranks=8, step=0))
    explorer.turn(timed="h100-sxm5")
    assert "On 8 H100 of a node NCCL takes" in view(explorer.state).summary
    # 2 × 7/8 of the bytes in that time: 445 GB/s of bus bandwidth, as nccl-tests reckons it
    assert "2.11 ms for 512 MiB" in view(explorer.state).summary
    assert (
        "Of H100, 2, 4 and 8 were timed." in view(State(algorithm="ring", ranks=5, step=0, timed="h100-sxm5")).summary
    )
    with pytest.raises(ValueError, match="timed='v100'"):
        State(algorithm="ring", ranks=4, step=0, timed="v100")


def test_states_that_cannot_be_are_one_sentence() -> None:
    with pytest.raises(ValueError, match="ranks=6 must be one of 2, 4, 8 for 'halving-doubling'"):
        State(algorithm="halving-doubling", ranks=6, step=0)
    with pytest.raises(ValueError, match="step=7 must be at most 6"):
        State(algorithm="ring", ranks=4, step=7)
    with pytest.raises(ValueError, match="algorithm='tree'"):
        State(algorithm="tree", ranks=4, step=0)
