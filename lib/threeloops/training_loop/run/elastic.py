"""Elastic training: a run that goes on with fewer ranks, and what has to move for that.

>>> micro_batches_each(global_batch=1024, micro_batch=2, ranks=60)
9
"""

from threeloops import checks


def micro_batches_each(*, global_batch: int, micro_batch: int, ranks: int) -> int:
    """Micro-batches that each rank runs one after the other, so that the global batch stays what it was.

    Formula:  ceil(global_batch / (micro_batch * ranks))
    Units:    sequences; ranks are data-parallel ones
    Assumes:  the slowest rank sets the time: where it does not divide evenly, some ranks run one micro-batch fewer
    Source:   by definition
    Counted:  drills.reliability.hangs.ACCUMULATED
    """
    checks.count(global_batch=global_batch, micro_batch=micro_batch, ranks=ranks)
    return -(-global_batch // (micro_batch * ranks))


def shard_overlap(*, before: int, after: int) -> float:
    """Share of a sharded state that lies already on the rank that needs it, when the number of ranks changes.

    Formula:  sum over ranks i of the overlap of [i / before, (i + 1) / before] and [i / after, (i + 1) / after]
    Assumes:  the state is cut into equal consecutive shards in the order of ranks; rank i keeps its place
    Source:   by definition
    Counted:  drills.reliability.hangs.RESHARDED

    >>> round(shard_overlap(before=8, after=7), 4), shard_overlap(before=8, after=8)
    (0.5, 1.0)
    """
    checks.count(before=before, after=after)
    whole = before * after
    overlaps = (
        max(0, min((rank + 1) * after, (rank + 1) * before) - max(rank * after, rank * before))
        for rank in range(min(before, after))
    )
    return sum(overlaps) / whole


def elastic_gain_s(*, nodes: int, lost: int, spare_s: float, restart_s: float) -> float:
    """How much sooner a run ends that goes on with fewer nodes until spares are there, instead of waiting for them.

    Formula:  (spare - restart) * (nodes - lost) / nodes
    Units:    spare_s from the failure until spares are there; restart_s to start again in another size
    Assumes:  speed in proportion to nodes; both ways restart once more when the spares are there; no more failures
    Raises:   ValueError where fewer nodes than one are left, or spares come before the restart ends
    Source:   by definition: work that is done in the meantime
    Counted:  drills.reliability.hangs.ELASTIC

    >>> elastic_gain_s(nodes=64, lost=2, spare_s=7200, restart_s=800)
    6200.0
    """
    checks.count(nodes=nodes, lost=lost)
    checks.positive(spare_s=spare_s, restart_s=restart_s)
    if lost >= nodes or restart_s > spare_s:
        raise ValueError(
            f"lost={lost} of nodes={nodes} with restart_s={restart_s!r} and spare_s={spare_s!r} leaves nothing to gain;"
            " wait for the spares"
        )
    return (spare_s - restart_s) * (nodes - lost) / nodes
