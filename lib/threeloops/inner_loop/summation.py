"""Summation: how wrong a long sum can be, and what the order of its additions has to do with it.

Every addition rounds. A term is rounded as often as the additions that it passes through, and that number, not the
number of terms, is what counts.

>>> in_order(4096), split(4096, parts=64), pairwise(4096)
(4095, 126, 12)

Source: Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14(4), 1993, doi:10.1137/0914050
"""

from threeloops import checks
from threeloops.inner_loop.number_formats import Format


def in_order(terms: int) -> int:
    """Additions that the first term passes through when terms are added one after the other."""
    checks.count(terms=terms)
    return terms - 1


def split(terms: int, *, parts: int) -> int:
    """Additions on the longest way when equal parts are summed in order, then their sums in order: what a kernel does
    whose threads share a sum.

    Formula:  ceil(terms / parts) - 1 + parts - 1
    Counted:  simulate.inner_loop.sum_orders.in_parts
    """
    checks.count(terms=terms, parts=parts)
    if parts > terms:
        raise ValueError(f"parts={parts!r} must not be more than terms={terms!r}")
    return -(-terms // parts) - 1 + parts - 1


def pairwise(terms: int) -> int:
    """Additions on the longest way when neighbours are added, then neighbours of the sums, until one is left:
    ceil(log2(terms)).
    """
    checks.count(terms=terms)
    return (terms - 1).bit_length()


def relative_error_bound(*, additions: int, form: Format, cancellation: float = 1.0) -> float:
    """The largest relative error of a sum whose terms each pass through at most so many additions.

    Formula:  n u / (1 - n u) × cancellation, with u = epsilon / 2 and cancellation = sum of sizes / size of the sum
              (1 when all terms have one sign)
    Assumes:  round to nearest; no overflow. Typical errors are far smaller: roundings go both ways
    Raises:   ValueError where n u reaches 1: then nothing is promised
    Source:   Higham, 1993, equation (3.1) and section 3
    Counted:  simulate.inner_loop.sum_orders.in_pairs

    >>> from threeloops.inner_loop.number_formats import FP32
    >>> f"{relative_error_bound(additions=4095, form=FP32):.1e}"
    '2.4e-04'
    """
    checks.count(additions=additions, at_least=0)
    if cancellation < 1:
        raise ValueError(
            f"cancellation={cancellation!r} must be at least 1: sizes add up to at least the size of the sum"
        )
    worst = additions * form.epsilon / 2
    if worst >= 1:
        raise ValueError(
            f"additions={additions!r} in {form.name} may lose every digit; try fewer than {2 / form.epsilon:,.0f}"
        )
    return worst / (1 - worst) * cancellation
