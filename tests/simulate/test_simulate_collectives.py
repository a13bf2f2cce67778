"""The step-by-step collectives: right numbers on every rank, one message per port and step, and bytes that add up."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each import each

from threeloops.simulate.training_loop import double_binary_tree, ring, tree
from threeloops.simulate.training_loop.collectives import pairwise_all_to_all, random_vectors, simulated
from threeloops.simulate.training_loop.network import Network, cuts

COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
ALGORITHMS = ("ring", "halving-doubling", "binomial-tree", "pipelined-tree", "double-tree", "through-root")


@each(  # elements: fewer than ranks, divisible by none of them, by all but 7
    ("algorithm", "ranks", "elements"), itertools.product(ALGORITHMS, COUNTS, (1, 47, 240))
)
def test_all_reduce_is_the_sum_everywhere(algorithm, ranks, elements):
    run = simulated(op="all_reduce", algorithm=algorithm, ranks=ranks, elements=elements, chunks=3, seed=ranks)
    expected = np.sum(random_vectors(ranks=ranks, elements=elements, seed=ranks), axis=0)
    assert run.ranks == ranks
    assert all(np.array_equal(output, expected) for output in run.outputs)


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_reduce_scatter_leaves_piece_r_with_rank_r(algorithm, ranks):
    run = simulated(op="reduce_scatter", algorithm=algorithm, ranks=ranks, elements=47)
    expected = np.sum(random_vectors(ranks=ranks, elements=47, seed=0), axis=0)
    assert all(
        np.array_equal(output, expected[piece]) for output, piece in zip(run.outputs, cuts(47, ranks), strict=True)
    )


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
def test_all_gather_puts_the_parts_in_rank_order(algorithm, ranks):
    run = simulated(op="all_gather", algorithm=algorithm, ranks=ranks, elements=48)
    inputs = random_vectors(ranks=ranks, elements=48, seed=0)
    expected = np.concatenate([vector[piece] for vector, piece in zip(inputs, cuts(48, ranks), strict=True)])
    assert all(np.array_equal(output, expected) for output in run.outputs)


@pytest.mark.parametrize("algorithm", ["ring", "binomial-tree", "pipelined-tree", "double-tree", "through-root"])
@pytest.mark.parametrize("ranks", COUNTS)
def test_broadcast_reaches_everyone_with_n_minus_1_copies(algorithm, ranks):
    run = simulated(op="broadcast", algorithm=algorithm, ranks=ranks, elements=47, chunks=4)
    assert all(np.array_equal(output, random_vectors(ranks=ranks, elements=47, seed=0)[0]) for output in run.outputs)
    assert run.total_bytes == (ranks - 1) * 47 * 8  # whoever receives it, receives it once


@pytest.mark.parametrize("algorithm", ["ring", "binomial-tree", "pipelined-tree", "double-tree", "through-root"])
@pytest.mark.parametrize("ranks", COUNTS)
def test_reduce_leaves_the_sum_with_the_root_after_every_other_rank_has_sent_once(algorithm, ranks):
    run = simulated(op="reduce", algorithm=algorithm, ranks=ranks, elements=47, chunks=4)
    assert np.array_equal(run.outputs[0], np.sum(random_vectors(ranks=ranks, elements=47, seed=0), axis=0))
    assert run.sent_bytes == (0, *[47 * 8] * (ranks - 1))


@pytest.mark.parametrize("ranks", COUNTS)
def test_a_send_moves_every_vector_by_one_rank(ranks):
    run = simulated(op="send_recv", algorithm="direct", ranks=ranks, elements=5)
    inputs = random_vectors(ranks=ranks, elements=5, seed=0)
    assert all(np.array_equal(output, inputs[rank - 1]) for rank, output in enumerate(run.outputs))


@pytest.mark.parametrize("ranks", COUNTS)
def test_all_to_all_transposes(ranks):
    run = simulated(op="all_to_all", algorithm="pairwise", ranks=ranks, elements=3 * ranks)
    table = np.array(random_vectors(ranks=ranks, elements=3 * ranks, seed=0)).reshape(ranks, ranks, 3)
    assert np.array_equal(np.array(run.outputs).reshape(ranks, ranks, 3), table.transpose(1, 0, 2))


@given(ranks_per_node=st.integers(1, 5), nodes=st.integers(1, 4), elements=st.integers(1, 60))
def test_hierarchical_all_reduce_is_the_sum_everywhere(ranks_per_node, nodes, elements):
    inputs = random_vectors(ranks=ranks_per_node * nodes, elements=elements, seed=elements)
    run = ring.hierarchical_all_reduce(inputs, ranks_per_node=ranks_per_node)
    assert all(np.array_equal(output, np.sum(inputs, axis=0)) for output in run.outputs)


def test_hierarchy_crosses_between_nodes_with_a_share_only():
    run = ring.hierarchical_all_reduce(random_vectors(ranks=6, elements=60, seed=1), ranks_per_node=3)
    crossing = {ends: sent for ends, sent in run.link_bytes.items() if ends[0] // 3 != ends[1] // 3}
    # two nodes: an all-reduce of S/3 = 160 bytes between two ranks sends 2 * 1/2 * 160 bytes each way
    assert crossing == {(0, 3): 160, (3, 0): 160, (1, 4): 160, (4, 1): 160, (2, 5): 160, (5, 2): 160}


@pytest.mark.parametrize("ranks", [2, 3, 5, 6, 7, 8, 12])
def test_through_the_root_all_bytes_are_the_same_and_one_rank_has_most_of_them(ranks):
    through_root = simulated(op="all_reduce", algorithm="through-root", ranks=ranks, elements=60 * ranks * 7)
    around = simulated(op="all_reduce", algorithm="ring", ranks=ranks, elements=60 * ranks * 7)
    assert through_root.total_bytes == around.total_bytes  # 2(n - 1) S both: the ring does not send less, it spreads
    assert max(through_root.sent_bytes) == through_root.sent_bytes[0] == ranks / 2 * max(around.sent_bytes)


@pytest.mark.parametrize("ranks", range(2, 40))
def test_two_trees_share_the_work(ranks):
    edges = double_binary_tree.edges_of(ranks)
    for tree_number in (0, 1):
        # everyone once, below someone
        assert sorted(edge.child for edge in edges if edge.tree == tree_number) == list(range(1, ranks))
    inner = [{edge.parent for edge in edges if edge.tree == tree_number} - {0} for tree_number in (0, 1)]
    assert not inner[0] & inner[1]


def test_a_ring_uses_right_neighbours_only_and_all_of_them_equally():
    links = simulated(op="all_reduce", algorithm="ring", ranks=7, elements=70).link_bytes
    assert links == {(rank, (rank + 1) % 7): 2 * 6 * 80 for rank in range(7)}


def test_inputs_are_left_alone():
    inputs = random_vectors(ranks=5, elements=11, seed=2)
    copies = [vector.copy() for vector in inputs]
    ring.all_reduce(inputs)
    tree.pipelined_all_reduce(inputs, chunks=2)
    assert all(np.array_equal(vector, copy) for vector, copy in zip(inputs, copies, strict=True))


def test_a_port_takes_one_message_per_step():
    network, array = Network(3), np.zeros(4)
    network.exchange([(0, 1, array), (1, 0, array)])  # both ways at once is fine
    for twice in ([(0, 1, array), (0, 2, array)], [(0, 2, array), (1, 2, array)]):
        with pytest.raises(AssertionError, match="sends or receives twice"):
            network.exchange(twice)


def test_nobody_sees_what_arrives_in_the_same_step():
    network, first, second = Network(2), np.array([1.0]), np.array([2.0])
    from_first, from_second = network.exchange([(0, 1, first), (1, 0, second)])
    first += from_second
    second += from_first
    assert (first[0], second[0]) == (3.0, 3.0)


def test_unequal_links_wait_for_the_slowest():
    # two steps of 8 bytes on each of three links
    run = simulated(op="all_gather", algorithm="ring", ranks=3, elements=3)
    assert run.seconds_over(lambda source, destination: (0.0, 2.0 if source == 1 else 8.0)) == pytest.approx(2 * 8 / 2)
    assert run.seconds(alpha_s=1, bytes_per_s_one_way=8) == pytest.approx(2 * (1 + 8 / 8))


def test_refusals():
    with pytest.raises(ValueError, match="must be vectors of one length and type"):
        ring.all_reduce([np.zeros(3), np.zeros(4)])
    with pytest.raises(ValueError, match=r"parts of \[1, 2, 1\] elements must be an even cut; try \[1, 1, 2\]"):
        ring.all_gather([np.zeros(1), np.zeros(2), np.zeros(1)])
    assert ring.all_gather([np.zeros(1), np.zeros(1), np.zeros(2)]).steps == 2
    with pytest.raises(ValueError, match="ranks=3 must divide elements=8"):
        pairwise_all_to_all([np.zeros(8)] * 3)
    with pytest.raises(ValueError, match="ranks=6 must be a power of two"):
        simulated(op="reduce_scatter", algorithm="halving-doubling", ranks=6, elements=12)
    with pytest.raises(ValueError, match="algorithm='tree' is not known"):
        simulated(op="all_reduce", algorithm="tree", ranks=6, elements=12)
