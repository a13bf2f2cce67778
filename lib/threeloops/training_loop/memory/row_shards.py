"""Row shards: how FSDP2 deals the rows of each parameter out over ranks, and what it makes of a number that does not
come out even.

>>> [rows_on_rank(rows=10, ranks=4, rank=rank) for rank in range(4)]
[3, 3, 3, 1]

Source: PyTorch documentation, torch.distributed.fsdp.fully_shard (each parameter is cut on dimension 0 with
        torch.chunk)
"""

from threeloops import checks


def rows_on_rank(*, rows: int, ranks: int, rank: int) -> int:
    """Rows of one parameter that a rank holds.

    Formula:  chunk = ceil(rows / ranks); min(chunk, rows - rank * chunk), or 0 where that is negative
    Units:    rank counts from 0
    Raises:   ValueError for a rank that is not below ranks
    Counted:  simulate.training_loop.offloaded_layers.dealt_rows

    >>> [rows_on_rank(rows=6, ranks=5, rank=rank) for rank in range(5)]  # two ranks hold nothing
    [2, 2, 2, 0, 0]
    """
    checks.count(rows=rows, ranks=ranks)
    checks.count(at_least=0, rank=rank)
    if rank >= ranks:
        raise ValueError(f"rank={rank} must be below ranks={ranks}; ranks count from 0")
    chunk = -(-rows // ranks)
    return max(0, min(chunk, rows - rank * chunk))


def local_elements(shapes: list[tuple[int, ...]], *, ranks: int, rank: int) -> int:
    """Values that a rank holds of parameters with these shapes.

    Assumes:  each parameter is sharded by itself, so that what does not come out even does so for every one of them

    >>> local_elements([(10, 7), (3,)], ranks=4, rank=0), local_elements([(10, 7), (3,)], ranks=4, rank=3)
    (22, 7)
    """
    total = 0
    for shape in shapes:
        width = 1
        for side in shape[1:]:
            width *= side
        total += rows_on_rank(rows=shape[0], ranks=ranks, rank=rank) * width
    return total
