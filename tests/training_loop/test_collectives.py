"""Times of collectives: against published tables, the step-by-step count in simulate/, limits, scaling and
refusals.
"""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import each

from threeloops.simulate.training_loop import ring
from threeloops.simulate.training_loop.collectives import random_vectors, simulated
from threeloops.training_loop.network.collective_algorithms import algorithms, is_pipelined, tree_depth_steps
from threeloops.training_loop.network.collective_limits import crossover, lower_bound, optimal_chunks
from threeloops.training_loop.network.collectives import (
    algbw_bytes_per_s,
    bus_factor,
    busbw_bytes_per_s,
    card_bytes_per_s,
    collective_time,
    hierarchical_all_reduce,
)

LINK = {"alpha_s": 5e-6, "bytes_per_s_one_way": 50e9}
OPS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "send_recv")
PAIRS = [(op, algorithm) for op in OPS for algorithm in algorithms(op)]
TREES = ("pipelined-tree", "double-tree")
SPARE_STEPS = {("broadcast", "double-tree"): 1, ("reduce", "double-tree"): 1, ("all_reduce", "double-tree"): 2}
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
ALGORITHMS = ("ring", "halving-doubling", "binomial-tree", "pipelined-tree", "double-tree", "through-root")


def exists(op, algorithm, ranks):
    return algorithm != "halving-doubling" or op == "all_reduce" or ranks & (ranks - 1) == 0


def time_of(op, algorithm, *, chunks=6, **inputs):
    return collective_time(
        op=op, algorithm=algorithm, chunks=chunks if is_pipelined(op=op, algorithm=algorithm) else None, **inputs
    )


# Published anchors


@pytest.mark.parametrize(
    ("size_bytes", "microseconds", "algbw", "busbw"),
    [
        # all_reduce_perf on eight GPUs, github.com/kvcache-ai/Mooncake pull request 3484: size, time, algbw and busbw
        # as printed, GB/s
        (1048576, 27.76, 37.78, 66.11),
        (8388608, 81.16, 103.36, 180.88),
        (33554432, 195.40, 171.72, 300.51),
    ],
)
def test_bandwidths_as_nccl_tests_prints_them(size_bytes, microseconds, algbw, busbw):
    seconds = microseconds * 1e-6
    assert algbw_bytes_per_s(size_bytes=size_bytes, seconds=seconds) / 1e9 == pytest.approx(algbw, abs=0.02)
    assert busbw_bytes_per_s(op="all_reduce", ranks=8, size_bytes=size_bytes, seconds=seconds) / 1e9 == pytest.approx(
        busbw, abs=0.02
    )


def test_ring_all_reduce_of_one_gigabyte_over_nvlink():
    # 8 ranks, 450 GB/s one way: each link carries 2 * 7/8 GB = 1.75 GB; 1.75 / 450 s = 3.889 ms
    assert time_of(
        "all_reduce", "ring", size_bytes=1e9, ranks=8, alpha_s=0, bytes_per_s_one_way=450e9
    ).total_s == pytest.approx(3.889e-3, rel=1e-4)


def test_small_all_reduce_on_many_ranks_is_latency():
    # 1024 ranks, 1 MB, alpha 5 us, 50 GB/s: 2046 steps * 5 us = 10.23 ms, and about 2 MB / 50 GB/s = 0.04 ms
    time = time_of("all_reduce", "ring", size_bytes=1e6, ranks=1024, **LINK)
    assert (time.latency_s, time.bandwidth_s) == (pytest.approx(10.23e-3), pytest.approx(0.04e-3, rel=2e-3))


def test_latency_of_a_ring_as_nccl_models_it():
    # NCCL, src/graph/tuning.cc: ring, protocol Simple, over NVLink: 8.4 us once and 3.4 us per step. 8 ranks take 2 *
    # 7 steps: 8.4 + 14 * 3.4 = 56.0 us.
    links = {"alpha_s": 3.4e-6, "bytes_per_s_one_way": 450e9}
    assert time_of("all_reduce", "ring", size_bytes=4, ranks=8, startup_s=8.4e-6, **links).total_s == pytest.approx(
        56.0e-6, rel=1e-5
    )


