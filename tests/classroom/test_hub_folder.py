"""What `threeloops classroom init` refuses, and what it writes: the parts that need no hub to run."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from threeloops import cli
from threeloops.classroom.hub import folder as hubs
from threeloops.classroom.hub import marking, people, proxy, reach
from threeloops.classroom.hub.exchange import Collect
from threeloops.drills.engine import sheet
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.student_draws import COURSE_VARIABLE, STUDENT_VARIABLE, question

ROOT = Path(__file__).parents[2]
KEY = "kv-bytes-per-token"
TOLD: dict[str, Any] = {
    "course": "spring-27",
    "teacher": "grace",
    "authenticator": "pam",
    "ip": "127.0.0.1",
    "port": 8000,
    "certificate": "",
    "key": "",
    "memory_bytes": 3 * 2**30,
    "processes": 512,
    "cores": 2,
    "python": sys.executable,
    "book": str(ROOT),
}
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root writes a hub")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"authenticator": "none"}, "authenticator='none'"),
        ({"authenticator": "trial", "ip": "0.0.0.0"}, "for this machine alone"),
        ({"ip": "0.0.0.0"}, "passwords cross the network"),
        ({"certificate": "/srv/certificate"}, "a certificate and its key"),
        ({"course": ""}, "no letter and no digit"),
        ({"port": 0}, "port=0"),
        ({"memory_bytes": 0}, "memory_bytes=0"),
    ],
)
def test_a_hub_that_could_not_work_is_refused(told: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        hubs.Hub(**(TOLD | told))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["Ada Lovelace"], "cannot be the name of an account"),
        (["root;reboot"], "cannot be the name of an account"),
        (["../grace"], "cannot be the name of an account"),
        (["grace"], "the teacher and stands in the class list"),
        (["ada_l", "ada.l"], "whose numbers would be the same"),
        ([" "], "names nobody"),
    ],
)
def test_a_class_list_that_is_none_of_accounts_is_refused(names: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        people.checked(names, teacher="grace")


def test_who_is_not_root_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ValueError, match="run this as root"):
        hubs.write(tmp_path / "hub", hubs.Hub(**TOLD), ["ada"])
    assert not (tmp_path / "hub").exists()


def test_a_python_behind_a_closed_folder_is_named_with_what_would_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "home" / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    (tmp_path / "home").chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(reach, "barrier", lambda path, ask=reach.barrier: _below(ask(path), tmp_path))
    with pytest.raises(ValueError, match=f"students could not run this Python.*{tmp_path / 'home'}, which is closed"):
        reach.refuse_unless_open(ROOT, tmp_path / "hub")


def _below(found: Path | None, folder: Path) -> Path | None:
    """Of what is closed, only what lies in this folder: where tests run, folders above may be, too."""
    return found if found and found.is_relative_to(folder) else None if not found else folder / "home"


def test_a_link_leads_behind_a_closed_door_too(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "closed" / "file")
    here = reach.barrier(tmp_path)
    (tmp_path / "closed").chmod(0o755)
    assert reach.barrier(tmp_path / "link") == here
    (tmp_path / "closed").chmod(0o700)
    assert reach.barrier(tmp_path / "link") == (here or tmp_path / "closed")


@needs_root
def test_the_folder_is_one_of_files_that_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "refuse_unless_open", lambda book, folder: None)
    monkeypatch.setattr(proxy, "command", lambda: ["node", "proxy"])
    folder = tmp_path / "hub"
    hubs.write(folder, hubs.Hub(**(TOLD | {"teacher": "daemon", "authenticator": "trial"})), ["ada", "bob"])
    python = sorted(path for path in folder.rglob("*.py"))
    assert [path.relative_to(folder).as_posix() for path in python] == [
        "course/nbgrader_config.py",
        "etc/student/nbgrader_config.py",
        "etc/teacher/nbgrader_config.py",
        "jupyterhub_config.py",
    ]
    ruff = [sys.executable, "-m", "ruff", "--config", str(ROOT / "pyproject.toml")]
    for words in (["check"], ["format", "--check"]):
        subprocess.run([ruff[0], *ruff[1:3], *words, *ruff[3:], *map(str, python)], check=True)
    for path in folder.rglob("*.json"):
        json.loads(path.read_text())
    assert yaml.safe_load((folder / "kubernetes" / "values.yaml").read_text())["singleuser"]
    assert subprocess.run(["sh", "-n", str(folder / "accounts.sh")]).returncode == 0
    assert hubs.read(folder / "course").teacher == "daemon"
    assert (folder / "course").stat().st_mode & 0o777 == 0o700
    assert (folder / "exchange").stat().st_mode & 0o7777 == 0o1777
    assert (folder / "exchange/spring-27/inbound").stat().st_mode & 0o7777 == 0o3733
    assert (folder / "state" / "trial.json").stat().st_mode & 0o777 == 0o600
    sets = {path.parent.name for path in (folder / "course").glob("solutions/*/*.ipynb")}
    assert sets == {path.parent.name for path in ROOT.glob("drills/*/*.ipynb")}
    with pytest.raises(ValueError, match="is not empty"):
        hubs.write(folder, hubs.Hub(**(TOLD | {"teacher": "daemon"})), ["ada"])
    with pytest.raises(ValueError, match="belongs to daemon; run this as daemon"):
        marking.mark("kv_cache", folder / "course")


def test_a_folder_that_is_no_hub_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["classroom", "hub-mark", "kv_cache", "--hub", str(tmp_path)]) == 2
    assert "is no hub's folder" in capsys.readouterr().err


def test_on_a_hub_the_server_knows_whose_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sheet, "_whose", dict(sheet._whose))
    monkeypatch.setenv(STUDENT_VARIABLE, "ada.l")
    monkeypatch.setenv(COURSE_VARIABLE, "Spring 27")
    sheet.begin(student="mallory", course="home")
    sheet.ask(KEY)
    told = capsys.readouterr().out
    assert (
        told == f"Numbers for ada-l, course spring-27.\n{question(DRILLS[KEY], course='spring-27', student='ada-l')}\n"
    )


def test_one_hand_in_that_cannot_be_copied_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from nbgrader.coursedir import CourseDirectory

    collect = Collect(coursedir=CourseDirectory())
    collect.log = logging.getLogger("collect")
    for name in ("pipe", "large", "good"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kv_cache.ipynb").write_text("{}")
    os.mkfifo(tmp_path / "pipe" / "fifo.ipynb")
    with (tmp_path / "large" / "hole.ipynb").open("wb") as file:
        file.truncate(200_000_000)
    for name in ("pipe", "large", "good"):
        collect.do_copy(str(tmp_path / name), str(tmp_path / "to" / name))
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"good"}
    assert [record.getMessage().split()[0] for record in caplog.records] == ["pipe", "large"]
