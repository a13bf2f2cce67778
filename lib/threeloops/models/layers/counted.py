"""Counted layers: what a class of transformers was seen to keep and to hold, where no reader describes its layers.

>>> CountedState(state_heads=32, state_elements=524288, conv_elements=0).parameters(hidden=4096)
0
"""

from dataclasses import dataclass
from typing import ClassVar

from threeloops import checks

ON_ITS_CLASS = "weights that were counted on its class alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedState:
    """What a layer keeps whatever the length, as its class was seen to keep it; its weights are in CountedWeights."""

    state_heads: int  # that ranks share
    state_elements: int
    conv_elements: int  # inputs of a convolution, and all else that is kept in 16 bits
    unusual: ClassVar[str] = ON_ITS_CLASS

    def __post_init__(self) -> None:
        checks.count(state_heads=self.state_heads)
        checks.count(at_least=0, state_elements=self.state_elements, conv_elements=self.conv_elements)

    @property
    def norm_width(self) -> int:
        """None: all weights are counted apart."""
        return 0

    def parameters(self, *, hidden: int) -> int:
        """None: all weights are counted apart."""
        checks.count(hidden=hidden)
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedWeights:
    """All parameters of a model, as its class was seen to hold them."""

    how: str  # in words
    embedding: int
    further_tables: int  # looked up as the input table is
    head: int  # 0 where it is the input table
    matrices: int  # of more than one dimension, without routed experts'
    experts: int  # matrices of routed experts
    others: int  # norms, biases, scales

    def __post_init__(self) -> None:
        checks.count(
            at_least=0,
            embedding=self.embedding,
            further_tables=self.further_tables,
            head=self.head,
            matrices=self.matrices,
            experts=self.experts,
            others=self.others,
        )

    @property
    def total(self) -> int:
        """Every parameter once.

        Source: by definition
        """
        tables = self.embedding + self.further_tables + self.head
        return tables + self.matrices + self.experts + self.others
