"""All-reduces by hand: the algorithms of the simulators, run by real processes that send each other real tensors,
point to point, over gloo.

Every function below is what one rank does; nothing but its own number, the number of ranks and its vector tells it
what to send.
"""

import statistics
import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from threeloops import checks
from threeloops.measure.processes.ranks import run_ranks
from threeloops.measure.processes.wire import FLOAT_BYTES, Step, WireTraffic, step_traffic

Vector = torch.Tensor


def _swap(give: Vector, to: int, room: Vector, source: int) -> Vector:
    """Send and receive at the same time, as a link with two directions can."""
    pending = [dist.isend(give, to), dist.irecv(room, source)]
    for work in pending:
        if work is not None:
            work.wait()
    return room


def through_root(vector: Vector) -> None:
    """Everyone to rank 0, one after the other; the sum back to everyone, one after the other."""
    rank, ranks, room = dist.get_rank(), dist.get_world_size(), torch.empty_like(vector)
    if rank:
        dist.send(vector, 0)
        dist.recv(vector, 0)
        return
    for other in range(1, ranks):
        dist.recv(room, other)
        vector += room
    for other in range(1, ranks):
        dist.send(vector, other)


def ring_among(members: Sequence[int], vector: Vector, *, reduce: bool = True, gather: bool = True) -> None:
    """Pieces to the right: n - 1 steps that add, n - 1 steps that hand out."""
    n, place = len(members), members.index(dist.get_rank())
    right, left = members[(place + 1) % n], members[(place - 1) % n]
    pieces = vector.chunk(n)
    for step in range(n - 1 if reduce else 0):
        given, taken = pieces[(place - step - 1) % n], pieces[(place - step - 2) % n]
        taken += _swap(given, right, torch.empty_like(taken), left)
    for step in range(n - 1 if gather else 0):
        _swap(pieces[(place - step) % n], right, pieces[(place - step - 1) % n], left)


def ring(vector: Vector) -> None:
    """One ring of all ranks."""
    ring_among(range(dist.get_world_size()), vector)


def binomial_tree(vector: Vector) -> None:
    """Pairs at distance 1, 2, 4, …: the higher one gives its sum away. Then everyone who has it tells someone who has
    not, until there is nobody left.
    """
    rank, ranks, room = dist.get_rank(), dist.get_world_size(), torch.empty_like(vector)
    distance = 1
    while distance < ranks and not rank & distance:
        if rank + distance < ranks:
            dist.recv(room, rank + distance)
            vector += room
        distance *= 2
    informed = 1
    if rank:
        dist.send(vector, rank - distance)
        informed = 1 << (rank.bit_length() - 1)
        dist.recv(vector, rank - informed)
        informed *= 2
    while rank + informed < ranks:
        dist.send(vector, rank + informed)
        informed *= 2


def halving_doubling(vector: Vector) -> None:
    """Partners at half the distance each time trade halves and add; then at twice the distance, and hand out."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    span, spans, distance = vector, [], ranks // 2
    while distance:
        low, high = span.chunk(2)
        kept, given = (high, low) if rank & distance else (low, high)
        kept += _swap(given, rank ^ distance, torch.empty_like(kept), rank ^ distance)
        spans.append((distance, kept, given))
        span, distance = kept, distance // 2
    for distance, kept, given in reversed(spans):
        _swap(kept, rank ^ distance, given, rank ^ distance)


def hierarchical(vector: Vector) -> None:
    """Nodes of two: a reduce-scatter inside, a ring of equally placed ranks on their halves, an all-gather inside."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    node = range(rank // 2 * 2, rank // 2 * 2 + 2)
    ring_among(node, vector, gather=False)
    ring_among(range(rank % 2, ranks, 2), vector.chunk(2)[rank % 2])
    ring_among(node, vector, reduce=False)


ALGORITHMS: dict[str, Callable[[Vector], None]] = {
    "through-root": through_root,
    "ring": ring,
    "binomial-tree": binomial_tree,
    "halving-doubling": halving_doubling,
    "hierarchical": hierarchical,
}


def prepared(algorithm: str, size_bytes: int) -> Step:
    """On a rank: a step that adds up one vector of ones per rank, and looks at the sum."""
    ranks = dist.get_world_size()

    def step() -> None:
        vector = torch.ones(size_bytes // FLOAT_BYTES)
        ALGORITHMS[algorithm](vector)
        if not bool((vector == ranks).all()):
            raise ArithmeticError(
                f"{algorithm} on rank {dist.get_rank()} gave {vector.unique().tolist()}, not {ranks} everywhere"
            )

    return step


def _timed(algorithms: tuple[str, ...], size_bytes: int, repeats: int) -> list[list[float]]:
    """On a rank: seconds per algorithm and repeat, the first not counted."""
    taken = []
    for algorithm in algorithms:
        vector, seconds = torch.zeros(size_bytes // FLOAT_BYTES), []
        for _ in range(repeats + 1):
            dist.barrier()
            start = time.perf_counter()
            ALGORITHMS[algorithm](vector)
            seconds.append(time.perf_counter() - start)
        taken.append(seconds[1:])
    return taken


def _check(algorithms: Sequence[str], ranks: int, size_bytes: int) -> None:
    checks.count(ranks=ranks, at_least=2)
    for algorithm in algorithms:
        checks.one_of(ALGORITHMS, algorithm=algorithm)
    if ranks & (ranks - 1) or size_bytes % (FLOAT_BYTES * ranks):
        raise ValueError(
            f"ranks={ranks} must be a power of two, and size_bytes={size_bytes} a multiple of 4 * ranks; try ranks=4,"
            " size_bytes=65536"
        )


def handmade_traffic(*algorithms: str, ranks: int, size_bytes: int, timeout_s: float = 60.0) -> dict[str, WireTraffic]:
    """The bytes that each algorithm puts on the wire, who to whom; its sums are checked on the way.

    Raises:   ValueError off Linux, for an unknown algorithm, for ranks other than a power of two, and for vectors
              that the ranks do not divide
    """
    _check(algorithms, ranks, size_bytes)
    work = [(prepared, (algorithm, size_bytes)) for algorithm in algorithms]
    return dict(zip(algorithms, step_traffic(*work, ranks=ranks, timeout_s=timeout_s), strict=True))


def handmade_seconds(
    *algorithms: str, ranks: int, size_bytes: int, repeats: int = 5, timeout_s: float = 60.0
) -> dict[str, float]:
    """How long each algorithm takes: the median over the repeats of the slowest rank's time.

    Raises:   ValueError as handmade_traffic does, but on any system
    """
    _check(algorithms, ranks, size_bytes)
    checks.count(repeats=repeats)
    by_rank = run_ranks(_timed, tuple(algorithms), size_bytes, repeats, ranks=ranks, timeout_s=timeout_s)
    slowest = [
        [max(times) for times in zip(*(rank[place] for rank in by_rank), strict=True)]
        for place in range(len(algorithms))
    ]
    return dict(zip(algorithms, map(statistics.median, slowest), strict=True))
