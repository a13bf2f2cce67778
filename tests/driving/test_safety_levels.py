"""Safety levels, held against the standard's table, cell by cell."""

import itertools
import re

import pytest

from threeloops.driving.safety_levels import asil

# ISO 26262-3:2018, table 4: for S1, S2, S3 and in each for E1 to E4, the levels of C1, C2, C3.
TABLE = """
QM QM QM / QM QM QM / QM QM A / QM A B
QM QM QM / QM QM A / QM A B / A B C
QM QM A / QM A B / A B C / B C D
"""


def test_the_sum_of_the_classes_is_the_standards_table() -> None:
    rows = [[one.split() for one in line.split(" / ")] for line in TABLE.strip().splitlines()]
    for severity, exposure, controllability in itertools.product(range(1, 4), range(1, 5), range(1, 4)):
        told = asil(severity=severity, exposure=exposure, controllability=controllability)
        assert told == rows[severity - 1][exposure - 1][controllability - 1]


def test_only_one_of_36_is_d() -> None:
    classes = itertools.product(range(1, 4), range(1, 5), range(1, 4))
    assert [asil(severity=s, exposure=e, controllability=c) for s, e, c in classes].count("D") == 1


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ((4, 4, 3), "severity=4 must be a class from 1 to 3"),
        ((3, 5, 3), "exposure=5 must be a class from 1 to 4"),
        ((3, 4, 0), "controllability=0 must be a whole number"),
    ],
)
def test_a_class_that_is_none_is_refused(classes: tuple[int, int, int], message: str) -> None:
    severity, exposure, controllability = classes
    with pytest.raises(ValueError, match=re.escape(message)):
        asil(severity=severity, exposure=exposure, controllability=controllability)
