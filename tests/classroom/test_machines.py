"""A class graded by a scheduler and workers of Dask's, real processes on this machine: nobody is lost, doubled or
wrong, whichever of them is killed.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from machines import Machines, grading, machines
from submissions import ROOT, filled, write
from test_gradebook import is_whole as is_whole_there
from test_gradebook import needs_server, server  # noqa: F401  (a fixture)
from test_grading_durable import FULL, SET, empty_gradebook, folder, run, table  # noqa: F401  (fixtures)
from test_workers import class_of, is_whole, marks
from tests.sandbox.sides import comes_to_be

from threeloops import cli
from threeloops.classroom.course import Course
from threeloops.classroom.machines import cluster, fitness
from threeloops.classroom.machines.fitness import Order, unfit
from threeloops.sandbox import walls

PATIENCE_S = 300  # each process loads for seconds, and others may be at work
needs_walls = pytest.mark.skipif(bool(walls.problem()), reason=f"a class needs the sandbox: {walls.problem()}")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """A scheduler with two workers, each with a nanny that replaces it."""
    with machines(tmp_path_factory.mktemp("machines")) as started:
        started.nanny = started.workers(2).pid
        yield started


def began(folder: Path, address: str, *words: str) -> "subprocess.Popen[str]":  # noqa: F811
    """The command as one types it, running."""
    command = [sys.executable, "-m", "threeloops", "grade", folder / "class", "--into", folder / "work"]
    return subprocess.Popen(
        [*map(str, command), "--workers", address, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def has_begun(folder: Path) -> bool:  # noqa: F811
    """Is somebody graded, and written down?"""
    return any((folder / "work" / "kept").rglob("*.json"))


@needs_walls
def test_a_killed_worker_and_a_killed_parent_lose_nobody(two: Machines, folder: Path) -> None:  # noqa: F811
    """kill -9 of a worker in the middle, then of the one who hands out; the same command does the rest."""
    deserved = class_of(5, folder)
    first = began(folder, two.address)
    assert comes_to_be(lambda: has_begun(folder), PATIENCE_S), two.log()
    os.kill(grading(two.nanny)[0], signal.SIGKILL)
    first.kill()
    first.communicate()
    before, ended = marks(folder), threading.Event()

    def kill_another() -> None:
        comes_to_be(lambda: ended.is_set() or len(marks(folder)) > len(before), PATIENCE_S)
        for victim in grading(two.nanny)[-1:]:
            with contextlib.suppress(ProcessLookupError):  # it may have ended meanwhile
                os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill_another)
    killer.start()
    try:
        code = run(folder, "--workers", two.address)
    finally:
        ended.set()
        killer.join()
    assert code == 0, two.log()
    assert is_whole(folder, deserved)
    assert before.items() <= marks(folder).items(), "what was graded is not graded again"


@needs_walls
def test_other_machines_leave_what_this_one_would(two: Machines, folder: Path) -> None:  # noqa: F811
    """The same table, the same files with the same rights; an unreadable notebook and nobody's too."""
    class_of(2, folder)
    (folder / "class" / "cut").mkdir()
    (folder / "class" / "cut" / f"{SET}.ipynb").write_text("{")
    (folder / "class" / "none").mkdir()
    left = []
    shutil.copytree(folder / "work", folder / "clean")
    for workers in (two.address, "1"):
        shutil.rmtree(folder / "work")
        shutil.copytree(folder / "clean", folder / "work")
        assert run(folder, "--workers", workers) == 0
        files = {
            (path.relative_to(folder).as_posix(), path.stat().st_mode)
            for path in (folder / "work").rglob("*")
            if path.is_file()
        }
        left.append((files, (folder / "work" / f"grades-{SET}.csv").read_text()))
        assert table(folder)["cut"][0] == "unparsable"
    assert left[0] == left[1]


