"""Times: how long every file took, told at the end of a run and kept, so that growth is seen; and second tries.

What a scheduler or a browser decides may be tried a second time, once: a test says so by `@pytest.mark.clock("why")`,
and the run names at its end each one that needed it, with what the first try saw. An issue is not done while the last
ten runs name any.
"""

import collections
import os
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

KEPT = Path(__file__).parents[1] / "build" / "test_seconds.tsv"
LONG_S = 5  # a test that takes longer stands in a table of tests/conftest.py or tests/turns.py, with its file
SECOND_TRY, COMPUTED = "second try", "seconds of a processor"


class Times:
    """Seconds of a worker, by test, from the reports of a run."""

    def __init__(self) -> None:
        self.by_test: collections.Counter[str] = collections.Counter()
        self.computed: collections.Counter[str] = (
            collections.Counter()
        )  # of them, what this process and its ended children computed
        self.tried_again: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.by_test[report.nodeid] += report.duration  # type: ignore[assignment]
        for name, why in report.user_properties:
            if name == SECOND_TRY:
                self.tried_again[report.nodeid] = str(why)
            elif name == COMPUTED and report.when == "teardown":  # its last report tells of all that went before
                self.computed[report.nodeid] += float(str(why))  # type: ignore[assignment]

    @property
    def by_file(self) -> collections.Counter[str]:
        return _by_file(self.by_test)

    def lines(self, known: Iterable[str], *, before: dict[str, tuple[int, float]]) -> list[str]:
        """What a run says: seconds by file, the slowest tests, what grew, what no table names, second tries."""
        files, tests = self.by_file, self.by_test
        said = [f"{sum(tests.values()):.0f} s of all workers together. By file:"]
        said += [f"  {seconds:6.1f} s  {file}" for file, seconds in files.most_common(15)]
        said += ["The slowest tests, and how much of it a processor computed:"]
        said += [f"  {seconds:6.1f} s, {self.computed[test]:5.1f} s  {test}" for test, seconds in tests.most_common(10)]
        counts = collections.Counter(test.partition("::")[0] for test in tests)
        grown = {
            file: seconds - before[file][1]
            for file, seconds in files.items()
            if file in before and before[file][0] == counts[file] and seconds > 1.5 * before[file][1] + LONG_S
        }
        said += [f"Grew by {more:.0f} s since the last run: {file}" for file, more in grown.items()]
        told = set(known)
        said += [
            f"Took {seconds:.1f} s, and no table says why: {test}"
            for test, seconds in tests.items()
            if seconds > LONG_S and test.partition("::")[0].rpartition("/")[2] not in told
        ]
        said += [f"Tried a second time: {test}: {why}" for test, why in self.tried_again.items()]
        return said if self.tried_again else [*said, "Nothing was tried a second time."]

    def keep(self) -> None:
        """One line a file: how many tests, how long they took, and how much of it a processor computed."""
        counts = collections.Counter(test.partition("::")[0] for test in self.by_test)
        computed = _by_file(self.computed)
        KEPT.parent.mkdir(exist_ok=True)
        rows = (
            f"{file}\t{counts[file]}\t{seconds:.2f}\t{computed[file]:.2f}\n"
            for file, seconds in self.by_file.most_common()
        )
        KEPT.write_text("".join(rows), encoding="utf-8")


def _by_file(by_test: collections.Counter[str]) -> collections.Counter[str]:
    found: collections.Counter[str] = collections.Counter()
    for test, seconds in by_test.items():
        found[test.partition("::")[0]] += seconds
    return found


def last_run() -> dict[str, tuple[int, float]]:
    """What was kept of the last run: tests and seconds by file."""
    if not KEPT.exists():
        return {}
    rows = (line.split("\t") for line in KEPT.read_text(encoding="utf-8").splitlines())
    return {file: (int(count), float(seconds)) for file, count, seconds, *_ in rows}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Seconds of a processor beside those of the clock: who waits for a machine that stands still computes nothing."""
    before = os.times()[:4]
    try:
        return (yield)
    finally:
        item.user_properties.append((COMPUTED, f"{sum(os.times()[:4]) - sum(before):.2f}"))


pytest_runtest_setup = pytest_runtest_call  # fixtures are made there


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A second try of what is marked, with the same fixtures."""
    marked = pyfuncitem.get_closest_marker("clock")
    if marked is None:
        return (yield)
    try:
        return (yield)
    except Exception as first:
        saw = (str(first).splitlines() or [""])[0][:200]
        pyfuncitem.user_properties.append((SECOND_TRY, f"{marked.args[0]}; {type(first).__name__}: {saw}"))
    wanted = pyfuncitem._fixtureinfo.argnames
    pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted})
    return True
