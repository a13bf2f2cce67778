"""Attempts survive what happens to real files: killed processes, full disks, two windows, folders that cannot be
written.
"""

import datetime as dt
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Clock

from threeloops.room import moving
from threeloops.room.attempts import Ask, Attempt
from threeloops.room.history import History, HistoryError

NOON_S = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC).timestamp()


def attempt(position: int = 0, **changes: object) -> Attempt:
    values: dict[str, object] = {
        "session": "s",
        "position": position,
        "idea": "kv-paged-blocks",
        "topic": "kv_cache",
        "kind": "number",
        "seed": "1",
    }
    values |= {
        "written": "3 GB",
        "status": "right",
        "slips": "",
        "seconds": 40.0,
        "target_s": 75,
        "extra": 1.0,
        "hints": 0,
        "at_s": NOON_S + position,
    }
    return Attempt(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "my" / "history.sqlite3")


def test_an_attempt_written_twice_counts_once(history: History) -> None:
    assert history.record(attempt())
    card = history.cards()
    assert not history.record(attempt(status="wrong"))
    assert [kept.status for kept in history.attempts()] == ["right"]
    assert history.cards() == card


def test_another_process_reads_what_this_one_wrote(history: History) -> None:
    history.record(attempt())
    assert History(history.path).attempts() == history.attempts() == [attempt()]


WRITER = """import sys
sys.path[:0] = {path!r}
from tests_history import attempt
from threeloops.room.history import History
history = History({file!r})
for position in range(100_000):
    history.record(attempt(position, session={session!r}))
    print(position, flush=True)
"""


def writer(file: Path, session: str, folder: Path) -> "subprocess.Popen[str]":
    (folder / "tests_history.py").write_text(Path(__file__).read_text(encoding="utf-8"), encoding="utf-8")
    code = WRITER.format(path=[str(folder)], file=str(file), session=session)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def killed(*processes: "subprocess.Popen[str]") -> list[int]:
    """Let every writer write for a while, kill them all, and return how many attempts each was told are safe: its
    complete lines.
    """
    safe = [sum(bool(process.stdout.readline()) for _ in range(25)) for process in processes if process.stdout]
    for process in processes:
        process.send_signal(signal.SIGKILL)
    safe = [
        lines + process.stdout.read().count("\n")
        for lines, process in zip(safe, processes, strict=True)
        if process.stdout
    ]
    for process in processes:
        process.wait()
    return safe


def test_kill_nine_loses_nothing_that_was_said_to_be_kept(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    (safe,) = killed(writer(file, "killed", tmp_path))
    kept = [one.position for one in History(file).attempts()]
    assert kept == list(range(len(kept)))
    assert len(kept) in (safe, safe + 1)  # the last one may have been written and not yet told


def test_two_windows_write_at_once_and_both_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    History(file)
    safe = killed(*(writer(file, session, tmp_path) for session in ("left", "right")))
    kept = History(file).attempts()
    for session, at_least in zip(("left", "right"), safe, strict=True):
        positions = sorted(one.position for one in kept if one.session == session)
        assert positions == list(range(len(positions)))
        assert at_least <= len(positions) <= at_least + 1


def fits(history: History, written: str) -> bool:
    """Record one more attempt: whether the disk took it."""
    try:
        return history.record(attempt(len(history.attempts()), written=written))
    except HistoryError as error:
        return "disk is full" not in str(error)


def test_on_a_full_disk_the_answer_waits_and_is_written_with_the_next(history: History) -> None:
    history.record(attempt(0))
    pages = history._file.execute("pragma page_count").fetchone()[0]
    history._file.execute(f"pragma max_page_count = {pages}")  # SQLite's own way to a disk that takes no more
    long = "7" * 500
    while fits(history, long):
        pass
    waiting = history._waiting[-1][0].position
    assert waiting in history.answered("s")  # the sitting goes on behind it
    history._file.execute("pragma max_page_count = 1000000")
    history.record(attempt(waiting + 1))
    assert [one.position for one in history.attempts()] == list(range(waiting + 2))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no read-only folders of this kind")
def test_a_read_only_folder_is_one_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # somebody who may not write here; root may everywhere, so it becomes nobody first
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            History(tmp_path / "history.sqlite3")
            os.write(write, b"opened")
        except HistoryError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert "cannot be written here; make its folder writable" in os.read(read, 1000).decode()


def test_a_folder_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "history.sqlite3").mkdir()
    with pytest.raises(HistoryError, match="cannot be written here"):
        History(tmp_path / "history.sqlite3")