# Independent count


@each(("op", "algorithm", "ranks"), [(*pair, ranks) for pair in PAIRS for ranks in COUNTS])
def test_time_steps_and_bytes_are_those_of_the_simulation(op, algorithm, ranks):
    if not exists(op, algorithm, ranks):
        return
    for chunks in (1, 2, 5, 12) if is_pipelined(op=op, algorithm=algorithm) else (1,):
        elements = 60 * ranks  # divisible by the ranks and by every chunk count
        run = simulated(op=op, algorithm=algorithm, ranks=ranks, elements=elements, chunks=chunks)
        time = time_of(
            op, algorithm, size_bytes=8 * elements, ranks=ranks, chunks=chunks, alpha_s=1e-7, bytes_per_s_one_way=1e9
        )
        spare = time.steps - run.steps
        assert 0 <= spare <= SPARE_STEPS.get((op, algorithm), 0)
        step_s = 1e-7 + 8 * elements / chunks / 1e9
        assert time.total_s == pytest.approx(
            run.seconds(alpha_s=1e-7, bytes_per_s_one_way=1e9) + spare * step_s, rel=1e-9
        )
        assert time.sent_bytes_per_rank == pytest.approx(max(run.sent_bytes), rel=1e-9)


@given(ranks=st.integers(2, 13), elements=st.integers(13, 200), pair=st.sampled_from(PAIRS), chunks=st.integers(1, 9))
def test_uneven_pieces_cost_less_than_one_element_per_step_and_piece(ranks, elements, pair, chunks):
    op, algorithm = pair
    if not exists(op, algorithm, ranks) or (op, algorithm) in (
        ("all_to_all", "pairwise"),
        ("all_gather", "halving-doubling"),
    ):
        return  # these two take even pieces only
    run = simulated(op=op, algorithm=algorithm, ranks=ranks, elements=elements, chunks=chunks)
    time = time_of(op, algorithm, size_bytes=8 * elements, ranks=ranks, chunks=chunks, alpha_s=0, bytes_per_s_one_way=1)
    counted = run.seconds(alpha_s=0, bytes_per_s_one_way=1)
    spare = time.steps - run.steps
    assert 0 <= spare <= SPARE_STEPS.get(pair, 0)
    assert abs(counted + spare * 8 * elements / chunks - time.total_s) < 8 * run.steps + 1e-6
    if not is_pipelined(op=op, algorithm=algorithm):
        assert counted >= time.total_s - 1e-6  # in each step, the longest message is no shorter than the mean


@pytest.mark.parametrize(("nodes", "ranks_per_node"), [(1, 4), (3, 1), (2, 3), (4, 2), (3, 5)])
def test_hierarchical_time_is_that_of_the_simulation(nodes, ranks_per_node):
    ranks = nodes * ranks_per_node
    run = ring.hierarchical_all_reduce(
        random_vectors(ranks=ranks, elements=12 * ranks, seed=3), ranks_per_node=ranks_per_node
    )
    intra, inter = (1e-7, 9e9), (6e-7, 1e9)
    time = hierarchical_all_reduce(
        size_bytes=8 * 12 * ranks,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        intra_alpha_s=intra[0],
        intra_bytes_per_s_one_way=intra[1],
        inter_alpha_s=inter[0],
        inter_bytes_per_s_one_way_per_rank=inter[1],
        inter_algorithm="ring",
    )
    counted = run.seconds_over(
        lambda source, destination: intra if source // ranks_per_node == destination // ranks_per_node else inter
    )
    assert time.total_s == pytest.approx(counted, rel=1e-9)
    left = [
        sum(
            one.num_bytes
            for one in run.messages
            if one.source == rank and one.destination // ranks_per_node != rank // ranks_per_node
        )
        for rank in range(ranks)
    ]
    carried = card_bytes_per_s(size_bytes=8 * 12 * ranks, nodes=nodes, ranks_per_node=ranks_per_node, seconds=1)
    assert left == [carried] * ranks


