"""The suite on other days, in other places and begun in other ways: a share of it, under each condition.

Dates, time zones, locales, terminals, signals and the number of workers decide no test. Conditions that can hold at
the same time do: what fails under several is run again by hand under each. They take turns (tests/turns.py), and each
has, at its turn, another forty-first of the files that --quick reads; --thorough has all of both.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests import seeds
from tests.conftest import BROWSER, FAST, MEASURED, ORDER, PAGES, SECONDS
from tests.turns import TURNS

from threeloops.site.printing import BROWSERS

ROOT = Path(__file__).parents[2]
FAKED = "faketime"  # Debian's package, and its program
SHARES = 41
# Under faketime a wait of one thread for another never ends in time: what needs such a wait has the true clock.
WAITS = ("test_grading_functions.py",)
LOST = 3  # descriptors that a careless parent leaves open


@dataclass(frozen=True)
class Condition:
    """What is different, and for what of it the child itself has to act."""

    clock: str = ""  # local time at which it begins
    environment: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    before: tuple[Callable[[], object], ...] = ()  # in the child, before it begins
    own_session: bool = False


def _descriptors() -> None:
    for _ in range(LOST):
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def _no_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _nobody_else_reads() -> None:
    os.umask(0o077)


C_LOCALE = {"LC_ALL": "C", "LANG": "C"}
NO_TERMINAL = {"TERM": "dumb", "COLUMNS": "", "LINES": ""}
ANOTHER_ORDER = {ORDER: str(random.Random(seeds.counted()).randrange(10**6))}
CONDITIONS = {
    "29 February in Kiritimati, fourteen hours ahead, and no terminal": Condition(
        clock="2028-02-29 12:00:00", environment={"TZ": "Pacific/Kiritimati"} | NO_TERMINAL, own_session=True
    ),
    "the last seconds of a year, the C locale, SIGINT ignored": Condition(
        clock="2027-12-31 23:59:50", environment=C_LOCALE, before=(_no_interrupt,)
    ),
    "the night that summer time begins, and another order": Condition(
        clock="2027-03-28 01:59:50", environment={"TZ": "Europe/Berlin"} | ANOTHER_ORDER
    ),
    "one worker, and files that nobody else may read": Condition(words=("-n", "1"), before=(_nobody_else_reads,)),
    "four workers, and descriptors left open": Condition(words=("-n", "4"), before=(_descriptors,)),
}

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.name == "nt", reason="conditions of this kind are Unix's"),
]


def files() -> list[str]:
    """What --quick reads, without this file and those that start such runs themselves."""
    out = (Path(__file__).name, "test_together.py")
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if path.name in (*SECONDS, *out) or path.name.startswith(MEASURED) or name.startswith((*BROWSER, PAGES)):
            continue
        found.append(name)
    return found


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_decides_no_test(name: str, tmp_path: Path) -> None:
    condition = CONDITIONS[name]
    share = seeds.counted() // TURNS % SHARES
    chosen = files() if seeds.mode() == "thorough" else files()[share::SHARES]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--quick", *condition.words, *chosen]
    environment = clean() | condition.environment
    if condition.clock:
        command = [word for word in command if not word.endswith(WAITS)]
        command = [*faked(), condition.clock, *command]
        environment["PATH"] = f"{true_browsers(tmp_path)}{os.pathsep}{environment['PATH']}"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=condition.own_session,
        preexec_fn=lambda: [begun() for begun in condition.before],
    )
    assert done.returncode == 0, f"{' '.join(chosen)}\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


def clean() -> dict[str, str]:
    """This process's environment without what concerns this run alone."""
    own = ("PYTEST_", FAST)
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


def true_browsers(folder: Path) -> Path:
    """A folder for the front of PATH whose browsers keep the true clock: under another, Chromium never answers."""
    for name in BROWSERS:
        found = shutil.which(name)
        if found:
            (folder / name).write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec "{found}" "$@"\n', encoding="utf-8")
            (folder / name).chmod(0o755)
    return folder


def faked() -> list[str]:
    if shutil.which(FAKED) is None:
        why = f"another date needs {FAKED}: apt install {FAKED}"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    return [FAKED]


def test_a_test_that_a_date_decides_is_seen(tmp_path: Path) -> None:
    """That the clock is another one for whoever asks the system, in the same way as above."""
    code = "import datetime, time; print(datetime.date.today(), time.localtime().tm_hour)"
    command = [*faked(), "2028-02-29 12:00:00", sys.executable, "-c", code]
    said = subprocess.run(command, env=clean(), capture_output=True, text=True, check=True).stdout
    assert said.split() == ["2028-02-29", "12"]