def test_a_file_that_is_no_history_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "history.sqlite3"
    file.write_text("my diary\n" * 1000)
    with pytest.raises(HistoryError, match="no history file"):
        History(file)
    assert file.read_text().startswith("my diary")


def test_another_editions_format_is_refused(history: History) -> None:
    history.set("format", "99")
    with pytest.raises(HistoryError, match="has format 99"):
        History(history.path)


def test_a_history_that_another_window_keeps_busy_says_so(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    other = sqlite3.connect(history.path, isolation_level=None)
    other.execute("begin immediate")
    history._file.execute("pragma busy_timeout = 50")
    with pytest.raises(HistoryError, match="another program kept"):
        history.record(attempt())
    other.execute("rollback")
    assert history.record(attempt(1))
    assert len(history.attempts()) == 2  # the one that had to wait, too


@pytest.mark.parametrize("name", ["attempts.json", "attempts.csv"])
def test_what_is_exported_is_imported_once_and_schedules_alike(history: History, tmp_path: Path, name: str) -> None:
    for position, status in enumerate(("wrong", "right", "interrupted", "right")):
        history.record(
            attempt(position, status=status, written='3 GB, "or so"\n', slips="no-weights" if status == "wrong" else "")
        )
    assert moving.export(history, tmp_path / name) == 4
    elsewhere = History(tmp_path / "other.sqlite3")
    assert elsewhere.add(moving.read(tmp_path / name)) == 4
    assert elsewhere.add(moving.read(tmp_path / name)) == 0
    assert elsewhere.attempts() == history.attempts()
    assert elsewhere.cards() == history.cards()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.json", "{}", "holds no attempts"),
        ("a.json", "not json", "holds no attempts"),
        ("a.json", '{"attempts": [{"session": "s"}]}', "attempt 1: expected the fields"),
        ("a.csv", "session,position\ns,0\n", "attempt 1: expected the fields"),
        ("a.txt", "", "should end in .json or .csv"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=told):
        moving.read(tmp_path / name)


def test_a_bad_number_names_its_row(history: History, tmp_path: Path) -> None:
    history.record(attempt())
    moving.export(history, tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text((tmp_path / "a.csv").read_text().replace(",40.0,", ",soon,"))
    with pytest.raises(ValueError, match="attempt 1: could not convert"):
        moving.read(tmp_path / "a.csv")


def test_forgetting_one_idea_leaves_the_others(history: History) -> None:
    history.record(attempt(0))
    history.record(attempt(1, idea="kv-largest-batch"))
    assert history.forget("kv-paged-blocks") == 1
    assert [one.idea for one in history.attempts()] == ["kv-largest-batch"]
    assert list(history.cards()) == ["kv-largest-batch"]
    assert history.forget(None) == 1
    assert not history.attempts()
    assert not history.cards()


def test_a_question_keeps_the_moment_it_was_first_shown(history: History, noon: Clock) -> None:
    name = history.begin("sprint", {}, [Ask(idea="kv-paged-blocks", kind="number", seed="1")])
    first = history.shown(name, 0)
    noon.move(60)
    assert History(history.path).shown(name, 0) == first


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="status='fine' is not known"):
        attempt(status="fine")


def test_a_file_from_before_answers_could_be_right_in_part_is_taken_up(history: History, tmp_path: Path) -> None:
    history.record(attempt())
    moving.export(history, tmp_path / "old.json")
    history._file.execute("alter table attempts drop column share")
    history.close()
    again = History(history.path)
    again.record(attempt(1, status="wrong", share=0.5))
    assert [one.points for one in again.attempts()] == [1.0, 0.5]
    assert again.score("s") == (1.5, 2)
    old = (tmp_path / "old.json").read_text(encoding="utf-8").replace(',\n   "share": 0.0', "")
    assert "share" not in old
    (tmp_path / "old.json").write_text(old, encoding="utf-8")
    assert moving.read(tmp_path / "old.json") == [attempt()]
