"""How the suite is run: how much of it, in which order, and what stays together in one worker."""

import collections
import gc
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests import seeds, times, touched, turns
from threeloops import quick_start as quick_start  # before a test loads nbformat
from threeloops import wall_clock

# Torch's threads that have nothing to do sleep, here and in every process that a test starts. By default they turn in
# circles, and two workers beside each other, with two threads each on two cores, take ten times as long to train.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Sixteen thousand tests are collected without a look for garbage among them, and none later walks through them again:
# half of a worker's start, and some seconds of every worker after it.
gc.disable()

# What takes long, in seconds of one quiet core: of a file, or of the largest piece of a file that several workers
# share. The longest begin first, so that no worker is left with one at the end, and --quick leaves all of these out:
# it does not even read them.
SECONDS = {
    "test_grading_hostile.py": 60,
    "test_wheel.py": 6,
    "test_used.py": 6,
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
    "test_graded_there.py": 12,
    "test_term.py": 25,
    "test_elsewhere.py": 12,
    "test_partial_credit.py": 12,
    "test_groups.py": 10,
    "test_explanations.py": 8,
    "test_word_and_latex.py": 6,
    "test_data_parallel.py": 15,
    "test_interview_widget.py": 10,
    "test_explorers.py": 20,
    "test_other_processors.py": 18,
    "test_recording.py": 10,
    "test_conditions.py": 25,
    "test_hunt.py": 15,
    "test_serve.py": 22,
    "test_hf_config.py": 17,
    "test_sheets.py": 11,
    "test_quiz.py": 10,
    "test_intake_hostile.py": 9,
    "test_serving_questions.py": 7,
    "test_plan.py": 7,
    "test_published_configs.py": 6,
    "test_warm_process.py": 6,
    "test_serving_run.py": 6,
    "test_sharded_mixed.py": 5,
    "test_traces.py": 5,
    "test_published_layouts.py": 5,
    "test_dla_nodes.py": 5,
    "test_together.py": 10,
    "test_small_language_model.py": 12,
    "test_measure_known_truths.py": 18,
    "test_measure_counted_class.py": 20,
    "test_measure_driving.py": 12,
    "test_measure_streaming.py": 12,
    "test_faster_perception.py": 12,
    "test_pages.py": 45,
    "test_site_browser.py": 15,
    "test_site_axe.py": 30,
    "test_cells.py": 15,
    "test_running.py": 12,
    "test_finding.py": 8,
    "test_as_written.py": 8,
    "test_first_page.py": 45,  # these need the pages, which are built once
    "test_heads.py": 45,
    "test_weight.py": 45,
    "test_book_as_epub.py": 45,
    "test_room_page.py": 20,
    "test_site_ways_on.py": 20,
    "test_site_cards.py": 20,
    "test_site_failures.py": 15,
    "test_site_offline.py": 15,
    "test_site_phone.py": 12,
    "test_site_explorers.py": 20,
    "test_site_functions.py": 30,
    "test_site_memory.py": 20,
    "test_serving_page.py": 25,
    "test_site_predictions.py": 15,
    "test_site_printed.py": 40,
}
# Files whose tests have nothing in common that is made once: every one goes to whichever worker is free. All others
# stay together, file by file.
SPREAD = ("test_parts_run.py", "test_without_torch.py", "test_bench.py", "test_conditions.py")
MEASURED = "test_measure_"  # real torch, often on several ranks: left out by --quick as well
# Whatever looks into the one JupyterLab through the one Chromium; two of each would take twice the memory, and the
# time to start them.
BROWSER, BROWSERS_S = ("tests/chapters/test_browser", "tests/chapters/test_links"), 210
BROWSER_FILES = tuple(path.name for path in (Path(__file__).parent / "chapters").glob("test_browser*.py"))
# The pages, which are built once, by the worker that begins with them; some of their browser tests go to another one,
# once the pages must be there.
PAGES, PAGES_S, PAGES_LATER_S = "tests/site/", 500, 19
PAGES_LATER = (
    "test_room_page.py",
    "test_serving_page.py",
    "test_site_axe.py",
    "test_site_failures.py",
    "test_site_offline.py",
    "test_site_phone.py",
)
# What times a clock on the wall, or counts what the kernel has sent, would see the other's work as its own.
CLOCKS = ("test_measure_hosts.py", "test_measure_ranks.py", "test_measure_timing.py", "test_measure_wire.py")
# in the environment: what --fast reads, and a seed for another order
FAST, ORDER = "THREELOOPS_TESTS_FILES", "THREELOOPS_TESTS_ORDER"
TIMES: pytest.StashKey[times.Times] = pytest.StashKey()

