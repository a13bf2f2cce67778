"""Attention inside one multiprocessor: when the bytes are dealt with, which unit binds?

Per pair of query and key, a head multiplies 2 * (head_dim + value_head_dim) times and adds as often, on tensor cores,
and takes one exponential, on the special function units. From A100 to B200 the first units have grown by a factor of
two per generation and the second not at all; a B300 keeps the first and doubles the second.

>>> hopper = UnitRates(matrix_flops_per_clock=4096, exponentials_per_clock=16)
>>> cycles = tile_cycles(query_rows=128, key_rows=128, head_dim=128, rates=hopper)
>>> cycles.matrix, cycles.exponential, cycles.bound
(2048.0, 1024.0, 'matrix')

Source: Shah et al., FlashAttention-3, 2024, arXiv:2407.08608, section 3.1; Zadouri et al., FlashAttention-4, 2026,
        arXiv:2603.05451, section 3.1
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRates:
    """What one multiprocessor does in one clock cycle."""

    matrix_flops_per_clock: float  # dense, of one number format; a multiply-add counts as 2
    exponentials_per_clock: float

    def __post_init__(self) -> None:
        checks.positive(
            matrix_flops_per_clock=self.matrix_flops_per_clock, exponentials_per_clock=self.exponentials_per_clock
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TileCycles:
    """Clock cycles that one tile of attention keeps each unit busy."""

    matrix: float
    exponential: float

    @property
    def overlapped(self) -> float:
        """Both units at once: the busier one is the time."""
        return max(self.matrix, self.exponential)

    @property
    def in_turn(self) -> float:
        """One unit after the other, as a single group of warps does it: scores, exponentials, output."""
        return self.matrix + self.exponential

    @property
    def bound(self) -> str:
        """'matrix' or 'exponential', whichever is busier; 'both' when they are equal."""
        if self.matrix == self.exponential:
            return "both"
        return "matrix" if self.matrix > self.exponential else "exponential"

    @property
    def matrix_share_in_turn(self) -> float:
        """Share of the tensor cores' peak that is left if nothing overlaps."""
        return self.matrix / self.in_turn

    @property
    def matrix_share_overlapped(self) -> float:
        """Share of the tensor cores' peak that is left if everything overlaps."""
        return self.matrix / self.overlapped


def tile_cycles(
    *, query_rows: int, key_rows: int, head_dim: int, rates: UnitRates, emulated_share: float = 0.0
) -> TileCycles:
    """Cycles per unit for query_rows x key_rows scores, forward.

    Formula:  matrix: 4 * query_rows * key_rows * head_dim / matrix_flops_per_clock
              exponential: (1 - emulated_share) * query_rows * key_rows / exponentials_per_clock
    Assumes:  values as wide as keys; maximum, sum, conversion and rescaling on the ordinary units are free, and so is
              the shared memory; emulated_share of the exponentials is a polynomial on the ordinary units
              (FlashAttention-4, section 3.2)
    Counted:  simulate.inner_loop.unit_turns.play
    """
    checks.count(query_rows=query_rows, key_rows=key_rows, head_dim=head_dim)
    checks.fraction(emulated_share=emulated_share)
    pairs = query_rows * key_rows
    return TileCycles(
        matrix=4 * pairs * head_dim / rates.matrix_flops_per_clock,
        exponential=(1 - emulated_share) * pairs / rates.exponentials_per_clock,
    )
