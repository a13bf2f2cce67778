"""How the suite is run: how much of it, in which order, and what stays together in one worker."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests import seeds
from threeloops import quick_start as quick_start  # before a test loads nbformat
from threeloops import wall_clock

# Torch's threads that have nothing to do sleep, here and in every process that a test starts. By default they turn in
# circles, and two workers beside each other, with two threads each on two cores, take ten times as long to train.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# What takes long, in seconds of one quiet core: of a file, or of the largest piece of a file that several workers
# share. The longest begin first, so that no worker is left with one at the end, and --quick leaves all of these out:
# it does not even read them.
SECONDS = {
    "test_grading_hostile.py": 60,
    "test_gradebook.py": 25,
    "test_machines.py": 70,
    "test_workers.py": 20,
    "test_hub.py": 90,
    "test_without_torch.py": 40,
    "test_measure_ranks.py": 30,
    "test_bench.py": 25,
    "test_terminal.py": 25,
    "test_parts_run.py": 20,
    "test_grading_parts.py": 20,
    "test_release.py": 16,
    "test_grading_canaries.py": 15,
    "test_grading_command.py": 30,
    "test_term.py": 25,
    "test_data_parallel.py": 15,
    "test_interview_widget.py": 10,
    "test_together.py": 10,
    "test_small_language_model.py": 12,
    "test_measure_driving.py": 12,
    "test_measure_streaming.py": 12,
    "test_faster_perception.py": 12,
    "test_pages.py": 45,
    "test_site_browser.py": 15,
    "test_site_axe.py": 30,
    "test_site_cards.py": 20,
    "test_site_explorers.py": 20,
    "test_site_functions.py": 30,
    "test_site_memory.py": 20,
    "test_site_predictions.py": 15,
    "test_site_printed.py": 40,
}
# Files whose tests have nothing in common that is made once: every one goes to whichever worker is free. All others
# stay together, file by file.
SPREAD = ("test_parts_run.py", "test_without_torch.py", "test_bench.py")
MEASURED = "test_measure_"  # real torch, often on several ranks: left out by --quick as well
# Here, what is made once is made for one drill set, the last word of a test's name.
BY_SET = ("test_grading_canaries.py", "test_release.py")
# Whatever looks into the one JupyterLab through the one Chromium; two of each would take twice the memory, and the
# time to start them.
BROWSER, BROWSERS_S = ("tests/chapters/test_browser", "tests/chapters/test_links"), 210
# The pages, which are built once.
PAGES = "tests/site/"
# What times a clock on the wall, or counts what the kernel has sent, would see the other's work as its own.
CLOCKS = ("test_measure_hosts.py", "test_measure_ranks.py", "test_measure_timing.py", "test_measure_wire.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("three loops").addoption
    group("--quick", action="store_true", help="few seeds, and no file that takes long: before a commit")
    group("--thorough", action="store_true", help="every seed, and what is marked thorough")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thorough: run by --thorough alone; tests/seeds.py says why")
    if config.getoption("--quick") and config.getoption("--thorough"):
        raise pytest.UsageError("--quick and --thorough contradict each other")
    seeds.begin("quick" if config.getoption("--quick") else "thorough" if config.getoption("--thorough") else "usual")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    slow = collection_path.name in SECONDS or collection_path.name.startswith(MEASURED)
    return True if slow and config.getoption("--quick") else None


def together(test: str) -> str:
    """The name of what a test, called by its node id, stays together with in one worker.

    >>> together("tests/chapters/test_browser_stack.py::test_a"), together("tests/lib/test_roofline.py::test_b[one]")
    ('browser', 'tests/lib/test_roofline.py')
    >>> together("tests/drills/test_release.py::test_c[kv_cache]"), together("tests/drills/test_release.py::test_d")
    ('set kv_cache]', 'tests/drills/test_release.py')
    """
    path = test.partition("::")[0]
    name = path.rpartition("/")[2]
    if path.startswith(BROWSER):
        return "browser"
    if path.startswith(PAGES):
        return "pages"
    if name in CLOCKS:
        return "clocks"
    if name in BY_SET and "[" in test:
        return "set " + test.partition("[")[2]
    return test if name in SPREAD else path


def seconds(test: str) -> float:
    """What decides about the order: seconds of what a test stays together with."""
    return BROWSERS_S if together(test) == "browser" else SECONDS.get(test.partition("::")[0].rpartition("/")[2], 0)


def left_out(item: pytest.Item) -> bool:
    """Is an item no part of this run?"""
    browser = seeds.mode() == "quick" and "chromium" in getattr(item, "fixturenames", ())
    return browser or (seeds.mode() != "thorough" and item.get_closest_marker("thorough") is not None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = {item for item in items if left_out(item)}
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]
    if hasattr(config, "workerinput"):  # otherwise one after the other, as they are written
        items.sort(key=lambda item: -seconds(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Not by xdist's marks: with pytest 9.2 xdist 3.8 no longer finds them, says nothing, and shares everything
    out.
    """
    if config.getoption("dist") != "loadgroup":
        return None  # somebody wants it otherwise
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return together(nodeid)

    return Together(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(seeds.said())


class Clock:
    """A clock on the wall that goes only when a test moves it."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s

    def move(self, seconds: float) -> None:
        self.at_s += seconds


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Noon of this run's day, for the product in this process and in those that it starts: no midnight passes between
    two looks at the calendar.
    """
    clock = Clock(wall_clock.here().replace(hour=12, minute=0, second=0, microsecond=0).timestamp())
    monkeypatch.setattr(wall_clock, "_read", lambda: clock.at_s)
    monkeypatch.setenv(wall_clock.SET, str(clock.at_s))
    return clock