pytest_pyfunc_call = times.pytest_pyfunc_call
pytest_runtest_setup = times.pytest_runtest_setup
pytest_runtest_call = times.pytest_runtest_call


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("three loops").addoption
    group("--fast", action="store_true", help="what the change since the last commit touches: at every save")
    group("--quick", action="store_true", help="few seeds, and no file that takes long: before a commit")
    group("--thorough", action="store_true", help="every seed, and what is marked thorough")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thorough: run by --thorough alone; tests/seeds.py says why")
    config.addinivalue_line("markers", "clock(why): tried a second time, which the run says; tests/times.py")
    asked = [mode for mode in ("fast", "quick", "thorough") if config.getoption(f"--{mode}")]
    if len(asked) > 1:
        raise pytest.UsageError(f"--{asked[0]} and --{asked[1]} contradict each other")
    if not hasattr(config, "workerinput"):  # workers take the run's mode, turn and files from the environment
        named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        seeds.begin("quick" if asked == ["fast"] else asked[0] if asked else "usual", named=named or asked == ["fast"])
        os.environ[FAST] = "\n".join(touched.files(SECONDS)) if asked == ["fast"] else ""
        config.stash[TIMES] = times.Times()
        config.pluginmanager.register(config.stash[TIMES])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    slow = collection_path.name in SECONDS or collection_path.name.startswith(MEASURED)
    wanted = os.environ.get(FAST)
    if wanted and collection_path.suffix == ".py":
        return collection_path.relative_to(config.rootpath).as_posix() not in wanted.split("\n") or None
    mine = seeds.turn()  # a file that waits for its turn is not even read
    waits = mine is not None and turns.WHOLE.get(collection_path.name, mine) != mine
    return True if waits or (slow and seeds.mode() == "quick") else None


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
        return "more pages" if name in PAGES_LATER else "pages"
    if name in CLOCKS:
        return "clocks"
    if name in turns.BY_SET and "[" in test:
        return "set " + test.partition("[")[2]
    return test if name in SPREAD else path


def seconds(test: str) -> float:
    """What decides about the order: seconds of what a test stays together with."""
    of_group = {"browser": BROWSERS_S, "pages": PAGES_S, "more pages": PAGES_LATER_S}
    return of_group.get(together(test), SECONDS.get(test.partition("::")[0].rpartition("/")[2], 0))


def left_out(item: pytest.Item) -> bool:
    """Is an item no part of this run?"""
    browser = seeds.mode() == "quick" and "chromium" in getattr(item, "fixturenames", ())
    return browser or (seeds.mode() != "thorough" and item.get_closest_marker("thorough") is not None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine, turn = seeds.turn(), turns.turns([item.nodeid for item in items])
    waiting = {item for item in items if mine is not None and turn.get(item.nodeid, mine) != mine}
    left = waiting | {item for item in items if left_out(item)}
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]
    if os.environ.get(ORDER):
        items[:] = shuffled(items, int(os.environ[ORDER]))
    elif hasattr(config, "workerinput"):  # otherwise one after the other, as they are written
        items.sort(key=lambda item: -seconds(item.nodeid))


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()


def shuffled(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """Files in another order, and the tests of each as well; what a file makes once is still made once."""
    chance, files = random.Random(seed), collections.defaultdict(list)
    for item in items:
        files[item.path].append(item)
    names = sorted(files)
    chance.shuffle(names)
    return [item for name in names for item in chance.sample(files[name], len(files[name]))]


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    told = config.stash[TIMES]
    if seeds.whole():
        known = (*SECONDS, *turns.WHOLE, *turns.ONE_BY_ONE, *BROWSER_FILES, "test_measure_compiling.py")
        for line in told.lines(known, before=times.last_run()):
            terminalreporter.write_line(line)
        told.keep()
    elif told.tried_again:
        terminalreporter.write_line(told.lines((), before={})[-1])
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
