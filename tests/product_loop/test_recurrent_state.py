"""States of linear attention: what is refused, and how they grow with the shape. Their bytes are held against a real
model in tests/measure.
"""

import re

import numpy as np
import pytest

from threeloops.models import catalogue
from threeloops.product_loop import kv_cache
from threeloops.product_loop.recurrent_state import DeltaState, StateSpace, rank_state_bytes, state_bytes

SHAPE = {"key_heads": 2, "value_heads": 6, "key_head_dim": 5, "value_head_dim": 7, "conv_entries": 4}


def test_a_published_shape() -> None:
    """Qwen3-Next's layer: 32 matrices of 128 by 128 (half a mebi of numbers), and 4 inputs 8,192 wide."""
    layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
    assert layer.state_elements == 2**19
    assert layer.conv_elements == 4 * 8192


def test_wider_values_widen_the_matrix_and_the_convolution() -> None:
    narrow, wide = DeltaState(**SHAPE), DeltaState(**SHAPE | {"value_head_dim": 14})
    assert wide.state_elements == 2 * narrow.state_elements
    assert wide.conv_elements - narrow.conv_elements == 4 * 6 * 7
    full = state_bytes(narrow, state_bytes_per_element=4, conv_bytes_per_element=2)
    assert full == 4 * 6 * 5 * 7 + 2 * 4 * (2 * 2 * 5 + 6 * 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key_heads": 4}, "key_heads=4 must divide value_heads=6"),
        ({"conv_entries": 0}, "conv_entries=0 must be a whole number of at least 1"),
    ],
)
def test_impossible_shapes_are_refused(change: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        DeltaState(**SHAPE | change)


MAMBA = {"num_heads": 8, "head_dim": 5, "state_dim": 11, "groups": 2, "conv_entries": 4, "chunk": 16}


def test_a_mamba_layer_keeps_a_matrix_per_head_and_its_last_inputs() -> None:
    layer = StateSpace(**MAMBA, conv_bias=True, bias=False)
    matrices = np.empty((8, 5, 11), dtype=np.float32)
    kept_inputs = [np.empty((4, width), dtype=np.float16) for width in (8 * 5, 2 * 11, 2 * 11)]
    held = matrices.nbytes + sum(part.nbytes for part in kept_inputs)
    assert state_bytes(layer, state_bytes_per_element=4, conv_bytes_per_element=2) == held
    for tp in (1, 2, 4):  # the first rank's heads, and its columns of what the convolution reads
        mine = np.split(matrices, tp)[0].nbytes + sum(
            piece.nbytes for part in kept_inputs for piece in np.array_split(part, tp, axis=1)[:1]
        )
        assert rank_state_bytes(layer, tp=tp) == pytest.approx(mine, rel=0.02)  # 22 columns are not dealt evenly
    with pytest.raises(ValueError, match="tp=3 must divide heads with a state=8"):
        rank_state_bytes(layer, tp=3)


def test_a_state_is_paid_once_and_does_not_grow() -> None:
    model = catalogue.model("qwen3-next-80b-a3b")
    states = kv_cache.states_bytes(model)
    assert states == 36 * (4 * 32 * 128 * 128 + 2 * 4 * 8192)
    empty, one, many = (kv_cache.request_bytes(model, tokens=tokens, bytes_per_element=2) for tokens in (0, 1, 1000))
    assert (empty, one - states, many - states) == (0, 24_576, 24_576_000)
    assert kv_cache.bytes_per_token(model, bytes_per_element=2, past_tokens=1000) == 24_576