# Limits and identities


@pytest.mark.parametrize("algorithm", ["binomial-tree", "pipelined-tree", "double-tree", "through-root"])
@pytest.mark.parametrize("ranks", [2, 5, 8, 13])
def test_all_reduce_over_a_tree_is_a_reduce_and_a_broadcast(algorithm, ranks):
    whole, climb, spread = (
        time_of(op, algorithm, size_bytes=3e8, ranks=ranks, **LINK) for op in ("all_reduce", "reduce", "broadcast")
    )
    assert whole.total_s == pytest.approx(climb.total_s + spread.total_s)


def test_bus_bandwidth_of_operations_in_which_nobody_moves_more_than_the_vector_is_the_algorithm_bandwidth():
    # nccl-tests, doc/PERFORMANCE.md: "Broadcast: 1", "Reduce: 1"; sendrecv_perf multiplies by 1 too.
    for op in ("broadcast", "reduce", "send_recv"):
        assert (
            busbw_bytes_per_s(op=op, ranks=8, size_bytes=32e6, seconds=1e-3)
            == algbw_bytes_per_s(size_bytes=32e6, seconds=1e-3)
            == 32e9
        )


def test_a_send_takes_as_long_among_many_ranks_as_between_two():
    two, many = (time_of("send_recv", "direct", size_bytes=1e9, ranks=ranks, **LINK) for ranks in (2, 1000))
    # 1 GB over 50 GB/s is 20 ms, and 5 us before it
    assert (
        two.total_s
        == many.total_s
        == lower_bound(op="send_recv", size_bytes=1e9, ranks=1000, **LINK).latency_s + 0.02
        == pytest.approx(0.020005)
    )


@pytest.mark.parametrize(("op", "algorithm"), PAIRS)
def test_one_rank_costs_nothing(op, algorithm):
    time = time_of(op, algorithm, size_bytes=1e6, ranks=1, **LINK)
    assert (time.total_s, time.steps, time.sent_bytes_per_rank) == (0, 0, 0)
    assert time.algbw_bytes_per_s == math.inf


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling"])
def test_all_reduce_is_reduce_scatter_plus_all_gather(algorithm):
    whole, scatter, gather = (
        time_of(op, algorithm, size_bytes=3e8, ranks=16, **LINK)
        for op in ("all_reduce", "reduce_scatter", "all_gather")
    )
    assert whole.total_s == pytest.approx(scatter.total_s + gather.total_s)


def test_two_trees_reach_twice_the_vector_where_one_tree_needs_four_times():
    one, two = (
        time_of("all_reduce", tree, size_bytes=1e9, ranks=100, chunks=10**5, alpha_s=0, bytes_per_s_one_way=1e9)
        for tree in TREES
    )
    assert (one.bandwidth_s, two.bandwidth_s) == (pytest.approx(4, rel=1e-3), pytest.approx(2, rel=1e-3))


def test_ring_tends_to_twice_the_vector_however_many_ranks():
    shares = [
        time_of("all_reduce", "ring", size_bytes=1e9, ranks=n, alpha_s=0, bytes_per_s_one_way=1e9).total_s
        for n in (2, 5, 100, 10_000)
    ]
    assert shares == [pytest.approx(x) for x in (1.0, 1.6, 1.98, 1.9998)]


@each(
    ("op", "algorithm", "ranks", "size_bytes"),
    [(*pair, ranks, size) for pair in PAIRS for ranks in (2, 3, 5, 8, 11, 16) for size in (8, 1e4, 1e9)],
)
def test_nothing_beats_the_lower_bound(op, algorithm, ranks, size_bytes):
    if not exists(op, algorithm, ranks):
        return
    time, bound = (
        time_of(op, algorithm, size_bytes=size_bytes, ranks=ranks, **LINK),
        lower_bound(op=op, size_bytes=size_bytes, ranks=ranks, **LINK),
    )
    assert time.latency_s >= bound.latency_s * (1 - 1e-12)
    assert time.bandwidth_s >= bound.bandwidth_s * (1 - 1e-12)
    assert time.busbw_bytes_per_s <= LINK["bytes_per_s_one_way"] * (1 + 1e-12)


