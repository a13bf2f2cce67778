"""Algorithms of collectives: how many steps each takes, and how many bytes follow one another, for n ranks and S = 1.

Each rank has one port: in one step it sends at most one message and receives at most one, both at full rate.

>>> plan(op="all_reduce", algorithm="ring", ranks=8, chunks=None)
Plan(steps=14, serial=1.75, sent=1.75)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True)
class Plan:
    """What an algorithm does with S = 1: its steps, its bytes one after the other, and the bytes sent by the busiest
    rank.
    """

    steps: int
    serial: float
    sent: float


def floor_log2(number: int) -> int:
    """Exact, where math.log2 rounds."""
    return number.bit_length() - 1


def ceil_log2(number: int) -> int:
    """Exact, where math.log2 rounds: the doublings that make one into at least `number`."""
    return (number - 1).bit_length()


def _ring(ranks: int, chunks: int) -> Plan:
    """Reduce-scatter or all-gather: 1/n of S to the right neighbour, n - 1 times."""
    share = (ranks - 1) / ranks
    return Plan(ranks - 1, share, share)


def _ring_all_reduce(ranks: int, chunks: int) -> Plan:
    half = _ring(ranks, chunks)
    return Plan(2 * half.steps, 2 * half.serial, 2 * half.sent)


def _ring_broadcast(ranks: int, chunks: int) -> Plan:
    """The last rank sees the first chunk after n - 1 steps, and one more in each step after it."""
    steps = ranks - 1 + chunks - 1
    return Plan(steps, steps / chunks, 1)


def _halving(ranks: int, chunks: int) -> Plan:
    """Reduce-scatter by halving, or all-gather by doubling: messages of S/2, S/4, … S/n."""
    if ranks & (ranks - 1):
        below = 2 ** floor_log2(ranks)
        raise ValueError(
            f"ranks={ranks} must be a power of two for halving-doubling here; try {below} or {2 * below}, or"
            " algorithm='ring'"
        )
    share = (ranks - 1) / ranks
    return Plan(floor_log2(ranks), share, share)


def _halving_doubling_all_reduce(ranks: int, chunks: int) -> Plan:
    """Where n is no power of two, the surplus ranks hand their vector to a neighbour first and get the sum back
    last.
    """
    core = 2 ** floor_log2(ranks)
    half = _halving(core, chunks)
    surplus = 1 if core < ranks else 0
    return Plan(2 * half.steps + 2 * surplus, 2 * half.serial + 2 * surplus, 2 * half.sent + surplus)


def _binomial_broadcast(ranks: int, chunks: int) -> Plan:
    """All of S in every step: twice as many ranks have it after each."""
    steps = ceil_log2(ranks)
    return Plan(steps, steps, steps)


def _binomial_all_reduce(ranks: int, chunks: int) -> Plan:
    steps = ceil_log2(ranks)
    return Plan(2 * steps, 2 * steps, steps)


def tree_depth_steps(ranks: int) -> int:
    """Steps until the last rank of a binary tree has the first chunk, when a rank serves its left child first and its
    right child a step later.

    Formula:  floor(log2(n + 1)) + floor(log2((n + 1) / 3))
    Assumes:  ranks fill the levels from the left, as in a heap: rank i > 0 hangs under (i - 1) // 2
    Source:   by definition of the tree
    Counted:  tests.training_loop.test_collectives.test_a_chunk_is_handed_down_a_tree_left_child_first
    """
    return floor_log2(ranks + 1) + floor_log2((ranks + 1) // 3) if ranks > 1 else 0


def _tree_broadcast(ranks: int, chunks: int) -> Plan:
    """One chunk for each child per period, so that a rank with two children passes on a chunk every second step."""
    children = min(2, ranks - 1)
    steps = tree_depth_steps(ranks) + children * (chunks - 1)
    return Plan(steps, steps / chunks, children)


def _tree_all_reduce(ranks: int, chunks: int) -> Plan:
    """The broadcast run backwards (a reduction), then the broadcast."""
    one_way = _tree_broadcast(ranks, chunks)
    # Below the root, a rank with two children sends S up and 2S down; the first such rank is number 1 of five.
    return Plan(2 * one_way.steps, 2 * one_way.serial, 3 if ranks >= 5 else one_way.sent)


def _double_tree_broadcast(ranks: int, chunks: int) -> Plan:
    """Half of the chunks down each tree; a rank with children in one tree has none in the other."""
    steps = chunks + 2 * floor_log2(ranks - 1)
    return Plan(steps, steps / chunks, max(1, _double_tree_down(ranks, chunks)))


def _double_tree_down(ranks: int, chunks: int) -> float:
    """What a rank of the first tree passes to its children; that tree gets the odd chunk."""
    return min(2, ranks - 2) * math.ceil(chunks / 2) / chunks


def _double_tree_all_reduce(ranks: int, chunks: int) -> Plan:
    one_way = _double_tree_broadcast(ranks, chunks)
    return Plan(2 * one_way.steps, 2 * one_way.serial, 1 + _double_tree_down(ranks, chunks))


def _root_broadcast(ranks: int, chunks: int) -> Plan:
    return Plan(ranks - 1, ranks - 1, ranks - 1)


def _reduced(broadcast: Callable[[int, int], Plan]) -> Callable[[int, int], Plan]:
    """A reduction to the root is a broadcast run backwards: as many steps, and every rank but the root sends its
    partial sum once.
    """

    def plan(ranks: int, chunks: int) -> Plan:
        forwards = broadcast(ranks, chunks)
        return Plan(forwards.steps, forwards.serial, 1)

    return plan


def _one_step(ranks: int, chunks: int) -> Plan:
    """Each rank sends S to one rank and receives S from another, all at the same time."""
    return Plan(1, 1, 1)


def _root_all_reduce(ranks: int, chunks: int) -> Plan:
    """Each rank sends S to the root, one after the other; the root sends the sum back, one after the other."""
    return Plan(2 * (ranks - 1), 2 * (ranks - 1), ranks - 1)


_PLANS: dict[str, dict[str, Callable[[int, int], Plan]]] = {
    "all_reduce": {
        "ring": _ring_all_reduce,
        "halving-doubling": _halving_doubling_all_reduce,
        "binomial-tree": _binomial_all_reduce,
        "pipelined-tree": _tree_all_reduce,
        "double-tree": _double_tree_all_reduce,
        "through-root": _root_all_reduce,
    },
    "reduce_scatter": {"ring": _ring, "halving-doubling": _halving},
    "all_gather": {"ring": _ring, "halving-doubling": _halving},
    "broadcast": {
        "ring": _ring_broadcast,
        "binomial-tree": _binomial_broadcast,
        "pipelined-tree": _tree_broadcast,
        "double-tree": _double_tree_broadcast,
        "through-root": _root_broadcast,
    },
    "all_to_all": {"pairwise": _ring},  # n - 1 exchanges of S/n each, as on a ring
    "send_recv": {"direct": _one_step},
}
_PLANS["reduce"] = {algorithm: _reduced(broadcast) for algorithm, broadcast in _PLANS["broadcast"].items()}
_PIPELINED = {
    *((op, "ring") for op in ("broadcast", "reduce")),
    *((op, tree) for op in ("broadcast", "reduce", "all_reduce") for tree in ("pipelined-tree", "double-tree")),
}


def algorithms(op: str) -> tuple[str, ...]:
    """The algorithms that this module knows for an operation (all-reduce also has hierarchical_all_reduce).

    >>> algorithms("all_gather")
    ('ring', 'halving-doubling')
    """
    checks.one_of(_PLANS, op=op)
    return tuple(_PLANS[op])


def is_pipelined(*, op: str, algorithm: str) -> bool:
    """Whether the algorithm cuts S into chunks, so that a call must say how many."""
    if algorithm == "hierarchical":
        raise ValueError("algorithm='hierarchical' has two kinds of links; use hierarchical_all_reduce")
    checks.one_of(algorithms(op), algorithm=algorithm)
    return (op, algorithm) in _PIPELINED


def plan(*, op: str, algorithm: str, ranks: int, chunks: int | None) -> Plan:
    """The plan of an algorithm that exists for the operation, with `chunks` where it is pipelined and only there."""
    pipelined = is_pipelined(op=op, algorithm=algorithm)
    if pipelined and chunks is None:
        raise ValueError(
            f"chunks=None must be a whole number: {algorithm} {op} is pipelined; optimal_chunks gives the fastest"
        )
    if chunks is not None and not pipelined:
        raise ValueError(f"chunks={chunks} must be left out: {algorithm} {op} is not pipelined")
    if chunks is not None:
        checks.count(chunks=chunks)
    return _PLANS[op][algorithm](ranks, chunks or 1) if ranks > 1 else Plan(0, 0, 0)
