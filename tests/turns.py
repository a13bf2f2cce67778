"""Turns: what takes long is run by one run in five, so that five commits in a row run all of it.

A part that is run alone, a class that is attacked, a hub with its students, an explorer turned to both its ends: each
takes long and checks something that few changes touch. `book.py test` runs a fifth of them and says which;
`--thorough` runs them all, and so does a run that names files. A change to what is listed here runs it by name before
it is committed.
"""

from collections.abc import Iterable, Sequence

TURNS = 5
# Files that make one thing for all their tests: the turn of each. The turns take about as long as each other.
WHOLE = {
    "test_hub.py": 0,
    "test_browser_explorers.py": 0,
    "test_measure_ranks.py": 0,
    "test_wheel.py": 1,  # six seconds, half of them to build the wheel
    "test_site_functions.py": 1,
    "test_site_printed.py": 1,
    "test_cells.py": 2,
    "test_running.py": 2,
    "test_finding.py": 4,
    "test_as_written.py": 0,
    "test_terminal.py": 1,
    "test_grading_hostile.py": 2,
    "test_site_ways_on.py": 2,
    "test_site_axe.py": 3,
    "test_site_explorers.py": 3,
    "test_site_cards.py": 3,
    "test_room_page.py": 3,
    "test_browser_interview.py": 3,
    "test_machines.py": 4,
    "test_other_processors.py": 4,
    "test_elsewhere.py": 1,
}
# Files whose parametrised tests take turns one by one, and the turn of the first.
ONE_BY_ONE = {
    "test_parts_run.py": 0,
    "test_without_torch.py": 4,
    "test_conditions.py": 1,
    "test_explorers.py": 0,
    "test_browser_desk.py": 3,
}
# The same, by the last word of a test's name: what is made for one drill set is made once.
BY_SET = ("test_grading_canaries.py", "test_release.py")
# One explorer each; those that are named here are not about one and belong to every run.
EXPLORER, EVERY_RUN = (
    "test_browser_",
    ("test_browser_desk.py", "test_browser_panel.py", *WHOLE),
)


def turns(tests: Sequence[str]) -> dict[str, int]:
    """The turn of every test, called by its node id, that has one.

    >>> found = turns(["tests/a/test_hub.py::test_b", "tests/a/test_parts_run.py::test_c[one]", "tests/a/test_d.py::e"])
    >>> list(found.values())
    [0, 0]
    """
    explorers = {file: number for number, file in enumerate(sorted({_file(test) for test in tests if _explorer(test)}))}
    places = {key: number for file in ONE_BY_ONE for number, key in enumerate(_varied(tests, (file,)))}
    sets = {name: number for number, name in enumerate(sorted({_variant(test) for test in _varied(tests, BY_SET)}))}
    found = {}
    for test in tests:
        file = _file(test)
        if file in WHOLE:
            found[test] = WHOLE[file]
        elif test in places:
            found[test] = (ONE_BY_ONE[file] + places[test]) % TURNS
        elif file in explorers:
            found[test] = explorers[file] % TURNS
        elif file in BY_SET and _variant(test) in sets:
            found[test] = sets[_variant(test)] % TURNS
    return found


def _file(test: str) -> str:
    return test.partition("::")[0].rpartition("/")[2]


def _variant(test: str) -> str:
    return test.partition("[")[2]


def _explorer(test: str) -> bool:
    return _file(test).startswith(EXPLORER) and _file(test) not in EVERY_RUN


def _varied(tests: Iterable[str], files: tuple[str, ...]) -> list[str]:
    return [test for test in tests if _file(test) in files and _variant(test)]
