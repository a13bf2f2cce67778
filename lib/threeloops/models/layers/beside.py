"""Beside attention and MLP: weights that few families have, counted and named, but not described.

>>> Beside(name="a low-rank residual", matrices=2 * 64 * 2048, others=2048).total
264192
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Weights of one layer, or of a whole model outside its layers."""

    name: str  # what they are, in words
    matrices: int = 0  # multiply every token
    others: int = 0  # norms, scales, biases
    table: int = 0  # only looked up

    def __post_init__(self) -> None:
        checks.count(at_least=0, matrices=self.matrices, others=self.others, table=self.table)

    @property
    def total(self) -> int:
        """All of them.

        Source: by definition
        """
        return self.matrices + self.others + self.table
