"""Split decode: pieces that are merged, the times that its authors printed, the rule's own example."""

import numpy as np
import pytest

from threeloops.product_loop import split_decode

A100 = {"num_sms": 108, "memory_bytes_per_s": 2.039e12}
# PyTorch, "Flash-Decoding for long-context inference", October 2023: A100, 16 query heads of 128 on 2 KV heads, fp16;
# batch, tokens, microseconds of FlashAttention 2.0.9 and of Flash-Decoding. (Shorter rows have more blocks there, as
# that version gave every query head its own.)
PRINTED = ((1, 131_072, 4592.2, 106.6), (1, 65_536, 2300.6, 64.4), (2, 32_768, 1156.1, 60.3))


def merged(query: np.ndarray, keys: np.ndarray, values: np.ndarray, *, splits: int) -> tuple[np.ndarray, int]:
    """One head's attention from pieces of its cache, and the bytes that pieces wrote and the merge read."""
    results, sums = [], []
    for some_keys, some_values in zip(np.array_split(keys, splits), np.array_split(values, splits), strict=True):
        scores = some_keys @ query
        weights = np.exp(scores - scores.max())
        results.append((weights @ some_values / weights.sum()).astype(np.float32))
        sums.append((scores.max() + np.log(weights.sum())).astype(np.float32))
    written = sum(one.nbytes for one in (*results, *sums))
    shares = np.exp(np.array(sums) - max(sums))
    return shares @ np.array(results) / shares.sum(), 2 * written


def test_pieces_give_the_attention_of_the_whole() -> None:
    rng = np.random.default_rng(7)
    query, keys, values = rng.normal(size=24), rng.normal(size=(50, 24)), rng.normal(size=(50, 24))
    whole, _ = merged(query, keys, values, splits=1)
    for splits in (2, 7, 50):
        pieces, moved = merged(query, keys, values, splits=splits)
        assert pieces == pytest.approx(whole, abs=1e-6)
        assert moved == split_decode.partial_bytes(batch=1, num_heads=1, head_dim=24, splits=splits)
    assert split_decode.partial_bytes(batch=9, num_heads=8, head_dim=128, splits=1) == 0


@pytest.mark.parametrize(("batch", "tokens", "whole_us", "split_us"), PRINTED)
def test_the_times_that_its_authors_printed(batch: int, tokens: int, whole_us: float, split_us: float) -> None:
    """Not split, a lone multiprocessor reaches three quarters of its share; split, all of them half and more."""
    shape = {"batch": batch, "num_kv_heads": 2, "cache_bytes": batch * tokens * 2 * 2 * 128 * 2, **A100}
    assert split_decode.split_read_s(**shape, splits=1) * 1e6 / whole_us == pytest.approx(0.77, abs=0.01)
    assert 0.5 < split_decode.split_read_s(**shape, splits=54 // batch) * 1e6 / split_us < 0.7


def test_two_pieces_are_better_than_three_in_the_rules_own_example() -> None:
    shares = [
        split_decode.pieces_waves(batch=6, num_kv_heads=8, splits=splits, num_sms=108).efficiency for splits in (2, 3)
    ]
    assert shares == pytest.approx([0.89, 0.67], abs=0.005)


def test_a_batch_that_fills_the_device_is_not_split() -> None:
    asked = {"num_kv_heads": 8, "num_sms": 132, "most": 512, "enough": 0.85}
    assert split_decode.fewest_splits(batch=14, **asked) == 1
    assert split_decode.fewest_splits(batch=13, **asked) == 5  # 104 blocks are under 0.8 x 132
    assert split_decode.fewest_splits(batch=1, num_kv_heads=8, num_sms=132, most=4, enough=0.85) == 4


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="enough"):
        split_decode.fewest_splits(batch=1, num_kv_heads=8, num_sms=132, most=8, enough=1.5)
    with pytest.raises(ValueError, match="splits"):
        split_decode.pieces_waves(batch=1, num_kv_heads=8, splits=0, num_sms=132)
