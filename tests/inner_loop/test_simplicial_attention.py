"""2-simplicial attention: triples enumerated one by one, and the authors' own count."""

import itertools

import numpy as np
import pytest

from threeloops.inner_loop.simplicial_attention import attended_triples, simplicial_attention
from threeloops.operations import kernels

SHAPE = {"batch": 1, "num_heads": 64, "num_kv_heads": 1, "head_dim": 128, "bytes_per_element": 2}


def enumerated(tokens: int, first: int, second: int) -> int:
    """The mask of the authors' reference implementation (FBGEMM, torch_fwd_ref): i - w < j <= i for both keys."""
    return sum(i - first < j <= i and i - second < k <= i for i, j, k in itertools.product(range(tokens), repeat=3))


@pytest.mark.parametrize(
    ("tokens", "first", "second"), [(9, 3, 5), (9, 5, 3), (4, 7, 2), (4, 7, 9), (6, 6, 6), (10, 1, 1), (1, 3, 3)]
)
def test_triples_enumerated(tokens: int, first: int, second: int) -> None:
    assert attended_triples(tokens=tokens, first_window=first, second_window=second) == enumerated(
        tokens, first, second
    )


def test_a_first_window_of_one_is_ordinary_windowed_attention() -> None:
    # One first key per query: what is left is attention over the second window.
    plain = kernels.attention(
        batch=1,
        num_heads=64,
        num_kv_heads=1,
        head_dim=128,
        query_tokens=1000,
        context_tokens=1000,
        causal="exact",
        fused=True,
        window=50,
        bytes_per_element=2,
    )
    assert simplicial_attention(**SHAPE, tokens=1000, first_window=1, second_window=50).flops == plain.flops


def test_a_long_sequence_costs_what_attention_over_the_product_of_the_windows_costs() -> None:
    # The authors' benchmark compares with attention over first_window * second_window keys.
    tokens, keys = 65536, 32 * 256
    plain = kernels.attention(
        batch=1,
        num_heads=64,
        num_kv_heads=1,
        head_dim=128,
        query_tokens=1,
        context_tokens=keys,
        causal="full",
        fused=True,
        bytes_per_element=2,
    )
    assert simplicial_attention(**SHAPE, tokens=tokens, first_window=32, second_window=256).flops == pytest.approx(
        tokens * plain.flops, rel=0.005
    )


def test_bytes_are_those_of_six_tensors() -> None:
    queries, outputs = (np.empty((64, 100, 128), dtype=np.float16) for _ in range(2))
    two_keys_and_two_values = [np.empty((1, 100, 128), dtype=np.float16) for _ in range(4)]
    held = sum(tensor.nbytes for tensor in (queries, outputs, *two_keys_and_two_values))
    assert simplicial_attention(**SHAPE, tokens=100, first_window=4, second_window=8).moved_bytes == held


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_kv_heads=3 must divide num_heads=64"):
        simplicial_attention(**SHAPE | {"num_kv_heads": 3}, tokens=10, first_window=2, second_window=2)
    with pytest.raises(ValueError, match="first_window=0 must be a whole number of at least 1"):
        attended_triples(tokens=10, first_window=0, second_window=2)
