"""Safety levels: how carefully a part of a car must be developed, from what its fault can do.

Source:   ISO 26262-3:2018, table 4, as told by secondary sources (the standard itself was not opened)

>>> asil(severity=3, exposure=4, controllability=3)
'D'
"""

from threeloops import checks

LEVELS = {10: "D", 9: "C", 8: "B", 7: "A"}  # sum of the three classes -> level; below it is QM
CLASSES = {"severity": 3, "exposure": 4, "controllability": 3}  # the largest of each


def asil(*, severity: int, exposure: int, controllability: int) -> str:
    """The automotive safety integrity level of a hazard, A to D, or QM: ordinary quality management.

    Formula:  severity + exposure + controllability: 10 is D, 9 is C, 8 is B, 7 is A, less is QM
    Units:    severity 1 (light injuries) to 3 (fatal), exposure 1 (very seldom) to 4 (on any drive), controllability 1
              (nearly everybody avoids it) to 3 (hardly anybody does)
    Assumes:  no class is 0; a class of 0 in any of the three needs no level
    Raises:   ValueError for a class that the standard does not have
    Source:   ISO 26262-3:2018, table 4: a table of 36 cells, of which the sum is a short form
    Counted:  tests.driving.test_safety_levels.test_the_sum_of_the_classes_is_the_standards_table

    >>> [asil(severity=3, exposure=exposure, controllability=3) for exposure in (4, 3, 2, 1)]
    ['D', 'C', 'B', 'A']
    """
    given = {"severity": severity, "exposure": exposure, "controllability": controllability}
    checks.count(**given)
    for name, one in given.items():
        if one > CLASSES[name]:
            raise ValueError(f"{name}={one} must be a class from 1 to {CLASSES[name]}")
    return LEVELS.get(sum(given.values()), "QM")
