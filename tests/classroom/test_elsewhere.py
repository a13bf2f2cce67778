"""Grading where students hand in, with the judge of `threeloops grade`: Gradescope's container and a repository on
GitHub, each laid out as its platform does it.

It takes some ten seconds: a class of two is graded at home once, and once in a process that has nothing but the zip.
"""

import csv
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from submissions import ROOT, SETS, filled, maximum, released, set_source, solution

from threeloops import cli
from threeloops.classroom.course import Course
from threeloops.classroom.elsewhere import actions, alone, in_actions, in_gradescope, packing
from threeloops.classroom.questions import mark, source
from threeloops.sandbox import walls
from threeloops.sandbox.kernel import Kernel
from threeloops.sandbox.walls import Limits

SET, COURSE = "kv_cache", "spring-27"
PEOPLE = "id,name,email,github\nada01,Ada Lovelace,ada@x.edu,ada-l\ngrace02,Grace Hopper,grace@x.edu,grace\n"
ADA, GRACE = ({"email": f"{name}@x.edu", "id": number, "name": name} for number, name in enumerate(("ada", "grace")))
needs_sandbox = pytest.mark.skipif(bool(walls.problem()), reason=f"needs the sandbox: {walls.problem()}")
LOOKS_AROUND = """
import os
for path in ("BASE/source/grading.key", "BASE/three-loops-work/grading.key", "BASE/source/settings.json"):
    try:
        print("seen", open(path).read())
    except OSError:
        print("nothing there")
try:
    open("BASE/results/results.json", "w").write('{"score": 14}')
except OSError:
    pass
"""


def run(*words: object) -> int:
    return cli.main(["classroom", *map(str, words)])


def unzipped(package: Path, folder: Path) -> Path:
    """As unzip does it, programs included."""
    with zipfile.ZipFile(package) as archive:
        for member in archive.infolist():
            Path(archive.extract(member, folder)).chmod(member.external_attr >> 16)
    return folder


def notebook(student: str, **wrong: str) -> dict[str, Any]:
    made = filled(SET, student=student, course=COURSE)
    for cell, text in wrong.items():
        set_source(made, f"{cell.replace('_', '-')}-answer", text)
    return made


@pytest.fixture(scope="module")
def term(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A term of two, and a set released."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "class.csv").write_text(PEOPLE)
    made = folder / COURSE
    assert run("new", made, "--timezone", "UTC", "--late", "none") == 0
    assert run("roster", folder / "class.csv", "--term", made) == 0
    assert run("release", SET, "--due", "2027-04-12", "--term", made) == 0
    assert run("gradescope", SET, "--term", made) == 0
    assert run("github", SET, "--term", made) == 0
    return made


@pytest.fixture(scope="module")
def base(term: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """/autograder, as Gradescope lays it out, after its setup.sh; this environment is what pip would have made."""
    folder = tmp_path_factory.mktemp("container") / "autograder"
    unzipped(term / "elsewhere" / f"{SET}-gradescope.zip", folder / "source")
    shutil.copy(folder / "source" / "run_autograder", folder / "run_autograder")
    (folder / "results").mkdir()
    (folder / "three-loops-python").symlink_to(sys.prefix)
    assert in_gradescope.main([str(folder), "--prepare"]) == 0
    return folder


def handed_in(base: Path, files: dict[str, str], *users: dict[str, Any]) -> None:
    """What Gradescope's harness puts there."""
    shutil.rmtree(base / "submission", ignore_errors=True)
    (base / "submission").mkdir()
    for name, content in files.items():
        (base / "submission" / name).write_text(content)
    metadata = {"id": 1, "created_at": "2027-04-10T14:22:32.365935-07:00", "users": users, "previous_submissions": []}
    (base / "submission_metadata.json").write_text(json.dumps(metadata))


def told(base: Path) -> dict[str, Any]:
    assert in_gradescope.main([str(base)]) == 0
    found: dict[str, Any] = json.loads((base / "results" / "results.json").read_text())
    assert found["stdout_visibility"] == "hidden"
    return found


def points(path: Path, student: str) -> dict[str, tuple[float, float]]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["student"] == student]
    return {row["question"]: (float(row["points"]), float(row["maximum"])) for row in rows}


@needs_sandbox
def test_gradescopes_container_says_what_grade_says(term: Path, base: Path, tmp_path: Path) -> None:
    """run_autograder itself, in a process that has the zip alone; the same file collected and graded at home."""
    wrong = notebook("grace02", a_batch="batch_cache = '1 GB'", paged="def reserved_bytes(**given):\n    return 1.0")
    looks = {"cell_type": "code", "id": "look", "metadata": {}, "outputs": [], "execution_count": None}
    wrong["cells"].insert(5, looks | {"source": LOOKS_AROUND.replace("BASE", str(base))})
    handed_in(base, {"Copy of kv_cache.ipynb": json.dumps(wrong), "notes.txt": "see my notebook"}, GRACE)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(base / "run_autograder")], cwd=base, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    written = (base / "results" / "results.json").read_text()
    results = json.loads(written)
    there = {test["name"].partition(":")[0]: (test["score"], test["max_score"]) for test in results["tests"]}
    path = tmp_path / "repositories" / "kv-cache-grace" / "kv_cache.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(wrong))
    assert run("collect", SET, tmp_path / "repositories", "--on-time", "--term", term) == 0
    assert run("grade", SET, "--term", term) == 0
    at_home = points(term / "graded" / f"grades-{SET}.csv", "grace02")
    assert there == at_home
    assert sum(score for score, _ in there.values()) == maximum(SET) - 3
    lost = {test["name"].partition(":")[0]: test["output"] for test in results["tests"] if not test["score"]}
    assert set(lost) == {"a-batch", "paged"}
    assert all("Taught in chapter 3, part" in output for output in lost.values())
    key = (term / "graded" / "grading.key").read_text().strip()
    assert (base / "source" / "grading.key").read_text().strip() == key, "the same hidden numbers as at home"
    judged = (base / "three-loops-work" / "autograded" / "grace02" / SET / f"{SET}.ipynb").read_text()
    assert judged.count("nothing there") == 3 + 1, "three times printed, once in the cell's source"
    for shown in (written, done.stdout, done.stderr, judged):
        assert key not in shown
        assert not [other for other in ("ada01", "Lovelace", "ada@x.edu") if other in shown]


