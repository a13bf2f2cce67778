"""The warm process and what is forked from it: the same results as a start of its own, and nothing in common between
two children.
"""

import contextlib
import itertools
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import CODE, SET, honest
from attacks_code import CODE_ATTACKS
from submissions import released
from tests.sandbox.sides import comes_to_be, running_commands, side

from threeloops.classroom.judging import Examiner, Outcome, judged
from threeloops.classroom.transplant import transplanted
from threeloops.sandbox import walls, warm_process
from threeloops.sandbox.walls import Limits

PROBLEM = warm_process.problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=f"nothing can be forked here: {PROBLEM}")
SAME = ("odd-answers", "lying-text", "lying-class", "always-equal", "function-leaks", "function-array", "function-huge")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test has a warm process of its own."""
    warm_process.drop()
    yield
    warm_process.drop()


def graded(notebook: dict[str, object], student: str) -> Outcome:
    return judged(transplanted(released(SET), notebook), Examiner(student=student, course=CODE, key=b"k"))


@pytest.mark.parametrize("name", ["honest", *SAME])
def test_forked_or_started_anew_the_results_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = honest("ada") if name == "honest" else CODE_ATTACKS[name]("ada")
    forked = graded(notebook, "ada")
    monkeypatch.setattr(warm_process, "problem", lambda: "switched off for a comparison")
    assert graded(notebook, "ada") == forked
    assert forked.status == "graded"


def test_two_children_have_nothing_in_common() -> None:
    look = """
import json, os, random
own = {'number': random.random(), 'tmp': os.stat('/tmp').st_dev, 'shm': os.stat('/dev/shm').st_dev}
print(json.dumps(own | {'process': os.getpid()}))
"""
    found = []
    with side(Limits()) as one, side(Limits()) as other:
        for kernel in (one, other):
            seen = json.loads(kernel.run(look)["printed"])
            for name in ("mnt", "pid", "ipc", "net", "uts"):
                seen[name] = os.readlink(f"/proc/{kernel.side.pid}/ns/{name}")
                assert seen[name] != os.readlink(f"/proc/self/ns/{name}")
            found.append(seen)
    assert {name for name in found[0] if found[0][name] == found[1][name]} == {"process"}
    assert found[0]["process"] == 2, "the second process of its own namespace"


def test_what_a_child_leaves_running_has_ended_before_the_next() -> None:
    name = f"left-by-a-child-of-{os.getpid()}"  # the same test may run beside this one
    stay = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execv('/bin/sleep', ['{name}', '600'])
    os._exit(0)
time.sleep(0.3)
"""
    with side(Limits()) as kernel:
        assert not kernel.run(stay)["failed"]
        assert comes_to_be(lambda: name in running_commands())
    assert name not in running_commands(), "at once, not a moment later"


@pytest.mark.skipif(walls._version() < walls.COUNTED_APART, reason="this Linux counts a user's processes together")
def test_ones_bomb_takes_nothing_from_anothers_share() -> None:
    bomb = """
import os, time
try:
    for _ in range(1_000):
        if os.fork() == 0: time.sleep(600)
except OSError: print('full')
"""
    with side(Limits()) as one, side(Limits()) as other:
        assert one.run(bomb)["printed"] == "full\n"
        assert other.run("import subprocess\nprint(subprocess.run(['/bin/echo']).returncode)")["printed"] == "0\n"


def test_a_killed_one_is_started_again_once_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    with side(Limits()) as kernel:
        assert not kernel.run("x = 1")["failed"]
    template = warm_process._template()
    for pid in below(template.process.pid):
        with contextlib.suppress(ProcessLookupError):  # gone with the one above it
            os.kill(pid, signal.SIGKILL)
    template.process.wait()
    with side(Limits()) as kernel:
        assert kernel.run("x = 2\nprint(x)")["printed"] == "2\n"
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "Once more: the student's side did not start; the warm process" in told
    assert warm_process._template() is not template


def test_one_that_never_starts_is_refused_not_done_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(walls, "command", lambda **_: ["false"])
    with pytest.raises(warm_process.NoStartError, match="does not answer|has ended"):
        side(Limits())
    assert capsys.readouterr().err.count("Once more") == 1


def test_a_machine_that_forks_none_is_told_and_graded_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = walls.command
    monkeypatch.setattr(walls, "command", lambda **words: ["false"] if words.get("warm") else real(**words))
    warm_process.problem.cache_clear()
    with side(Limits()) as kernel:
        assert isinstance(kernel.side, walls.Side)
        assert kernel.run("print(1)")["printed"] == "1\n"
    assert "Each submission starts its own sandbox here, which takes longer" in capsys.readouterr().err
    monkeypatch.undo()
    warm_process.problem.cache_clear()


def test_one_that_shares_something_refuses_to_fork(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, then in (
        ("open files", "held = open('/dev/null')"),
        ("2 threads", "threading.Thread(target=time.sleep, args=(60,)).start()"),
    ):
        text = walls.FORKING.read_text().replace(
            '    walls["folders"] =', f'    import threading, time\n    {then}\n    walls["folders"] ='
        )
        assert then in text
        (tmp_path / "forking.py").write_text(text)
        (tmp_path / "forking.py").chmod(0o644)
        monkeypatch.setattr(walls, "FORKING", tmp_path / "forking.py")
        walls._bwrap.cache_clear()
        with pytest.raises(warm_process.NoStartError, match=name):
            warm_process.Template()
        monkeypatch.undo()
    walls._bwrap.cache_clear()


def test_many_may_ask_at_once() -> None:
    printed: list[str] = []

    def ask(number: int) -> None:
        with side(Limits()) as kernel:
            printed.append(kernel.run(f"open('/tmp/mine', 'x').write('{number}')\nprint({number})")["printed"])

    askers = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert sorted(printed) == [f"{number}\n" for number in range(6)]


def test_it_ends_with_whoever_holds_its_line() -> None:
    """However the grader ends, its line is closed; and a process that it has forked does not hold it open."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        with side(Limits()):
            os.write(theirs, json.dumps(below(warm_process._template().process.pid)).encode())
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    os.close(theirs)
    with os.fdopen(ours) as told:
        started = json.load(told)
    assert len(started) > 1
    assert comes_to_be(lambda: not any(map(forks, started)))


def below(pid: int) -> list[int]:
    """A process and all that come from it; other tests, beside this one, have warm ones of their own."""
    found = [pid]
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += itertools.chain.from_iterable(below(int(child)) for child in thread.read_text().split())
    return found


def forks(pid: int) -> bool:
    """Does a process still run the warm script?"""
    try:
        return "/run/forking.py" in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return False
