"""Recurrent state: what a layer of linear attention keeps of a request in place of a cache that grows.

Such a layer writes every token into one matrix per head. The matrix keeps its size, however many tokens it has read;
so a hybrid model, in which most layers are of this kind, pays for context in the few that are not.

>>> layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
>>> layer.state_elements, layer.conv_elements
(524288, 32768)
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaState:
    """One layer of gated delta net: a matrix per value head, and the last inputs of a short convolution.

    Source: Yang, Kautz, Hatamizadeh, Gated Delta Networks, 2024, arXiv:2412.06464; transformers 5.23,
            models/qwen3_next/modeling_qwen3_next.py (heads, and what the convolution reads)
    """

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_entries: int  # tokens of convolution input that are kept: the kernel's width in transformers

    def __post_init__(self) -> None:
        checks.count(
            key_heads=self.key_heads,
            value_heads=self.value_heads,
            key_head_dim=self.key_head_dim,
            value_head_dim=self.value_head_dim,
            conv_entries=self.conv_entries,
        )
        checks.divides(part="key_heads", part_value=self.key_heads, whole="value_heads", whole_value=self.value_heads)

    @property
    def state_elements(self) -> int:
        """Numbers in the matrices of all heads."""
        return self.value_heads * self.key_head_dim * self.value_head_dim

    @property
    def conv_elements(self) -> int:
        """Numbers that the convolution over queries, keys and values keeps."""
        return self.conv_entries * (2 * self.key_heads * self.key_head_dim + self.value_heads * self.value_head_dim)


def state_bytes(layer: DeltaState, *, state_bytes_per_element: float, conv_bytes_per_element: float) -> float:
    """Bytes that one layer keeps for one request, whatever its length.

    Formula:  value heads * key dim * value dim * bytes + kept inputs * (2 * key heads * key dim + value heads * value
              dim) * bytes
    Assumes:  one rank; no copies of earlier states (a server that caches prefixes keeps some)
    Source:   as DeltaState

    >>> layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
    >>> state_bytes(layer, state_bytes_per_element=4, conv_bytes_per_element=2)
    2162688
    """
    checks.positive(state_bytes_per_element=state_bytes_per_element, conv_bytes_per_element=conv_bytes_per_element)
    return layer.state_elements * state_bytes_per_element + layer.conv_elements * conv_bytes_per_element