@needs_sandbox
def test_a_group_is_judged_by_the_member_that_the_notebook_names(base: Path) -> None:
    handed_in(base, {"kv_cache.ipynb": json.dumps(notebook("grace02"))}, ADA, GRACE)
    assert sum(test["score"] for test in told(base)["tests"]) == maximum(SET)
    handed_in(base, {"kv_cache.ipynb": json.dumps(notebook("emmy"))}, ADA, GRACE)
    refused = told(base)
    assert refused["score"] == 0
    assert "handed in for ada01 and grace02, and the notebook's first code cell says 'emmy'" in refused["output"]


WHOLE = json.dumps(released(SET))
WRONG = [
    ({}, (ADA,), "no notebook was handed in"),
    ({"essay.pdf": "%PDF-1.7"}, (ADA,), "no notebook of kv_cache among them: 'submission/essay.pdf' is a PDF"),
    ({"queues.ipynb": json.dumps(released("queues"))}, (ADA,), "is a notebook of queues"),
    ({"kv_cache.ipynb": "{"}, (ADA,), "the file is not JSON, so it is no notebook"),
    (
        {"kv_cache.ipynb": WHOLE},
        ({"email": "emmy@x.edu", "name": "Emmy"},),
        "is known by emmy@x.edu; tell your teacher",
    ),
    ({"kv_cache.ipynb": WHOLE}, ({"email": "ada01@y.org", "name": "Ada Lovelace"},), "is known by ada01@y.org"),
    ({"kv_cache.ipynb": WHOLE}, (), "the platform does not say who handed this in"),
]


@needs_sandbox
@pytest.mark.parametrize(("files", "users", "sentence"), WRONG)
def test_a_wrong_hand_in_gets_one_sentence(
    files: dict[str, str], users: tuple[dict[str, Any], ...], sentence: str, base: Path
) -> None:
    handed_in(base, files, *users)
    found = told(base)
    assert (found["score"], "tests" in found) == (0, False), "Gradescope needs a score where there is no test"
    assert sentence in found["output"]
    assert re.fullmatch(r"Not graded: [^\n]+[^.\n]\.", found["output"])


def test_metadata_that_nobody_can_read(base: Path) -> None:
    handed_in(base, {"kv_cache.ipynb": WHOLE}, ADA)
    for text in ("", "[]", '{"users": 3}', '{"users": ["ada"]}'):
        (base / "submission_metadata.json").write_text(text)
        assert "does not say who handed this in" in told(base)["output"]


