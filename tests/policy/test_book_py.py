"""book.py: what it says and does on machines other than this one. Its commands are recorded, not run."""

import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from threeloops import wall_clock

SOURCE = Path(__file__).parents[2] / "book.py"


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """book.py in an empty folder, with every command recorded in book.ran and answered by success."""
    spec = importlib.util.spec_from_file_location("book_under_test", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_bytes((SOURCE.parent / name).read_bytes())
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "MARK", tmp_path / ".venv" / "three-loops.json")
    monkeypatch.setattr(module, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    module.ran = []
    module.torch_plan = [{"metadata": {"name": "torch"}}]
    module.torch_here = False
    module.middleware_code = 0  # what pip answers for iceoryx2

    def pretend(*command: object, **_: object) -> int:
        module.ran.append(" ".join(map(str, command)))
        if "venv" in module.ran[-1].split():
            module.PYTHON.parent.mkdir(parents=True, exist_ok=True)
            module.PYTHON.touch()
            module.MARK.unlink(missing_ok=True)
        return 0

    def pretend_quietly(command: list[str], **_: object) -> SimpleNamespace:
        text = " ".join(command)
        if "-m venv" in text:
            return SimpleNamespace(returncode=pretend(*command), stdout="")
        module.ran.append(text)
        if "importlib.metadata" in text:
            return SimpleNamespace(returncode=0 if module.torch_here else 1, stdout="2.13.0+cu130", stderr="")
        if "iceoryx2==" in text:
            return SimpleNamespace(returncode=module.middleware_code, stdout="", stderr="No matching distribution")
        return SimpleNamespace(returncode=0, stdout=json.dumps({"install": module.torch_plan}), stderr="")

    monkeypatch.setattr(module, "run", pretend)
    monkeypatch.setattr(module.os, "execv", lambda _program, words: pretend(*words))
    monkeypatch.setattr(module.subprocess, "run", pretend_quietly)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=1e12))
    monkeypatch.setattr(module.time, "sleep", lambda seconds: module.ran.append(f"sleep {seconds}"))
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    return module


def installs(book: ModuleType) -> list[str]:
    return [line for line in book.ran if " install " in line and "--dry-run" not in line]