@needs_walls
def test_points_that_a_teacher_gave_stay(two: Machines, folder: Path) -> None:  # noqa: F811
    """They are in the gradebook here, which no worker sees: score, table and page keep them."""
    course = Course(root=ROOT, work=folder / "work")
    write(filled(SET, student="ada", wrong={"a-batch": "batch_cache = '1 GB'"}), folder / "class", "ada", SET)
    assert run(folder, "--workers", two.address) == 0
    with course.gradebook as book:
        notebook = book.find_submission_notebook(SET, SET, "ada")
        (grade,) = [one for one in notebook.grades if one.name == "a-batch"]
        grade.manual_score = 0.5
        notebook.comments[0].manual_comment = "Well argued, says the teacher."
    assert run(folder, "--workers", two.address, "--again") == 0
    assert table(folder)["ada"][1] == FULL - 0.5
    page = course.folder("feedback", "ada", SET) / f"{SET}.html"
    assert "Well argued, says the teacher." in page.read_text()
    assert f"{FULL - 0.5:g}" in page.read_text()


@needs_walls
@needs_server
def test_other_machines_know_nothing_of_a_gradebook_on_a_server(
    two: Machines,
    server: Any,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Graded elsewhere, entered here."""
    url, deserved = server.database(), class_of(3, tmp_path)
    assert run(tmp_path, "--gradebook", url, "--workers", two.address) == 0, two.log()
    assert is_whole_there(tmp_path, url, deserved)


@needs_walls
def test_a_killed_scheduler_is_one_sentence(
    two: Machines,
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kill -9 of the scheduler: the run ends, and goes on where it stopped when there is another."""
    deserved = class_of(4, folder)
    first = began(folder, two.address)
    assert comes_to_be(lambda: has_begun(folder), PATIENCE_S), two.log()
    two.scheduler.kill()
    _, said = first.communicate(timeout=PATIENCE_S)
    assert first.returncode == 2
    told = [line for line in said.splitlines() if not line.startswith("[")]
    assert told == [f"threeloops: the scheduler at {two.address} is gone; {cluster.AGAIN}"], said
    before, lost = marks(folder), two.address
    two.end()
    two.schedule()
    assert two.address == lost
    two.nanny = two.workers(1).pid
    monkeypatch.setattr(cluster, "NO_WORKER_S", PATIENCE_S)
    assert run(folder, "--workers", two.address) == 0, two.log()
    assert is_whole(folder, deserved)
    assert before.items() <= marks(folder).items()


@needs_walls
def test_workers_that_must_not_grade_are_named(
    folder: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No worker at all; then one with two threads; then one that has no book."""
    monkeypatch.setattr(cluster, "NO_WORKER_S", 2)
    class_of(1, folder)
    stub = folder / "stub" / "threeloops"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()
    with machines(tmp_path_factory.mktemp("unfit")) as started:
        assert run(folder, "--workers", started.address) == 2
        assert "has had no worker for 2 s" in capsys.readouterr().err
        monkeypatch.setattr(cluster, "NO_WORKER_S", 60)
        started.workers(1, threads=2)
        started.workers(1, more={"PYTHONPATH": str(stub.parent)})
        told = []

        def both_are_named() -> bool:
            assert run(folder, "--workers", started.address) == 2
            told.append(capsys.readouterr().err)
            return "cannot load the book" in told[-1] and "has 2 threads" in told[-1]

        assert comes_to_be(both_are_named, PATIENCE_S), started.log()
    assert "has 2 threads, and grades on one: start it with --nthreads 1" in told[-1]
    assert told[-1].count("\n") == 1
    assert not marks(folder)


ORDER = Order(name=SET, code="home", key=b"", same=(("edition of the book", "a"), ("Python", "3.11")), trusting=False)
FIT = {"edition of the book": "a", "Python": "3.11", "threads": 1, "sandbox": ""}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({}, ""),
        ({"edition of the book": "b"}, "w has another edition of the book; give it this folder"),
        ({"Python": "3.12"}, "w has Python 3.12 and not 3.11"),
        ({"sandbox": "bubblewrap is not installed"}, "at w bubblewrap is not installed; --no-sandbox"),
        ({"threads": 8}, "w has 8 threads"),
    ],
)
def test_what_makes_a_worker_unfit(other: dict[str, Any], told: str) -> None:
    said = unfit("w", FIT | other, ORDER)
    assert told in said
    assert bool(told) == bool(said)


def test_another_file_is_another_edition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("solutions", "drills", "chapters"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    monkeypatch.setattr(fitness.contents, "book_root", lambda: tmp_path)
    here = fitness.identity(SET)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write("c.Judge.cell_s = 20\n")
    assert here != fitness.identity(SET)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--workers", "many"], "--workers 'many' must be a whole number, or a scheduler's address as tcp://HOST:8786"),
        (["--workers", "0"], "--workers 0 must be a whole number of at least 1"),
        (["--workers", "tcp://127.0.0.1:9"], "no scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_a_wrong_address_is_one_sentence(
    words: list[str],
    told: str,
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    write(filled(SET, student="ada"), folder / "class", "ada", SET)
    assert run(folder, *words) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


def test_without_dask_a_sentence_says_what_to_type(
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = cluster.importlib.util.find_spec
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda name: None if name == "distributed" else real(name))
    write(filled(SET, student="ada"), folder / "class", "ada", SET)
    assert run(folder, "--workers", "tcp://127.0.0.1:8786") == 2
    assert 'pip install -c requirements.lock -e ".[machines]"' in capsys.readouterr().err


def test_a_readers_own_notebook_stays_on_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(filled(SET, student="ada"), tmp_path, "ada", SET)
    assert cli.main(["grade", str(path), "--into", str(tmp_path / "work"), "--workers", "tcp://127.0.0.1:8786"]) == 2
    assert "are for a class" in capsys.readouterr().err


@needs_walls
def test_nothing_of_dask_is_loaded_unless_it_is_asked_for(folder: Path) -> None:  # noqa: F811
    write(filled(SET, student="ada"), folder / "class", "ada", SET)
    words = ["grade", str(folder / "class"), "--into", str(folder / "work"), "--workers", "1"]
    code = f"import sys; from threeloops import cli; assert cli.main({words!r}) == 0; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert "nbgrader" in loaded
    assert not loaded & {"dask", "distributed", "psycopg", "cloudpickle"}


def _certificates(place: Path) -> dict[str, str]:
    """An authority of the test's own and one certificate, as settings that Dask reads."""
    key, certificate = place / "key.pem", place / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=three-loops"]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    tls = {
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(certificate),
    }
    for who in ("SCHEDULER", "WORKER", "CLIENT"):
        tls[f"DASK_DISTRIBUTED__COMM__TLS__{who}__CERT"] = str(certificate)
        tls[f"DASK_DISTRIBUTED__COMM__TLS__{who}__KEY"] = str(key)
    return tls


@needs_walls
@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificates (apt install openssl)")
def test_encrypted_by_dasks_own_settings(
    folder: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With certificates it grades; whoever has none is not let in."""
    deserved = class_of(1, folder)
    secrets = _certificates(folder)
    with machines(tmp_path_factory.mktemp("tls"), "tls", secrets) as started:
        started.workers(1)
        assert started.address.startswith("tls://")
        assert (run(folder, "--workers", started.address), marks(folder)) == (2, {})
        said = capsys.readouterr().err
        assert said.startswith(f"threeloops: {started.address} cannot be spoken to")
        assert said.count("\n") == 1, said
        with pytest.MonkeyPatch.context() as patch:
            for name, value in secrets.items():
                patch.setenv(name, value)
            known = began(folder, started.address)
        _, said = known.communicate(timeout=PATIENCE_S)
        assert known.returncode == 0, said + started.log()
    assert is_whole(folder, deserved)