def test_the_bounds_are_reached():
    ring_time = time_of("all_reduce", "ring", size_bytes=1e9, ranks=12, **LINK)
    assert ring_time.bandwidth_s == pytest.approx(
        lower_bound(op="all_reduce", size_bytes=1e9, ranks=12, **LINK).bandwidth_s
    )
    tree_time = time_of("broadcast", "binomial-tree", size_bytes=1e9, ranks=12, **LINK)
    assert tree_time.latency_s == pytest.approx(lower_bound(op="broadcast", size_bytes=1e9, ranks=12, **LINK).latency_s)
    deep = time_of("broadcast", "ring", size_bytes=1e9, ranks=12, chunks=10**6, alpha_s=0, bytes_per_s_one_way=50e9)
    assert deep.bandwidth_s == pytest.approx(
        lower_bound(op="broadcast", size_bytes=1e9, ranks=12, **LINK).bandwidth_s, rel=1e-4
    )


@given(
    pair=st.sampled_from([pair for pair in PAIRS if is_pipelined(op=pair[0], algorithm=pair[1])]),
    ranks=st.integers(2, 40),
    size_bytes=st.floats(1e2, 1e8),
    alpha_s=st.floats(1e-6, 1e-4),
)
def test_no_chunk_count_is_faster_than_the_optimal_one(pair, ranks, size_bytes, alpha_s):
    inputs = {
        "op": pair[0],
        "algorithm": pair[1],
        "size_bytes": size_bytes,
        "ranks": ranks,
        "alpha_s": alpha_s,
        "bytes_per_s_one_way": 1e10,
    }
    best = optimal_chunks(**inputs)
    others = itertools.chain(range(1, 60), range(max(1, best - 5), best + 6), (best * 2, best * 10))
    assert collective_time(**inputs, chunks=best).total_s <= min(
        collective_time(**inputs, chunks=k).total_s for k in others
    ) * (1 + 1e-12)


@each(("first", "second", "ranks"), itertools.product(ALGORITHMS, ALGORITHMS, (3, 5, 8, 24)))
def test_crossover_is_where_the_faster_one_changes(first, second, ranks):
    def seconds(algorithm, size_bytes):
        return time_of("all_reduce", algorithm, size_bytes=size_bytes, ranks=ranks, chunks=4, **LINK).total_s

    if all(seconds(first, size) == pytest.approx(seconds(second, size)) for size in (1, 1e9)):
        with pytest.raises(ValueError, match="cost the same at every size"):
            crossover(op="all_reduce", algorithms=(first, second), ranks=ranks, chunks=4, **LINK)
        return
    at = crossover(op="all_reduce", algorithms=(first, second), ranks=ranks, chunks=4, **LINK)
    loser = {first: second, second: first}
    if at.one_dominates:
        assert all(
            seconds(at.below, size) <= seconds(loser[at.below], size) * (1 + 1e-12) for size in (1, 1e3, 1e6, 1e9, 1e12)
        )
    else:
        assert seconds(at.below, at.size_bytes / 2) < seconds(at.above, at.size_bytes / 2)
        assert seconds(at.below, at.size_bytes) == pytest.approx(seconds(at.above, at.size_bytes))
        assert seconds(at.above, at.size_bytes * 2) < seconds(at.below, at.size_bytes * 2)


def test_without_alpha_the_frugal_algorithm_always_wins():
    at = crossover(op="all_reduce", algorithms=("binomial-tree", "ring"), ranks=8, alpha_s=0, bytes_per_s_one_way=1e9)
    assert (at.below, at.above, at.one_dominates) == ("ring", "ring", True)


