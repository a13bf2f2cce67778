"""Contributions: whose numbers have reached which rank, piece by piece, after every step of an all-reduce.

Each rank puts a bit of its own into every piece. A sum of different bits is the set of ranks that it contains; a rank
that were added twice would spoil the bits of the others.

>>> [[whose(piece) for piece in rank] for rank in watched("ring", ranks=2)[1].tolist()]
[[(0, 1), (0,)], [(1,), (0, 1)]]
"""

from collections.abc import Callable

import numpy as np

from threeloops import checks
from threeloops.simulate.training_loop import collectives, ring, tree
from threeloops.simulate.training_loop.network import Array, Run

_RUNS: dict[str, Callable[..., Run]] = {
    "ring": ring.all_reduce,
    "halving-doubling": collectives.halving_doubling_all_reduce,
    "binomial-tree": tree.binomial_all_reduce,
    "through-root": tree.root_all_reduce,
}
_MOST_RANKS = 62  # bits of a signed 64-bit number, less one


def watched(algorithm: str, *, ranks: int) -> tuple[Array, ...]:
    """Sets as bits, [rank, piece], before the first step and after each; a vector has as many pieces as there are
    ranks.

    Raises:   ValueError for an algorithm that is not watched here, and for more ranks than a number has bits
    """
    return watched_run(algorithm, ranks=ranks).states


def watched_run(algorithm: str, *, ranks: int) -> Run:
    """The same with its messages; a piece is eight bytes.

    >>> watched_run("ring", ranks=4).sent_bytes
    (48, 48, 48, 48)
    """
    checks.one_of(_RUNS, algorithm=algorithm)
    checks.count(ranks=ranks, at_least=2)
    if ranks > _MOST_RANKS:
        raise ValueError(f"ranks={ranks} must not exceed {_MOST_RANKS}: each takes a bit of one number")
    own = [np.full(ranks, 1 << rank, dtype=np.int64) for rank in range(ranks)]
    return _RUNS[algorithm](own, watch=True)


def whose(piece: int) -> tuple[int, ...]:
    """The ranks whose numbers a piece contains.

    >>> whose(0b1011)
    (0, 1, 3)
    """
    return tuple(bit for bit in range(piece.bit_length()) if piece >> bit & 1)