def test_without_a_sandbox_nothing_runs(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handed_in(base, {"kv_cache.ipynb": WHOLE}, ADA)
    monkeypatch.setattr(walls, "problem", lambda: "bubblewrap is not installed")
    monkeypatch.setattr(Course, "autograde", None)
    assert told(base)["output"] == (
        "Not graded: the grader's sandbox cannot be built on this platform, which is no fault of yours; tell your"
        " teacher."
    )
    assert "There is no sandbox here: bubblewrap is not installed. `--no-sandbox` packs" in capsys.readouterr().out
    settings = base / "source" / "settings.json"
    before = settings.read_text()
    settings.write_text(before.replace('"without_sandbox": false', '"without_sandbox": true'))
    monkeypatch.setattr(walls, "become", lambda: None)
    assert "your code cannot be kept apart from the grader" in told(base)["output"]
    assert "only root can run a student's code as somebody else" in capsys.readouterr().out
    settings.write_text(before)


@needs_sandbox
def test_a_fault_of_the_grader_costs_no_explanation(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(error: Exception) -> None:
        raise error

    handed_in(base, {"kv_cache.ipynb": WHOLE}, ADA)
    monkeypatch.setattr(Course, "autograde", lambda *_, **__: fails(RuntimeError("grading.key says secret")))
    assert told(base)["output"] == f"Not graded: {alone.FAULT}."
    for error in (RuntimeError, ValueError):
        monkeypatch.setattr(alone, "graded", lambda *_, error=error: fails(error("grading.key says secret")))
        assert told(base)["output"] == f"Not graded: {alone.FAULT}."


def test_an_autograder_that_cannot_start_still_leaves_a_sentence(base: Path, tmp_path: Path) -> None:
    shutil.copy(base / "run_autograder", tmp_path / "run_autograder")
    subprocess.run([str(tmp_path / "run_autograder")], capture_output=True, check=True)
    found = json.loads((tmp_path / "results" / "results.json").read_text())
    assert (found["score"], found["stdout_visibility"]) == (0, "hidden")
    assert "did not come to its end, which is no fault of yours" in found["output"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root becomes somebody else")
def test_without_a_sandbox_a_students_code_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("key")
    (tmp_path / "secret").chmod(0o600)
    look = f"import os\nuid = os.getuid()\nsecret = os.access({str(tmp_path / 'secret')!r}, os.R_OK)\n"
    again = "status = open('/proc/self/status').read()\npowers = status.split('NoNewPrivs:')[1].split()[0]\n"
    write = "open('own.txt', 'w').write('x')\nok = 'yes'"
    limits = Limits(apart=True)
    deadline = time.monotonic() + limits.total_s
    with Kernel(posed={}, whose={}, limits=limits, sandboxed=False, deadline=deadline, notebook=False) as kernel:
        assert not kernel.run(look + again + write)["failed"]
        assert float(kernel.value("uid")["text"]) == walls.become()
        assert kernel.value("secret") == {"kind": "other", "text": "bool"}
        kernel.run("secret = str(secret)")
        found = [kernel.value(name).get("text") for name in ("secret", "powers", "ok")]
    assert found == ["False", "1", "yes"]


def test_the_zip_has_what_gradescope_asks_for_and_no_answer(term: Path) -> None:
    path = term / "elsewhere" / f"{SET}-gradescope.zip"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600, "it holds the key"
    with zipfile.ZipFile(path) as archive:
        modes = {one.filename: one.external_attr >> 16 & 0o777 for one in archive.infolist()}
        packed = {name: archive.read(name).decode("utf-8") for name in archive.namelist()}
    assert (modes["setup.sh"], modes["run_autograder"], modes["grading.key"]) == (0o755, 0o755, 0o600)
    assert packed["run_autograder"].startswith("#!/usr/bin/env bash\n")
    assert set(packed["requirements.txt"].split()) == set(packing.PACKAGES)
    for package in packing.PACKAGES:
        assert f"\n{package}==" in packed["book/requirements.lock"]
    regions = [
        found
        for cell in solution(SET)["cells"]
        for found in re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", source(cell), re.DOTALL)
    ]
    assert len(regions) == 10
    sources = json.loads(packed[f"book/solutions/{SET}/{SET}.ipynb"])
    texts = "".join(source(cell) for cell in sources["cells"])
    assert not [region for region in regions if region.strip() in texts]
    assert [name for name in packed if name.startswith("book/solutions/")] == [f"book/solutions/{SET}/{SET}.ipynb"]
    again = term / "again.zip"
    assert run("gradescope", SET, "--into", again, "--term", term) == 0
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", SETS)
def test_without_its_solutions_a_set_makes_the_same_release(name: str) -> None:
    """By nbgrader's rule: between the marks of a solution comes its stub."""
    emptied = packing.without_solutions(solution(name))
    stubbed = re.compile(r"^([ \t]*)### BEGIN SOLUTION\n[ \t]*### END SOLUTION", re.MULTILINE)
    for cell, made in zip(emptied["cells"], released(name)["cells"], strict=True):
        assert stubbed.sub(r"\1# Your work goes here.", source(cell)) == source(made)
        assert mark(cell, "grade_id") == mark(made, "grade_id")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash")
def test_every_script_is_one() -> None:
    scripts = [path for kind in ("gradescope", "actions") for path in (actions.TEMPLATES.parent / kind).iterdir()]
    for path in scripts:
        if path.suffix != ".yml":
            subprocess.run(["bash", "-n", str(path)], check=True)
    assert len(scripts) == 5


@pytest.fixture(scope="module")
def repository(term: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A student's repository as it is checked out, and beside it where its workflow unpacks the grader."""
    folder = tmp_path_factory.mktemp("runner") / "work"
    shutil.copytree(term / "elsewhere" / f"{SET}-github", folder)
    unzipped(folder / actions.GRADER, folder.parent / "three-loops")
    return folder


def graded(repository: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    written = repository.parent / "summary.md"
    written.unlink(missing_ok=True)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(written))
    code = in_actions.main([str(repository.parent / "three-loops"), str(repository)])
    return code, written.read_text()


@needs_sandbox
def test_a_push_is_judged_by_the_same_judge(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, summary = graded(repository, monkeypatch)
    assert (code, "write your id there in place of 'reader', and push again" in summary) == (1, True)
    (repository / f"{SET}.ipynb").write_text(json.dumps(notebook("ada01", a_batch="batch_cache = '1 GB'")))
    capsys.readouterr()
    code, summary = graded(repository, monkeypatch)
    out = capsys.readouterr().out
    most = maximum(SET)
    assert (code, summary.splitlines()[0]) == (1, f"## {SET}: {most - 1:g} of {most:g} points")
    assert "| a-batch: A batch at the end of its answers | 0 of 1 | Not right" in summary
    assert summary.count(" | Right") == 9
    notices = re.findall(r"^::notice title=([^:]+)::(.*)$", out, re.MULTILINE)
    report = json.dumps({"totalPoints": most - 1, "maxPoints": most})
    assert notices == [("Autograding complete", f"Points {most - 1:g}/{most:g}"), ("Autograding report", report)]
    (repository / f"{SET}.ipynb").write_text("{")
    code, summary = graded(repository, monkeypatch)
    assert (code, summary.partition(" (")[0]) == (1, "Not graded: the file is not JSON, so it is no notebook")
    monkeypatch.setattr(walls, "problem", lambda: "bubblewrap is not installed")
    (repository / f"{SET}.ipynb").write_text(json.dumps(notebook("ada01")))
    assert (
        "code should not run without a sandbox, and bubblewrap is not installed" in graded(repository, monkeypatch)[1]
    )


def test_a_repository_holds_nothing_that_is_secret(term: Path, repository: Path) -> None:
    workflow = yaml.safe_load((repository / actions.WORKFLOW).read_text())
    assert workflow["name"] == "Autograding Tests"
    assert workflow["permissions"] == {"contents": "read"}
    ((name, job),) = workflow["jobs"].items()
    assert name == "run-autograding-tests"
    scripts = re.findall(r"three-loops/(\w+\.sh)", "".join(step.get("run", "") for step in job["steps"]))
    grader = repository.parent / "three-loops"
    assert scripts == list(actions.PROGRAMS)
    assert all((grader / script).exists() for script in scripts)
    assert "grader.zip" in job["steps"][1]["run"]
    assert json.loads((grader / "settings.json").read_text()) == {"set": SET, "course": COURSE, "functions": "all"}
    key = (term / "graded" / "grading.key").read_text().strip()
    with zipfile.ZipFile(repository / actions.GRADER) as archive:
        everything = b"".join(archive.read(one) for one in archive.namelist() if "/lib/" not in one)
        assert packing.KEY not in archive.namelist()
    for secret in (key, "ada@x.edu", "grace02"):
        assert secret.encode() not in everything


def test_what_a_teacher_can_get_wrong(term: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (
        (("gradescope", SET, "--into", tmp_path / "autograder.tar"), "must be a zip, like kv_cache.zip"),
        (("gradescope", "queues"), "queues was not released in this term"),
        (("github", "queues"), "queues was not released in this term"),
        (("github", SET, "--into", ROOT), "must be a new folder, or an empty repository"),
    ):
        capsys.readouterr()
        assert run(*words, "--term", term) == 2
        assert sentence in capsys.readouterr().err