def test_an_old_python_is_told_so(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(book.sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(book.platform, "python_version", lambda: "3.9.2")
    with pytest.raises(SystemExit) as end:
        book.main([])
    assert end.value.code == 2
    assert "needs Python 3.11 to 3.14, and this is 3.9.2" in capsys.readouterr().err
    assert not book.ran


@pytest.mark.parametrize(
    ("version", "system", "machine", "told"),
    [
        ((3, 15, 0), "linux", "x86_64", "no build yet for Python 3.15"),
        ((3, 12, 1), "darwin", "x86_64", "Intel Macs"),
        ((3, 12, 1), "win32", "ARM64", "Windows on ARM"),
    ],
)
def test_where_torch_has_no_build_the_book_opens_without_it(
    book: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: tuple[int, ...],
    system: str,
    machine: str,
    told: str,
) -> None:
    monkeypatch.setattr(book.sys, "version_info", version)
    monkeypatch.setattr(book.sys, "platform", system)
    monkeypatch.setattr(book.platform, "machine", lambda: machine)
    book.set_up("book", with_torch=True)
    said = capsys.readouterr().out
    assert told in said
    assert "opens all the same" in said
    assert not [line for line in book.ran if "torch==" in line]
    assert json.loads(book.MARK.read_text())["torch"] is False


@pytest.mark.parametrize(
    ("version", "system", "machine"),
    [((3, 14, 0), "darwin", "arm64"), ((3, 11, 0), "win32", "AMD64"), ((3, 13, 0), "linux", "aarch64")],
)
def test_where_torch_has_one_it_is_installed(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...], system: str, machine: str
) -> None:
    monkeypatch.setattr(book.sys, "version_info", version)
    monkeypatch.setattr(book.sys, "platform", system)
    monkeypatch.setattr(book.platform, "machine", lambda: machine)
    book.set_up("book", with_torch=True)
    (line,) = [line for line in installs(book) if "torch==" in line]
    assert ("--extra-index-url" in line) == (system == "linux")


def test_a_second_start_runs_nothing(book: ModuleType) -> None:
    book.set_up("book", with_torch=True)
    book.ran.clear()
    book.set_up("book", with_torch=True)
    book.set_up("drill", with_torch=True)
    assert book.ran == []


def test_the_light_door_takes_neither_torch_nor_jupyterlab(book: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book.sys, "platform", "linux")
    monkeypatch.setattr(book.platform, "machine", lambda: "x86_64")
    book.set_up("drill", with_torch=True)
    assert not [line for line in book.ran if "torch" in line or "[book]" in line or "iceoryx2" in line]
    book.ran.clear()
    book.set_up("book", with_torch=True)  # a larger door later keeps the environment and adds to it
    assert not [line for line in book.ran if "venv" in line.split()]
    assert any("[book]" in line for line in installs(book))
    (line,) = [line for line in book.ran if "iceoryx2" in line]
    assert "--only-binary" in line, "where it has no build, none is compiled"


def middleware_tried(book: ModuleType) -> int:
    return sum("iceoryx2==" in line for line in book.ran)


@pytest.mark.parametrize(
    ("system", "machine", "tries", "told"),
    [
        ("linux", "x86_64", 1, "iceoryx2 cannot be had from here: part 9 of chapter 4 shows its recorded run."),
        ("linux", "aarch64", 0, "iceoryx2 has no build here: part 9 of chapter 4 shows its recorded run."),
        ("win32", "ARM64", 0, "iceoryx2 has no build here: part 9 of chapter 4 shows its recorded run."),
    ],
)
def test_without_the_middleware_set_up_goes_on_and_says_so(
    book: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: str,
    machine: str,
    tries: int,
    told: str,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(book.sys, "platform", system)
    monkeypatch.setattr(book.platform, "machine", lambda: machine)
    book.middleware_code = 1
    book.set_up("book", with_torch=False)
    assert capsys.readouterr().err == f"book.py: {told}\n"
    assert json.loads(book.MARK.read_text())["middleware"] is False
    assert middleware_tried(book) == tries
    book.middleware_code = 0  # where it has a build, the next start tries again; elsewhere it runs nothing
    book.ran.clear()
    book.set_up("book", with_torch=False)
    assert middleware_tried(book) == tries
    assert bool(book.ran) == bool(tries)
    assert json.loads(book.MARK.read_text())["middleware"] is bool(tries)
    book.ran.clear()
    book.set_up("book", with_torch=False)
    assert not book.ran


@pytest.mark.parametrize(
    ("system", "machine", "stops"),
    [("linux", "x86_64", True), ("linux", "aarch64", False), ("darwin", "arm64", False)],
)
def test_on_ci_a_middleware_that_is_missing_where_the_tests_need_it_is_an_error(
    book: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: str,
    machine: str,
    stops: bool,
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(book.sys, "platform", system)
    monkeypatch.setattr(book.platform, "machine", lambda: machine)
    book.middleware_code = 1
    if stops:
        with pytest.raises(SystemExit) as end:
            book.set_up("test", with_torch=False)
        assert end.value.code == 2
        said = capsys.readouterr().err
        assert "could not be installed, and the tests need it here: No matching distribution" in said
    else:
        book.set_up("test", with_torch=False)
    assert book.MARK.exists() != stops


def test_a_teachers_verbs_reach_the_command(book: ModuleType) -> None:
    book.main(["classroom", "syllabus", "--weeks", "4", "--no-torch"])
    assert any("[book]" in line for line in installs(book)), "nbgrader comes with the book"
    assert book.ran[-1].endswith("-m threeloops classroom syllabus --weeks 4")


def test_the_pages_need_what_builds_them_and_no_torch(book: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book.os, "execv", lambda _, words: book.ran.append(" ".join(words)))
    book.main(["site", "--serve"])
    assert any("[book,site]" in line for line in installs(book))
    assert not [line for line in book.ran if "torch" in line]
    assert book.ran[-1].endswith("threeloops site --serve")


def test_a_hub_is_installed_when_it_is_asked_for(book: ModuleType) -> None:
    assert book.main(["setup"]) == 0
    assert not [line for line in book.ran if "[book,hub]" in line]
    assert book.main(["setup", "--hub"]) == 0
    assert "--compile-bytecode -c requirements.lock -e .[book,hub]" in installs(book)[-1]


def test_an_interrupted_set_up_starts_over(book: ModuleType) -> None:
    book.set_up("book", with_torch=True)
    book.MARK.unlink()
    book.ran.clear()
    book.set_up("book", with_torch=True)
    assert any("venv --clear" in line for line in book.ran)


@pytest.mark.parametrize(("user", "times"), [(0, 1), (1000, 0)])
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such rights")
def test_what_root_installs_may_be_read_by_all(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch, user: int, times: int
) -> None:
    monkeypatch.setattr(book.os, "geteuid", lambda: user)
    book.main(["setup"])
    assert sum(command == f"chmod -R go+rX {book.VENV}" for command in book.ran) == times


def test_ctrl_c_in_the_middle_of_a_set_up_is_one_sentence(tmp_path: Path) -> None:
    """A real terminal's Ctrl-C: it reaches every process of the group."""
    (tmp_path / "book.py").write_bytes(SOURCE.read_bytes())
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_bytes((SOURCE.parent / name).read_bytes())
    began = subprocess.Popen(
        [sys.executable, "-S", "book.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's & has every child ignore it
    )
    assert began.stdout.readline().startswith("Making a Python environment")
    assert wall_clock.until((tmp_path / ".venv").exists, limit_s=60)
    os.killpg(began.pid, signal.SIGINT)
    _, said = began.communicate(timeout=60)
    told = "book.py: interrupted; the next run takes up where this one stopped."
    assert (began.returncode, said.strip()) == (130, told)


def test_new_pins_are_installed_into_the_old_environment(book: ModuleType) -> None:
    book.set_up("book", with_torch=True)
    (book.ROOT / "requirements.lock").write_text("pint==0.25.3\n")
    book.ran.clear()
    book.set_up("drill", with_torch=True)
    assert not any("venv --clear" in line for line in book.ran)
    assert any("[book]" in line for line in installs(book)), "a level once reached is kept"


def test_a_torch_that_is_there_is_never_reinstalled(book: ModuleType) -> None:
    book.torch_here = True
    book.set_up("book", with_torch=True)
    assert not [line for line in book.ran if "torch==" in line]
    assert json.loads(book.MARK.read_text())["torch"] is True


@pytest.mark.parametrize(("heard", "waits"), [(signal.default_int_handler, True), (signal.SIG_IGN, False)])
def test_several_gigabytes_come_with_a_word_and_a_way_out(
    book: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    heard: object,
    waits: bool,
) -> None:
    """A way out by Ctrl-C, where one is heard: begun in the background, none is."""
    monkeypatch.setattr(book.signal, "getsignal", lambda number: heard)
    book.torch_plan = [{"metadata": {"name": "torch"}}, {"metadata": {"name": "nvidia-cublas"}}]
    book.set_up("book", with_torch=True)
    said = capsys.readouterr().out
    assert "2.7 GB to download" in said
    assert "--no-torch" in said
    assert ("Ctrl-C" in said) == waits
    fetched = next(i for i, line in enumerate(book.ran) if "torch==" in line and "--dry-run" not in line)
    assert ("sleep 10" in book.ran[:fetched]) == waits


def test_a_full_disk_is_told_before_anything_is_fetched(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(book.shutil, "disk_usage", lambda _: SimpleNamespace(free=1e8))
    with pytest.raises(SystemExit):
        book.set_up("book", with_torch=True)
    assert "GB of free disk" in capsys.readouterr().err
    assert not book.ran


def test_without_network_an_environment_that_worked_still_does(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    book.set_up("book", with_torch=True)
    before = book.MARK.read_text()
    (book.ROOT / "requirements.lock").write_text("pint==0.25.3\n")
    monkeypatch.setattr(book, "install", lambda level: False)
    book.set_up("book", with_torch=True)
    assert "going on with those that are installed" in capsys.readouterr().err
    assert book.MARK.read_text() == before


def test_without_network_and_without_environment_it_stops(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(book, "install", lambda level: False)
    with pytest.raises(SystemExit) as end:
        book.set_up("book", with_torch=True)
    assert end.value.code == 2
    assert "could not be installed" in capsys.readouterr().err


def test_system_packages_are_installed_on_ci_and_never_at_home(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.delenv("CI", raising=False)
    book.system_packages()
    assert not book.ran
    monkeypatch.setenv("CI", "true")
    book.system_packages()
    assert any("apt-get install" in line and "chromium" in line for line in book.ran)


def test_a_system_without_the_quicker_browser_goes_on_with_the_other(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(book.shutil, "which", lambda name: None if name == book.QUICKER_BROWSER else name)
    monkeypatch.setattr(book, "run", lambda *command: int(book.QUICKER_BROWSER in command))
    book.system_packages()
    assert "the tests take Chromium" in capsys.readouterr().err


def test_every_check_runs_and_one_failure_fails_the_whole(book: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    for failing in ("ruff format", "ruff check", "mypy", "pytest"):
        book.ran.clear()

        def pretend(*command, failing=failing):
            book.ran.append(" ".join(map(str, command)))
            return int(failing in book.ran[-1])

        monkeypatch.setattr(book, "run", pretend)
        monkeypatch.setattr(book, "beside", lambda *command, pretend=pretend: lambda: pretend(*command))
        assert book.test("python", []) == 1
        assert [line.split()[2] for line in book.ran] == ["ruff", "ruff", "pytest", "mypy"]


def test_what_runs_beside_the_tests_is_heard_and_counts(book: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    finished = book.beside(sys.executable, "-c", "print('two errors'); raise SystemExit(3)")
    assert finished() == 3
    assert capfd.readouterr().out == "two errors\n"


@pytest.mark.parametrize(
    ("cores", "words", "told"),
    [
        (2, [], "-n 2 --dist loadgroup --no-loadscope-reorder"),
        (64, ["--quick"], "-n 4 --dist loadgroup --no-loadscope-reorder"),
        (1, [], ""),
        (2, ["-n0"], ""),
        (2, ["-n", "3"], ""),
        (2, ["--numprocesses=1"], ""),
        (2, ["--pdb", "tests/lib"], ""),
    ],
)
def test_every_core_is_used_unless_the_words_say_otherwise(
    book: ModuleType, monkeypatch: pytest.MonkeyPatch, cores: int, words: list[str], told: str
) -> None:
    monkeypatch.setattr(book.os, "cpu_count", lambda: cores)
    assert " ".join(book.workers(words)) == told


def test_words_after_test_go_to_pytest(book: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(book, "beside", lambda *command: lambda: 0)
    assert book.test("python", ["--quick", "tests/policy"]) == 0
    assert book.ran[-1].endswith("--quick tests/policy")


def test_contradictory_words_end_in_a_sentence(book: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        book.test("python", ["--thorough", "--quick"])
    assert "choose one" in capsys.readouterr().err
    assert not book.ran


def test_the_python_that_has_the_book_is_used_as_it_is(book: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert book.here() is None  # the library is not below this test's empty folder
    monkeypatch.setattr(book, "ROOT", SOURCE.parent)
    assert book.here() == Path(sys.executable)


def test_the_stamp_follows_pins_and_python(book: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    first = book.stamp()
    monkeypatch.setattr(platform, "python_version", lambda: "3.12.0")
    assert book.stamp() != first
