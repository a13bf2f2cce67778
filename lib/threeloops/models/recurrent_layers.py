"""Recurrent layers: what stands in place of attention in hybrid models, and keeps a state that does not grow.

Such a layer writes every token into one matrix per head. The matrix keeps its size, however many tokens it has read.
A prompt goes through it chunk by chunk: the pairs of tokens inside a chunk as attention has them, what came before the
chunk through the matrix. One token alone updates the matrix and reads it.

>>> layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
>>> layer.state_elements, layer.conv_elements
(524288, 32768)
"""

from dataclasses import dataclass
from typing import ClassVar

from threeloops import checks
from threeloops.operations import scan_kernels


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
    chunk: int = scan_kernels.DELTA_CHUNK
    unusual: ClassVar[str] = ""

    def __post_init__(self) -> None:
        checks.count(
            key_heads=self.key_heads,
            value_heads=self.value_heads,
            key_head_dim=self.key_head_dim,
            value_head_dim=self.value_head_dim,
            conv_entries=self.conv_entries,
            chunk=self.chunk,
        )
        checks.divides(part="key_heads", part_value=self.key_heads, whole="value_heads", whole_value=self.value_heads)

    @property
    def conv_channels(self) -> int:
        """What the convolution reads of each token: queries, keys and values."""
        return 2 * self.key_heads * self.key_head_dim + self.value_dim

    @property
    def value_dim(self) -> int:
        """Width of all value heads side by side."""
        return self.value_heads * self.value_head_dim

    @property
    def state_heads(self) -> int:
        """Matrices that are kept."""
        return self.value_heads

    @property
    def state_elements(self) -> int:
        """Numbers in the matrices of all heads."""
        return self.value_heads * self.key_head_dim * self.value_head_dim

    @property
    def conv_elements(self) -> int:
        """Numbers that the convolution over queries, keys and values keeps."""
        return self.conv_entries * self.conv_channels

    @property
    def norm_width(self) -> int:
        """Weights of the norm on the way out, one for all heads."""
        return self.value_head_dim

    @property
    def norms_per_token(self) -> int:
        """Rows that this norm sees of each token."""
        return self.value_heads

    @property
    def output_dim(self) -> int:
        """Width of what the layer reads out of its matrices for one token."""
        return self.value_dim

    @property
    def input_columns(self) -> int:
        """Columns of all projections in: queries, keys, values, a gate as wide as the values, 2 per value head."""
        return self.conv_channels + self.value_dim + 2 * self.value_heads

    def matmul_parameters(self, *, hidden: int) -> int:
        """Weights of both projections, which multiply every token.

        Formula:  hidden * (input_columns + value_dim)
        """
        checks.count(hidden=hidden)
        return hidden * (self.input_columns + self.value_dim)

    def scan_flops(self, *, tokens: int, causal: str) -> float:
        """Matrix-product FLOPs of the scan over one sequence: operations.scan_kernels.delta_scan_flops.

        >>> layer = DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4)
        >>> layer.scan_flops(tokens=4096, causal="full") / 4096
        5767168.0
        """
        return scan_kernels.delta_scan_flops(
            value_heads=self.value_heads,
            key_head_dim=self.key_head_dim,
            value_head_dim=self.value_head_dim,
            chunk=self.chunk,
            tokens=tokens,
            causal=causal,
        )

    @property
    def update_flops(self) -> int:
        """FLOPs of one token alone, element by element.

        Formula:  7 * state_elements: decay (1), what the matrix holds for the key (2), the correction written (2), the
                  query's read (2)
        """
        return 7 * self.state_elements

    def parameters(self, *, hidden: int) -> int:
        """Projections, convolution and the decay of each head, without the norm.

        Formula:  hidden * (queries, keys, values, a gate as wide as the values, 2 per value head) + values * hidden +
                  conv_channels * conv_entries + 2 * value_heads

        >>> DeltaState(key_heads=16, value_heads=32, key_head_dim=128, value_head_dim=128, conv_entries=4).parameters(
        ...     hidden=2048
        ... )
        33718336
        """
        checks.count(hidden=hidden)
        return self.matmul_parameters(hidden=hidden) + self.conv_elements + 2 * self.value_heads


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """One layer of Mamba 2: a matrix per head, and the last inputs of a short convolution.

    Source: Dao, Gu, Transformers are SSMs, 2024, arXiv:2405.21060; transformers 5.23,
            models/nemotron_h/modeling_nemotron_h.py, NemotronHMamba2Mixer
    """

    num_heads: int
    head_dim: int
    state_dim: int
    groups: int  # heads of one group share what writes into and reads out of their states
    conv_entries: int  # tokens of convolution input that are kept: the kernel's width in transformers
    conv_bias: bool
    bias: bool  # on both projections
    chunk: int  # tokens that the scan takes at once
    gated_norm: bool = True
    unusual: ClassVar[str] = ""

    def __post_init__(self) -> None:
        checks.count(
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            state_dim=self.state_dim,
            groups=self.groups,
            conv_entries=self.conv_entries,
            chunk=self.chunk,
        )
        checks.divides(part="groups", part_value=self.groups, whole="num_heads", whole_value=self.num_heads)

    @property
    def inner(self) -> int:
        """Width of all heads side by side."""
        return self.num_heads * self.head_dim

    @property
    def conv_channels(self) -> int:
        """What the convolution reads of each token: the heads' inputs, and each group's two vectors."""
        return self.inner + 2 * self.groups * self.state_dim

    @property
    def state_heads(self) -> int:
        """Matrices that are kept."""
        return self.num_heads

    @property
    def state_elements(self) -> int:
        """Numbers in the matrices of all heads."""
        return self.inner * self.state_dim

    @property
    def conv_elements(self) -> int:
        """Numbers that the convolution keeps."""
        return self.conv_entries * self.conv_channels

    @property
    def norm_width(self) -> int:
        """Weights of the norm on the way out."""
        return self.inner if self.gated_norm else 0

    @property
    def norms_per_token(self) -> int:
        """Rows that this norm sees of each token."""
        return 1

    @property
    def output_dim(self) -> int:
        """Width of what the layer reads out of its matrices for one token."""
        return self.inner

    @property
    def input_columns(self) -> int:
        """Columns of the projection in: what the convolution reads, a gate as wide as the heads, a step per head."""
        return self.conv_channels + self.inner + self.num_heads

    def matmul_parameters(self, *, hidden: int) -> int:
        """Weights of both projections, which multiply every token.

        Formula:  hidden * (input_columns + inner)
        """
        checks.count(hidden=hidden)
        return hidden * (self.input_columns + self.inner)

    def scan_flops(self, *, tokens: int, causal: str) -> float:
        """Matrix-product FLOPs of the scan over one sequence: operations.scan_kernels.state_scan_flops.

        >>> sizes = {"num_heads": 128, "head_dim": 64, "state_dim": 128, "groups": 8, "conv_entries": 4, "chunk": 128}
        >>> StateSpace(**sizes, conv_bias=True, bias=False).scan_flops(tokens=4096, causal="full") / 4096
        6553600.0
        """
        return scan_kernels.state_scan_flops(
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            state_dim=self.state_dim,
            groups=self.groups,
            chunk=self.chunk,
            tokens=tokens,
            causal=causal,
        )

    @property
    def update_flops(self) -> int:
        """FLOPs of one token alone, element by element.

        Formula:  5 * state_elements: decay (1), the input written (2), the read (2)
        """
        return 5 * self.state_elements

    def parameters(self, *, hidden: int) -> int:
        """Projections, convolution, and three values per head (decay, step, skip), without the norm.

        Formula:  hidden * (conv_channels + inner + num_heads) + inner * hidden + conv_channels * conv_entries + 3 *
                  num_heads + biases

        >>> StateSpace(
        ...     num_heads=128,
        ...     head_dim=64,
        ...     state_dim=128,
        ...     groups=8,
        ...     conv_entries=4,
        ...     conv_bias=True,
        ...     bias=False,
        ...     chunk=128,
        ... ).parameters(hidden=4096)
        109627776
        """
        checks.count(hidden=hidden)
        biases = self.conv_bias * self.conv_channels + self.bias * (self.input_columns + hidden)
        return self.matmul_parameters(hidden=hidden) + self.conv_elements + 3 * self.num_heads + biases
