"""Lightning attention: one matrix a head that decays by a fixed factor, without a convolution.

>>> Lightning(num_heads=64, head_dim=128).state_elements
1048576
"""

from dataclasses import dataclass
from typing import ClassVar

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Lightning:
    """One layer of lightning attention: queries, keys and values of all heads, a gate on the way out behind a norm.

    Source: MiniMax, MiniMax-01, 2025, arXiv:2501.08313, section 2.2; transformers 5.23,
            models/minimax/modeling_minimax.py, MiniMaxLightningAttention
    """

    num_heads: int
    head_dim: int
    conv_elements: ClassVar[int] = 0
    unusual: ClassVar[str] = "lightning attention"

    def __post_init__(self) -> None:
        checks.count(num_heads=self.num_heads, head_dim=self.head_dim)

    @property
    def state_heads(self) -> int:
        """Matrices that are kept."""
        return self.num_heads

    @property
    def state_elements(self) -> int:
        """Numbers in the matrices of all heads."""
        return self.num_heads * self.head_dim**2

    @property
    def norm_width(self) -> int:
        """Weights of the norm on the way out, one for every channel."""
        return self.num_heads * self.head_dim

    def parameters(self, *, hidden: int) -> int:
        """Five matrices, without the norm.

        Formula:  5 * hidden * num_heads * head_dim

        >>> Lightning(num_heads=64, head_dim=128).parameters(hidden=6144)
        251658240
        """
        checks.count(hidden=hidden)
        return 5 * hidden * self.num_heads * self.head_dim
