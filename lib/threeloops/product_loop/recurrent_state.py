"""Recurrent state: what a layer of linear attention keeps of a request in place of a cache that grows.

Such a layer writes every token into one matrix per head. The matrix keeps its size, however many tokens it has read;
so a hybrid model, in which most layers are of this kind, pays for context in the few that are not.

>>> layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
>>> layer.state_elements, layer.conv_elements
(524288, 32768)
"""

from threeloops import checks
from threeloops.models.architecture import Recurrent
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.operations.scan_kernels import MATRIX_BYTES

__all__ = ["CONV_BYTES", "MATRIX_BYTES", "DeltaState", "StateSpace", "rank_state_bytes", "state_bytes"]

CONV_BYTES = 2  # the convolution's inputs in 16 bits


def state_bytes(layer: Recurrent, *, state_bytes_per_element: float, conv_bytes_per_element: float) -> float:
    """Bytes that one layer keeps for one request, whatever its length.

    Formula:  state_elements * bytes + conv_elements * bytes; of gated delta net value heads * key dim * value dim and
              kept inputs * (2 * key heads * key dim + value heads * value dim), of Mamba 2 heads * head dim * state
              dim and kept inputs * (heads * head dim + 2 * groups * state dim)
    Assumes:  one rank; no copies of earlier states (a server that caches prefixes keeps some)
    Source:   as DeltaState and StateSpace
    Measured: measure.product_loop.kv_cache.state_bytes

    >>> layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
    >>> state_bytes(layer, state_bytes_per_element=4, conv_bytes_per_element=2)
    2162688
    """
    checks.positive(state_bytes_per_element=state_bytes_per_element, conv_bytes_per_element=conv_bytes_per_element)
    return layer.state_elements * state_bytes_per_element + layer.conv_elements * conv_bytes_per_element


def rank_state_bytes(layer: Recurrent, *, tp: int = 1) -> float:
    """Bytes that one tensor-parallel rank keeps of a layer for one request, in the formats that servers use.

    Formula:  state_bytes with MATRIX_BYTES and CONV_BYTES, over tp
    Assumes:  heads, and what the convolution reads, are split evenly
    Raises:   ValueError unless tp divides the heads that keep a matrix
    Source:   transformers 5.23, the two modelling files of DeltaState and StateSpace (mamba_ssm_cache_dtype float32)
    Counted:  tests.product_loop.test_recurrent_state.test_a_mamba_layer_keeps_a_matrix_per_head_and_its_last_inputs

    >>> layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
    >>> rank_state_bytes(layer, tp=2)
    1081344.0
    """
    checks.count(tp=tp)
    checks.divides(part="tp", part_value=tp, whole="heads with a state", whole_value=layer.state_heads)
    return state_bytes(layer, state_bytes_per_element=MATRIX_BYTES, conv_bytes_per_element=CONV_BYTES) / tp
