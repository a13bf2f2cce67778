"""Data parallelism: what is predicted about replicas, buckets and all-reduces, against processes that really exchange
gradients.
"""

import json
import sys
from itertools import chain, pairwise

import pytest

from threeloops.figures import still
from threeloops.figures.training_loop import bucket_curve, chunk_steps
from threeloops.measure.training_loop import all_reduces, replicas
from threeloops.simulate.training_loop.collectives import random_vectors, simulated
from threeloops.simulate.training_loop.contributions import Pieces, watched, whose
from threeloops.simulate.training_loop.ring import hierarchical_all_reduce
from threeloops.training_loop.network import collectives, gradient_buckets
from threeloops.units import KiB, MiB

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel counters are Linux's")
RANKS = 4


# --- replicas -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    return replicas.replicas(replicas.WAYS, ranks=RANKS, steps=4)


def test_averaged_gradients_keep_replicas_equal_to_the_last_bit(trained):
    for way in ("averaged", "ddp"):
        assert [trained[way].spread(step) for step in range(4)] == [0, 0, 0, 0]
    # rank 0's start, the same gradients
    assert trained["ddp"].weights[0][3] == pytest.approx(trained["averaged"].weights[0][3], abs=1e-6)


def test_what_averaging_cannot_repair(trained):
    assert trained["not averaged"].spread(3) > trained["not averaged"].spread(0) > 0.1
    for way in ("other start", "ddp, touched"):  # the same updates to different weights: the distance stays
        assert trained[way].spread(3) == pytest.approx(trained[way].spread(0), rel=1e-5)
        assert trained[way].spread(0) > 0.1


def test_the_number_of_ranks_does_not_change_the_training(trained):
    (alone,) = replicas.replicas(["averaged"], ranks=1, steps=4)["averaged"].weights
    assert alone[3] == pytest.approx(trained["averaged"].weights[2][3], abs=1e-6)


def test_refused_replicas():
    with pytest.raises(ValueError, match="way='by hope'"):
        replicas.replicas(["by hope"], ranks=2, steps=1)
    with pytest.raises(ValueError, match="ranks=5 must divide samples=48"):
        replicas.replicas(["ddp"], ranks=5, steps=1)


# --- buckets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap_mib", [None, 1, 2])
def test_ddp_packs_gradients_as_predicted(cap_mib):
    widths = (256, 512, 768, 512, 1024, 256)
    first_cap, cap = (MiB, 25 * MiB) if cap_mib is None else (cap_mib * MiB, cap_mib * MiB)
    gradients = [4 * before * after for before, after in pairwise(widths)][::-1]
    first, second, third = replicas.ddp_buckets(widths, cap_mib=cap_mib, ranks=RANKS, passes=3)
    assert first.sizes_bytes == (sum(gradients),)  # DDP first watches the order
    assert second.sizes_bytes == gradient_buckets.packed(gradients, first_cap_bytes=first_cap, cap_bytes=cap)
    assert third == second
    assert sum(second.parameters) == len(gradients)


def test_a_bucket_is_closed_when_it_is_full():
    packed = gradient_buckets.packed
    assert packed([5, 5, 5, 5], first_cap_bytes=1, cap_bytes=10) == (5, 10, 5)
    assert packed([5, 5, 5, 5], first_cap_bytes=100, cap_bytes=1) == (20,)
    assert packed([], first_cap_bytes=1, cap_bytes=1) == ()
    with pytest.raises(ValueError, match="cap_bytes=0"):
        packed([5], first_cap_bytes=1, cap_bytes=0)


# --- all-reduces by hand ------------------------------------------------------------------------