def test_hierarchy_ends_in_a_flat_ring_on_either_side():
    links = {
        "intra_alpha_s": 1e-6,
        "intra_bytes_per_s_one_way": 450e9,
        "inter_alpha_s": 5e-6,
        "inter_bytes_per_s_one_way_per_rank": 50e9,
    }
    one_node = hierarchical_all_reduce(size_bytes=1e9, nodes=1, ranks_per_node=6, inter_algorithm="ring", **links)
    assert one_node.total_s == pytest.approx(
        time_of("all_reduce", "ring", size_bytes=1e9, ranks=6, alpha_s=1e-6, bytes_per_s_one_way=450e9).total_s
    )
    lone_ranks = hierarchical_all_reduce(size_bytes=1e9, nodes=6, ranks_per_node=1, inter_algorithm="ring", **links)
    assert lone_ranks.total_s == pytest.approx(time_of("all_reduce", "ring", size_bytes=1e9, ranks=6, **LINK).total_s)
    # On equal links without alpha a hierarchy of rings moves exactly what one ring does: 2(g-1)/g + 2(m-1)/(mg) =
    # 2(mg-1)/(mg)
    equal = dict.fromkeys(("intra_bytes_per_s_one_way", "inter_bytes_per_s_one_way_per_rank"), 50e9) | dict.fromkeys(
        ("intra_alpha_s", "inter_alpha_s"), 0
    )
    two_levels = hierarchical_all_reduce(size_bytes=1e9, nodes=3, ranks_per_node=5, inter_algorithm="ring", **equal)
    assert two_levels.total_s == pytest.approx(
        time_of("all_reduce", "ring", size_bytes=1e9, ranks=15, alpha_s=0, bytes_per_s_one_way=50e9).total_s
    )
    assert two_levels.busbw_bytes_per_s == pytest.approx(50e9)


@pytest.mark.parametrize(("op", "algorithm"), PAIRS)
def test_a_call_pays_its_start_up_once_whatever_its_size_and_steps(op, algorithm):
    for ranks, size_bytes in ((2, 8), (8, 8), (8, 1e9)):
        free, paid = (
            time_of(op, algorithm, size_bytes=size_bytes, ranks=ranks, startup_s=startup_s, **LINK)
            for startup_s in (0, 1)
        )
        assert paid.total_s - free.total_s == pytest.approx(1)
        assert (paid.latency_s, paid.bandwidth_s, paid.steps) == (free.latency_s, free.bandwidth_s, free.steps)
        assert paid.algbw_bytes_per_s < size_bytes < free.algbw_bytes_per_s  # S bytes in more than 1 s
    assert time_of(op, algorithm, size_bytes=8, ranks=1, startup_s=1, **LINK).total_s == 0


def test_a_vector_sent_in_pieces_pays_for_every_piece():
    def seconds(pieces):
        return pieces * time_of("all_reduce", "ring", size_bytes=1e9 / pieces, ranks=4, startup_s=7e-6, **LINK).total_s

    # 9 calls more, each with 7 us of its own and 6 steps of 5 us
    assert seconds(10) - seconds(1) == pytest.approx(9 * 37e-6)


# Scaling


@pytest.mark.parametrize(("op", "algorithm"), PAIRS)
def test_doubling_bytes_and_rates_leaves_the_time(op, algorithm):
    once = time_of(op, algorithm, size_bytes=3e6, ranks=8, alpha_s=2e-6, bytes_per_s_one_way=25e9)
    twice = time_of(op, algorithm, size_bytes=6e6, ranks=8, alpha_s=2e-6, bytes_per_s_one_way=50e9)
    faster = time_of(op, algorithm, size_bytes=3e6, ranks=8, alpha_s=2e-6, bytes_per_s_one_way=50e9)
    assert twice.total_s == pytest.approx(once.total_s)
    assert twice.busbw_bytes_per_s == pytest.approx(2 * once.busbw_bytes_per_s)
    assert (faster.latency_s, faster.bandwidth_s) == (once.latency_s, pytest.approx(once.bandwidth_s / 2))


# Refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"algorithm": "rings"},
            r"algorithm='rings' is not known; did you mean 'ring'\? Known: ring, halving-doubling, binomial-tree",
        ),
        ({"op": "allreduce"}, r"op='allreduce' is not known; did you mean 'all_reduce'"),
        ({"op": "all_to_all"}, r"algorithm='ring' is not known.*Known: pairwise"),
        ({"op": "send_recv"}, r"algorithm='ring' is not known.*Known: direct"),
        ({"op": "reduce"}, "chunks=None must be a whole number: ring reduce is pipelined"),
        ({"algorithm": "hierarchical"}, "use hierarchical_all_reduce"),
        (
            {"op": "reduce_scatter", "algorithm": "halving-doubling", "ranks": 6},
            r"ranks=6 must be a power of two .*; try 4 or 8, or algorithm='ring'",
        ),
        ({"op": "broadcast"}, "chunks=None must be a whole number: ring broadcast is pipelined"),
        ({"chunks": 4}, "chunks=4 must be left out: ring all_reduce is not pipelined"),
        ({"op": "broadcast", "chunks": 0}, "chunks=0 must be a whole number of at least 1"),
        ({"ranks": 0}, "ranks=0 must be a whole number of at least 1"),
        ({"ranks": 2.5}, "ranks=2.5 must be a whole number"),
        ({"size_bytes": 0}, "size_bytes=0 must be greater than 0"),
        ({"alpha_s": -1e-6}, "alpha_s=-1e-06 must be at least 0"),
        ({"startup_s": -1e-6}, "startup_s=-1e-06 must be at least 0"),
        ({"bytes_per_s_one_way": 0}, "bytes_per_s_one_way=0 must be greater than 0"),
    ],
)
def test_refusals(change, message):
    valid = {"op": "all_reduce", "algorithm": "ring", "size_bytes": 1e6, "ranks": 5, **LINK}
    assert collective_time(**valid).steps == 8
    with pytest.raises(ValueError, match=message):
        collective_time(**{**valid, **change})


def test_nearest_valid_neighbours_of_the_refusals():
    assert (
        collective_time(op="reduce_scatter", algorithm="halving-doubling", size_bytes=1e6, ranks=8, **LINK).steps == 3
    )
    assert collective_time(op="broadcast", algorithm="ring", size_bytes=1e6, ranks=5, chunks=1, **LINK).steps == 4


def test_chunks_are_only_chosen_where_there_are_any_and_alpha_counts():
    inputs = {"size_bytes": 1e6, "ranks": 5, "bytes_per_s_one_way": 1e9}
    assert optimal_chunks(op="broadcast", algorithm="ring", alpha_s=1e-6, **inputs) > 1
    with pytest.raises(ValueError, match="alpha_s=0 must be greater than 0"):
        optimal_chunks(op="broadcast", algorithm="ring", alpha_s=0, **inputs)
    with pytest.raises(ValueError, match="binomial-tree broadcast has no chunks to choose"):
        optimal_chunks(op="broadcast", algorithm="binomial-tree", alpha_s=1e-6, **inputs)


def test_bus_factors_refuse_what_nccl_does_not_have():
    assert bus_factor(op="all_to_all", ranks=5) == pytest.approx(0.8)
    with pytest.raises(ValueError, match="op='alltoall' is not known; did you mean 'all_to_all'"):
        bus_factor(op="alltoall", ranks=5)


def test_a_chunk_is_handed_down_a_tree_left_child_first() -> None:
    arrived = {0: 0}
    for rank in range(1, 200):
        parent = (rank - 1) // 2
        first_child = rank == 2 * parent + 1
        arrived[rank] = arrived[parent] + (1 if first_child else 2)
        assert tree_depth_steps(rank + 1) == max(arrived.values())
