"""Padding: fewer shapes for more work.

A program that is compiled for one shape has to be compiled again for the next. Rounding lengths up to a multiple
leaves few shapes, and pays for them with positions that hold nothing.

>>> num_shapes(shortest=100, longest=1000, multiple=1), num_shapes(shortest=100, longest=1000, multiple=128)
(901, 8)
>>> round(mean_padding(shortest=129, longest=1024, multiple=128), 1)
63.5
"""

from threeloops import checks


def padded(*, length: int, multiple: int) -> int:
    """The smallest multiple that holds the length.

    Formula:  ceil(length / multiple) * multiple
    Source:   by definition
    Counted:  tests.inner_loop.test_input_pipeline.test_a_padded_length_is_the_first_multiple_on_the_way

    >>> padded(length=129, multiple=64)
    192
    """
    checks.count(length=length, multiple=multiple)
    return -(-length // multiple) * multiple


def num_shapes(*, shortest: int, longest: int, multiple: int) -> int:
    """How many different lengths are left when every length from shortest to longest is padded to a multiple.

    Formula:  ceil(longest / multiple) - ceil(shortest / multiple) + 1
    Assumes:  every length occurs sooner or later
    Raises:   ValueError for less than 1, or for a shortest that is longer than the longest
    Source:   by definition
    Counted:  tests.inner_loop.test_input_pipeline.test_shapes_and_padding_are_what_walking_through_all_lengths_finds
    Measured: measure.inner_loop.compiling.compilations
    """
    _checked(shortest, longest, multiple)
    return -(-longest // multiple) - -(-shortest // multiple) + 1


def mean_padding(*, shortest: int, longest: int, multiple: int) -> float:
    """Positions per sequence that hold nothing, on average over all lengths from shortest to longest, each as
    frequent as the others.

    Formula:  mean over lengths of (padded - length); (multiple - 1) / 2 over whole multiples
    Source:   by definition of a mean
    Counted:  tests.inner_loop.test_input_pipeline.test_shapes_and_padding_are_what_walking_through_all_lengths_finds
    """
    _checked(shortest, longest, multiple)
    lengths = range(shortest, longest + 1)
    return sum(padded(length=length, multiple=multiple) - length for length in lengths) / len(lengths)


def _checked(shortest: int, longest: int, multiple: int) -> None:
    checks.count(shortest=shortest, longest=longest, multiple=multiple)
    if shortest > longest:
        raise ValueError(f"shortest={shortest} must be at most longest={longest}")