@linux
def test_bytes_on_the_wire_are_those_of_the_simulators():
    size = 512 * KiB
    for name, traffic in all_reduces.handmade_traffic(*all_reduces.ALGORITHMS, ranks=RANKS, size_bytes=size).items():
        if name == "hierarchical":
            run = hierarchical_all_reduce(random_vectors(ranks=RANKS, elements=size // 8, seed=0), ranks_per_node=2)
        else:
            run = simulated(op="all_reduce", algorithm=name, ranks=RANKS, elements=size // 8)
        for source in range(RANKS):
            for destination in range(RANKS):
                counted = run.link_bytes.get((source, destination), 0)
                # headers
                assert counted <= traffic.sent_bytes[source][destination] <= counted + 0.002 * size, (
                    name,
                    source,
                    destination,
                )


def test_times_are_measured_for_every_algorithm():
    took = all_reduces.handmade_seconds("ring", "through-root", ranks=2, size_bytes=4 * KiB, repeats=2)
    assert set(took) == {"ring", "through-root"}
    assert all(0 < seconds < 10 for seconds in took.values())


def test_refused_all_reduces():
    with pytest.raises(ValueError, match="ranks=3 must be a power of two"):
        all_reduces.handmade_seconds("ring", ranks=3, size_bytes=12)
    with pytest.raises(ValueError, match="algorithm='star'"):
        all_reduces.handmade_seconds("star", ranks=2, size_bytes=8)


# --- watched ------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "binomial-tree", "through-root"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_every_piece_gains_ranks_until_it_has_all(algorithm, ranks):
    states = watched(algorithm, ranks=ranks)
    assert len(states) == 1 + simulated(op="all_reduce", algorithm=algorithm, ranks=ranks, elements=ranks).steps
    assert [[whose(piece) for piece in row] for row in states[0]] == [[(rank,)] * ranks for rank in range(ranks)]
    for before, after in pairwise(states):
        assert all(
            set(whose(a)) <= set(whose(b)) for a, b in zip(chain(*before), chain(*after), strict=True)
        )  # nobody is lost, or added twice
    assert set(chain(*states[-1])) == {2**ranks - 1}


def test_a_ring_has_its_diagonal_complete_halfway():
    states = watched("ring", ranks=5)
    complete = {(rank, piece) for rank in range(5) for piece in range(5) if states[4][rank][piece] == 2**5 - 1}
    assert len(complete) == 5
    assert {rank for rank, _ in complete} == {piece for _, piece in complete} == set(range(5))


def test_unwatched_runs_keep_no_states():
    assert simulated(op="all_reduce", algorithm="ring", ranks=4, elements=8).states == ()


def test_a_rank_that_is_added_twice_is_refused():
    with pytest.raises(AssertionError, match="added twice"):
        Pieces([1, 2]) + Pieces([1, 4])


# --- pictures -----------------------------------------------------------------------------------


def test_chunk_steps_draws_what_the_simulator_did():
    figure = chunk_steps.chunk_steps("ring", ranks=4, title="A finding", caption="What to see.")
    panels = figure.body["concat"]
    assert len(panels) == 7
    assert [sum(cell["new"] for cell in panel["data"]["values"]) for panel in panels] == [0, 4, 4, 4, 4, 4, 4]
    assert [sum(cell["held"] for cell in panel["data"]["values"]) for panel in panels] == [16, 20, 28, 40, 52, 60, 64]
    assert "Step 6: 4 pieces arrive, 16 of 16 are complete." in figure.alt
    assert json.dumps(figure.spec)
    assert "step 3" in still.svg(figure.spec)


def test_bucket_curve_draws_what_it_was_given():
    figure = bucket_curve.bucket_curve(
        {"few": [(1e6, 2.0), (1e8, 1.0)]}, marks={"default": 26e6}, title="A finding", caption="What to see."
    )
    lines, rule, _ = (layer["data"]["values"] for layer in figure.body["layer"])
    assert [(row["run"], row["mb"], row["s"]) for row in lines] == [("few", 1, 2.0), ("few", 100, 1.0)]
    assert rule[0]["mb"] == 26
    assert "least 1.00 s at 100 MB" in figure.alt
    assert "default" in still.svg(figure.spec)
    with pytest.raises(ValueError, match="0 curves"):
        bucket_curve.bucket_curve({}, marks={}, title="a", caption="b")


def test_more_ranks_and_more_bytes_cost_what_the_model_says():
    """The chapter's 8,000 ranks: the latency of a ring grows with their number, its bytes hardly do."""
    few, many = (
        collectives.collective_time(
            op="all_reduce", algorithm="ring", ranks=n, size_bytes=25e6, alpha_s=5e-6, bytes_per_s_one_way=50e9
        )
        for n in (8, 8000)
    )
    assert many.latency_s == pytest.approx(2 * 7999 * 5e-6)  # 80 ms
    assert many.bandwidth_s / few.bandwidth_s == pytest.approx(2 / 1.75, rel=1e-3)
