"""Split decode: caches of one step that many multiprocessors read in pieces (split-KV, flash-decoding).

>>> shape = {"batch": 1, "num_kv_heads": 8, "num_sms": 132}
>>> splits = fewest_splits(**shape, most=512, enough=0.85)
>>> [f"{pieces_waves(**shape, splits=number).efficiency:.3f}" for number in (1, splits)], splits
(['0.061', '0.909'], 15)
"""

from threeloops import checks
from threeloops.inner_loop import occupancy

PARTIAL_BYTES = 4  # partial results and their sums are kept in fp32


def pieces_waves(*, batch: int, num_kv_heads: int, splits: int, num_sms: int) -> occupancy.Waves:
    """The blocks of a decode attention kernel, and the waves in which multiprocessors take them.

    Formula:  blocks = batch * KV heads * splits; efficiency = blocks / (ceil(blocks / SMs) * SMs): the share of
              multiprocessors that read, over the kernel's time
    Assumes:  query heads of one KV head share a block; one block on a multiprocessor at a time, all equally long
    Source:   FlashAttention, hopper/heuristics.h, num_splits_heuristic (2024: waves over whole waves)
    Counted:  drills.decode_speed.splits.READ
    """
    checks.count(batch=batch, num_kv_heads=num_kv_heads, splits=splits)
    return occupancy.waves(grid_blocks=batch * num_kv_heads * splits, num_sms=num_sms, blocks_per_sm=1)


def fewest_splits(*, batch: int, num_kv_heads: int, num_sms: int, most: int, enough: float) -> int:
    """Pieces into which a kernel cuts each cache: as few as come near the best share, as each writes a result.

    Formula:  1 where whole caches make 0.8 blocks a multiprocessor or more; else the smallest number whose waves are
              at least `enough` times as full as the fullest
    Units:    enough: 0.85 in FlashAttention; most: pieces that the cache has room for, tokens over the kernel's tile;
              no more than multiprocessors
    Source:   FlashAttention, hopper/heuristics.h, num_splits_heuristic (2024; at 4 tiles or fewer it never splits)
    Counted:  drills.decode_speed.splits.FEWEST

    >>> fewest_splits(
    ...     batch=6, num_kv_heads=8, num_sms=108, most=128, enough=0.85
    ... )  # the file's own example: 48 blocks, 108 SMs
    2
    """
    checks.count(most=most)
    checks.fraction(enough=enough)
    shape = {"batch": batch, "num_kv_heads": num_kv_heads, "num_sms": num_sms}
    if batch * num_kv_heads >= 0.8 * num_sms:
        return 1
    shares = [pieces_waves(**shape, splits=splits).efficiency for splits in range(1, min(most, num_sms) + 1)]
    return 1 + next(place for place, share in enumerate(shares) if share >= enough * max(shares))


def split_read_s(
    *, batch: int, num_kv_heads: int, splits: int, num_sms: int, cache_bytes: float, memory_bytes_per_s: float
) -> float:
    """Seconds in which a layer's attention reads the caches of a batch, cut into pieces.

    Formula:  caches / (bandwidth * efficiency of the waves)
    Units:    cache_bytes: keys and values of one layer, of the whole batch
    Assumes:  each multiprocessor reads at its share of the bandwidth, also where others are idle; merging left out
    Source:   by definition: bytes over the rate of those that read; PyTorch, "Flash-Decoding for long-context
              inference", 2023 (why a batch of one leaves most of them idle)
    Counted:  drills.decode_speed.splits.READ
    """
    checks.positive(cache_bytes=cache_bytes, memory_bytes_per_s=memory_bytes_per_s)
    pieces = pieces_waves(batch=batch, num_kv_heads=num_kv_heads, splits=splits, num_sms=num_sms)
    return cache_bytes / (memory_bytes_per_s * pieces.efficiency)


def partial_bytes(*, batch: int, num_heads: int, head_dim: int, splits: int) -> int:
    """Bytes of a layer that pieces write and the merge reads: a result and the log of its softmax sum for each.

    Formula:  2 * batch * query heads * splits * (head dim + 1) * 4; none without a split
    Source:   FlashAttention, hopper/flash_api.cpp, out_accum and softmax_lse_accum (2024: fp32, one for each split)
    Counted:  tests.product_loop.test_split_decode.merged
    """
    checks.count(batch=batch, num_heads=num_heads, head_dim=head_dim, splits=splits)
    return 2 * batch * num_heads * splits * (head_dim + 1) * PARTIAL_BYTES if splits > 1 else 0
