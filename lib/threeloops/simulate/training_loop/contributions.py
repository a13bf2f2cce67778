"""Contributions: whose numbers have reached which rank, piece by piece, after every step of an all-reduce.

The collectives are those that move numbers. What they move here are pieces that say whose numbers are in them: a bit
for each rank, so that a sum is the set of ranks that it contains, and a rank that were added twice is refused.

>>> [[whose(piece) for piece in rank] for rank in watched("ring", ranks=2)[1]]
[[(0, 1), (0,)], [(1,), (0, 1)]]
"""

from collections.abc import Callable, Iterable
from typing import Any

from threeloops import checks
from threeloops.simulate.training_loop import collectives, ring, tree
from threeloops.simulate.training_loop.network import Run, State

_RUNS: dict[str, Callable[..., Run]] = {
    "ring": ring.all_reduce,
    "halving-doubling": collectives.halving_doubling_all_reduce,
    "binomial-tree": tree.binomial_all_reduce,
    "through-root": tree.root_all_reduce,
}
_PIECE_BYTES = 8


class Pieces:
    """A rank's vector, piece by piece; cut and added as vectors of numbers are.

    >>> (Pieces([1, 2]) + Pieces([4, 4])).tolist()
    [5, 6]
    """

    ndim, dtype = 1, "sets of ranks"

    def __init__(self, held: Iterable[int]) -> None:
        self._held = list(held)

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, place: slice) -> "Pieces":
        return Pieces(self._held[place])

    def __setitem__(self, place: slice, pieces: "Pieces") -> None:
        self._held[place] = pieces._held

    def __add__(self, other: "Pieces") -> "Pieces":
        for mine, theirs in zip(self._held, other._held, strict=True):
            assert not mine & theirs, "a rank's numbers are added twice"
        return Pieces(mine | theirs for mine, theirs in zip(self._held, other._held, strict=True))

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    @property
    def nbytes(self) -> int:
        return _PIECE_BYTES * len(self)

    def copy(self) -> "Pieces":
        return self[:]

    def tolist(self) -> list[int]:
        return self._held.copy()


def watched(algorithm: str, *, ranks: int) -> tuple[State, ...]:
    """Sets as bits, [rank][piece], before the first step and after each; a vector has as many pieces as there are
    ranks.

    Raises:   ValueError for an algorithm that is not watched here
    """
    return watched_run(algorithm, ranks=ranks).states


def watched_run(algorithm: str, *, ranks: int) -> Run:
    """A played exchange with its messages; a piece is eight bytes.

    >>> watched_run("ring", ranks=4).sent_bytes
    (48, 48, 48, 48)
    """
    checks.one_of(_RUNS, algorithm=algorithm)
    checks.count(ranks=ranks, at_least=2)
    own: list[Any] = [Pieces([1 << rank] * ranks) for rank in range(ranks)]
    return _RUNS[algorithm](own, watch=True)


def whose(piece: int) -> tuple[int, ...]:
    """The ranks whose numbers a piece contains.

    >>> whose(0b1011)
    (0, 1, 3)
    """
    return tuple(bit for bit in range(piece.bit_length()) if piece >> bit & 1)
