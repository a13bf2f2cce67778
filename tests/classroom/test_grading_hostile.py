"""Hostile and broken submissions, handed in between two honest ones: none earns a point it should not, and nobody
else notices.
"""

import copy
import csv
import hashlib
import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from submissions import ROOT, Notebook, asked, filled, maximum, released, set_source, write

from threeloops.classroom import sandbox
from threeloops.classroom.course import Course
from threeloops.classroom.grade import _grade_class
from threeloops.classroom.intake import handed_in

SET, CODE = "kv_cache", "spring-26"
DESERVED = 1.0  # one honest answer stands in every attack: it must neither be lost nor multiplied
KEPT = "one-token"  # the question that is answered honestly
LISTENER = socket.create_server(("127.0.0.1", 0))  # what a student's code must not reach
MARK = "STOLEN-BY"  # what leaking attacks try to get onto a page

pytestmark = pytest.mark.skipif(
    bool(sandbox.problem()), reason=f"attacks run in the sandbox alone: {sandbox.problem()}"
)


def honest(student: str, right: set[str] | None = None) -> Notebook:
    """Right on some questions, untouched on the others."""
    untouched = {}
    if right is not None:
        empty = released(SET)
        cells = {cell["id"]: "".join(cell["source"]) for cell in empty["cells"]}
        untouched = {grade_id: cells[f"{grade_id}-answer"] for grade_id in asked(SET) if grade_id not in right}
    return filled(SET, student=student, course=CODE, wrong=untouched)


def attacked(change: Callable[[Notebook], object]) -> Callable[[str], Notebook]:
    """A notebook with one honest answer, then changed."""

    def make(student: str) -> Notebook:
        notebook = honest(student, {KEPT})
        return change(notebook) or notebook  # type: ignore[return-value]

    return make


def running(code: str, *, where: str = "a-batch-answer") -> Callable[[str], Notebook]:
    """A notebook whose student runs this code in one of the answer cells."""
    return attacked(lambda notebook: set_source(notebook, where, code))


def marks(notebook: Notebook) -> list[dict[str, object]]:
    return [cell["metadata"]["nbgrader"] for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]


def graded_marks(notebook: Notebook) -> list[dict[str, object]]:
    return [fields for fields in marks(notebook) if fields["grade"]]


def drop_tests(notebook: Notebook) -> None:
    notebook["cells"] = [cell for cell in notebook["cells"] if not cell["metadata"].get("nbgrader", {}).get("grade")]


def edit_tests(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["source"] = "pass"
            cell["metadata"]["nbgrader"] |= {"points": 100, "locked": False}


def swap_ids(notebook: Notebook) -> None:
    ids = [fields["grade_id"] for fields in graded_marks(notebook)]
    for fields, grade_id in zip(graded_marks(notebook), [*ids[1:], KEPT], strict=True):
        fields["grade_id"] = grade_id


def all_marks(**fields: object) -> Callable[[str], Notebook]:
    return attacked(lambda notebook: [one.update(fields) for one in marks(notebook)] and None)


def doubled_tests(notebook: Notebook) -> None:
    tests = [copy.deepcopy(cell) for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade")]
    notebook["cells"] = [*tests, *notebook["cells"], *tests]


def doubled_answers(notebook: Notebook) -> None:
    answers = [
        copy.deepcopy(cell) for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")
    ]
    notebook["cells"] += answers


def one_id_for_all(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["id"] = "same"


def stripped(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def answers_as_prose(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["id"].endswith("-answer") and not cell["id"].startswith(KEPT):
            cell["cell_type"] = "markdown"


def graded_answers(notebook: Notebook) -> None:
    for fields in marks(notebook):
        if fields["solution"]:
            fields |= {"grade": True, "points": 50}


def invented_cell(notebook: Notebook) -> None:
    extra = copy.deepcopy(next(cell for cell in notebook["cells"] if cell["id"] == KEPT))
    extra["metadata"]["nbgrader"] |= {"grade_id": "bonus", "points": 50}
    notebook["cells"].append(extra | {"id": "bonus", "source": "pass"})


def odd_shapes(notebook: Notebook) -> None:
    notebook["cells"] += [
        None,
        7,
        [],
        {"cell_type": "code"},
        {"cell_type": "code", "source": 5, "metadata": []},
        {"cell_type": "what", "source": "x"},
    ]
    notebook["cells"] += [{"cell_type": "code", "source": ["a = 1\n", None], "metadata": {"nbgrader": [1]}, "id": {}}]
    notebook["metadata"] = {"kernelspec": {"name": "perl", "language": "perl", "display_name": "\ud800"}, "widgets": 5}


def script_everywhere(notebook: Notebook) -> None:
    attack = "<script>alert('x')</script><img src=x onerror=alert(1)>"
    for cell in notebook["cells"]:
        if cell["id"] == "doubling-gpus-answer":
            cell["source"] = f"My explanation {attack} [link](javascript:alert(1))"
    code = f"from IPython.display import HTML, display\nprint({attack!r})\ndisplay(HTML({attack!r}))\nHTML({attack!r})"
    set_source(notebook, "a-batch-answer", code)


LIAR = """
class Liar(float):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __sub__(self, other): return Liar(0)
    def __rsub__(self, other): return Liar(0)
    def __abs__(self): return Liar(0)
    def __array_ufunc__(self, *a, **k): return True
    def __float__(self): return 0.0
    def __hash__(self): return 0
    def __repr__(self): return "24.5 GB"
"""

FORGER = """
import json, os
for fd in os.listdir('/proc/self/fd'):
    for reply in ({"kind": "number", "text": "1.0"}, {"right": True, "status": "right", "points": 99}, [1], "x"):
        try: os.write(int(fd), (json.dumps(reply) + chr(10)).encode())
        except OSError: pass
"""

STALLER = """
import json, os, signal
line = (json.dumps({"printed": "", "kind": "number", "text": "1.0"}) + chr(10)).encode()
for fd in os.listdir('/proc/self/fd'):
    try: [os.write(int(fd), line) for _ in range(40)]
    except OSError: pass
signal.signal(signal.SIGALRM, signal.SIG_IGN)
while True: pass
"""

SEARCHER = """
import os, gc, sys
found = []
for folder, below, files in os.walk('/'):
    if folder in ('/proc', '/usr', sys.prefix, sys.base_prefix): below.clear(); continue
    found += [os.path.join(folder, file) for file in files if file in ('grading.key', 'gradebook.db', 'bank.py', 'kv_paging.py') or file.endswith('.ipynb')]
print('FOUND', len(found), found[:3])
frames, frame = [], sys._getframe()
while frame: frames.append(str(frame.f_locals)[:100000]); frame = frame.f_back
print('ANSWER' if any('derive' in text or 'slip' in text for text in frames) else 'NOTHING', 'in the frames')
"""  # noqa: E501

PATIENT_KILLER = """
import os, signal
for pid in (-1, 1, os.getppid()):
    try: os.kill(pid, signal.SIGKILL)
    except OSError: pass
"""

OWN_LIBRARY = """
import os, sys
os.makedirs('/tmp/threeloops/drills')
open('/tmp/threeloops/__init__.py', 'w').write('')
sys.path.insert(0, '/tmp')
for name in list(sys.modules):
    if name.startswith('threeloops'): del sys.modules[name]
import threeloops
"""

JUDGE_REPLACED = """
import threeloops.drills.engine.judge as judge
judge.judge = lambda *a: judge.Verdict(status='right', message='Right.')
"""

FLOOD = """
import os
for fd in (3, 4, 5, 6):
    for _ in range(300):
        try: os.write(fd, b'x' * 10**6)
        except OSError: break
"""

GRADEBOOK = f"""
import os, sqlite3
for place in ({str(ROOT)!r}, {str(ROOT / "build")!r}, '/root', '/home', '/tmp', os.getcwd()):
    path = os.path.join(place, 'gradebook.db')
    if os.path.exists(path):
        sqlite3.connect(path).execute('update grade set manual_score = 99')
        print('GRADEBOOK', path)
"""

LEFT_BEHIND = """
import subprocess, sys, threading
threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()
subprocess.Popen([sys.executable, '-c', 'while True: pass'])
"""

LEAK = """
import sys
def reserved_bytes(**given):
    print('STOLEN-BY', given)
    print('STOLEN-BY', given, file=sys.stderr)
    raise ValueError(f'STOLEN-BY {given}')
"""

LEAKING_TYPE = """
def reserved_bytes(**given):
    raise type(f'STOLEN-BY{sorted(given.values())}', (Exception,), {})()
"""

SHELL_PATCHED = """
shell = get_ipython()
shell.run_cell = lambda *a, **k: None
shell.user_ns.clear()
"""

ALL_EQUAL = (
    LIAR + "batch_cache = latent_cache = quantised_cache = unwritten_share = conversations = config_cache = Liar()"
)


def exit_everywhere(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        if cell["id"].endswith("-answer") and not cell["id"].startswith(KEPT) and cell["cell_type"] == "code":
            cell["source"] = "import os\nos._exit(0)"


def odd_answers(notebook: Notebook) -> None:
    values = ("float('nan')", "float('inf')", "10 ** 10000", "[1, 2]", "'9' * 10**6", "lambda: 3")
    numbers = [one for one in asked(SET).values() if one.kind == "number" and one.grade_id != KEPT]
    for one, value in zip(numbers, values, strict=True):
        set_source(notebook, f"{one.grade_id}-answer", f"{one.name} = {value}")


def stalled(notebook: Notebook) -> None:
    """Forged replies to everything that is still to come, then silence, with more to read than a pipe holds."""
    set_source(notebook, "a-batch-answer", STALLER)
    where = [cell["id"] for cell in notebook["cells"]].index("a-batch-answer") + 1
    notebook["cells"].insert(
        where, {"cell_type": "code", "source": "#" * 99_000, "metadata": {}, "id": "long", "outputs": []}
    )


def function(code: str) -> Callable[[str], Notebook]:
    return running(code, where="paged-answer")


ATTACKS: dict[str, Callable[[str], Notebook]] = {
    # running for ever, ending the process, using everything up
    "endless-loop": running("while True: pass"),
    "endless-and-deaf": running("while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
    "alarm-switched-off": running("import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass"),
    "endless-in-c": running("10 ** 10 ** 9"),
    "six-gigabytes": running("hoard = bytearray(6 * 10**9)"),
    "system-exit": running("import sys\nsys.exit(0)"),
    "raise-system-exit": running("raise SystemExit"),
    "exit-call": running("exit()"),
    "os-exit": running("import os\nos._exit(0)"),
    "exit-everywhere": attacked(exit_everywhere),
    "crash": running("import ctypes\nctypes.string_at(0)"),
    "kill-itself": running("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
    "kill-the-others": running(PATIENT_KILLER),
    "close-the-line": running("import os\nos.closerange(0, 300)"),
    "flooded-line": running(FLOOD),
    "three-hundred-megabytes": running("for _ in range(300): print('x' * 10**6)"),
    "fork-bomb": running("import os, time\nfor _ in range(500):\n    if os.fork() == 0: time.sleep(60)"),
    "disk-filled": running("for n in range(50):\n    with open(f'/tmp/{n}', 'wb') as f: f.write(b'x' * 10**8)"),
    "left-behind": running(LEFT_BEHIND),
    "asks-for-input": running("input('your password? ')"),
    # the notebook's own cells
    "no-tests": attacked(drop_tests),
    "edited-tests": attacked(edit_tests),
    "swapped-ids": attacked(swap_ids),
    "tests-as-solutions": all_marks(solution=True, grade=False),
    "old-schema": all_marks(schema_version=1),
    "future-schema": all_marks(schema_version=99),
    "points-as-text": all_marks(points="1e9"),
    "doubled-tests": attacked(doubled_tests),
    "doubled-answers": attacked(doubled_answers),
    "one-id-for-all": attacked(one_id_for_all),
    "metadata-gone": attacked(stripped),
    "answers-as-prose": attacked(answers_as_prose),
    "graded-answers": attacked(graded_answers),
    "invented-cell": attacked(invented_cell),
    "odd-shapes": attacked(odd_shapes),
    "half-characters": running("x = '\ud800'"),
    # getting at the judge
    "library": running("from threeloops.product_loop import kv_cache\nbatch_cache = kv_cache"),
    "judge-replaced": running(JUDGE_REPLACED),
    "own-library": running(OWN_LIBRARY),
    "worked-answer": running("batch_cache = sheet.worked('kv-whole-requests')"),
    "sheet-replaced": running("sheet.check = sheet.check_function = lambda *a: print('Right.')\nprint('Right.')"),
    "numpy-agrees": running(
        "import builtins, math, numpy\nnumpy.isclose = math.isclose = lambda *a, **k: True\nbuiltins.abs = lambda x: 0"
    ),
    "always-equal": running(ALL_EQUAL, where="real-config-answer"),
    "shell-patched": running(SHELL_PATCHED),
    "transformed-cells": running("get_ipython().input_transformers_post.append(lambda lines: ['pass'])"),
    "forged-replies": running(FORGER),
    "forged-and-stalled": attacked(stalled),
    "self-marked-richly": attacked(lambda notebook: set_source(notebook, "doubling-gpus-mark", "self_marked = 1e308")),
    "odd-answers": attacked(odd_answers),
    # getting out
    "network": running(
        f"import socket\nprint('NET' + ' OK', socket.create_connection(('127.0.0.1', {LISTENER.getsockname()[1]}), 1))"
    ),
    "search-the-disk": running(SEARCHER),
    "gradebook": running(GRADEBOOK),
    "script-in-output": attacked(script_everywhere),
    # functions
    "function-leaks": function(LEAK),
    "function-leaks-by-type": function(LEAKING_TYPE),
    "function-equal": function(LIAR + "def reserved_bytes(**_): return Liar()"),
    "function-hangs": function("import time\ndef reserved_bytes(**given): time.sleep(1000)"),
    "function-ends-it": function("import os\ndef reserved_bytes(**given): os._exit(0)"),
    "function-exits": function("def reserved_bytes(**given): exit()"),
    "function-array": function("import numpy\ndef reserved_bytes(**given): return numpy.ones(3)"),
    "function-huge": function("def reserved_bytes(**given): return 10 ** 10000"),
    "function-nan": function("def reserved_bytes(**given): return float('nan')"),
    "function-signature": function("def reserved_bytes(a, b): return 1"),
    "no-function": function("reserved_bytes = 5"),
}
ENDS = dict.fromkeys(
    ("endless-loop", "endless-and-deaf", "alarm-switched-off", "endless-in-c", "function-hangs"), "timed out"
) | dict.fromkeys(
    (
        "os-exit",
        "exit-everywhere",
        "crash",
        "kill-itself",
        "close-the-line",
        "flooded-line",
        "forged-replies",
        "function-ends-it",
    ),
    "died",
)  # the others are graded

# student -> bytes handed in
BROKEN: dict[str, bytes] = {
    "cut-off": json.dumps(released(SET)).encode()[:5000],
    "empty-file": b"",
    "a-list": b"[1, 2, 3]",
    "format-nine": json.dumps(released(SET) | {"nbformat": 9}).encode(),
    "no-cells": b'{"nbformat": 4, "cells": 3}',
    "binary": bytes(range(256)) * 40,
    "nested": b"[" * 100_000,
    "merge-conflict": b"<<<<<<< HEAD\n" + json.dumps(released(SET)).encode(),
    "enormous": b'{"nbformat": 4, "cells": [], "x": "' + b"x" * 20_000_001 + b'"}',
}

HONEST = {"aaa-before": maximum(SET), "mmm-between": DESERVED, "zzz-after": maximum(SET), "zzz-warns": maximum(SET)}


@dataclass(frozen=True, kw_only=True)
class Graded:
    rows: dict[str, list[dict[str, str]]]  # student -> rows of the grade CSV
    course: Course
    printed: str
    untouched: bool  # were the files that were handed in left as they were?

    def points(self, student: str) -> float:
        return sum(float(row["points"]) for row in self.rows[student])

    def status(self, student: str) -> str:
        return self.rows[student][0]["status"]

    def judged(self, student: str) -> str:
        return (self.course.folder("autograded", student, SET) / f"{SET}.ipynb").read_text()


def digest(folder: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.rglob("*.ipynb")))).hexdigest()


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    folder = tmp_path_factory.mktemp("hostile")
    # on the wall: honest cells take milliseconds, and a neighbour may take the core
    limits = {"cell_s": 3.0, "call_s": 2.0, "total_s": 45.0}
    course = Course(root=ROOT, work=folder / "work", code=CODE, judge=limits)
    for student, points in HONEST.items():
        write(honest(student, {KEPT} if points == DESERVED else None), folder / "class", student, SET)
    warns = honest("zzz-warns")
    for cell in warns["cells"]:
        if cell["id"].endswith("-answer") and cell["cell_type"] == "code":
            cell["source"] = (
                f"import sys, warnings\nwarnings.warn('careful')\nprint('note', file=sys.stderr)\n{cell['source']}"
            )
    write(warns, folder / "class", "zzz-warns", SET)
    for student, make in ATTACKS.items():
        write(make(student), folder / "class", student, SET)
    for student, content in BROKEN.items():
        (folder / "class" / student).mkdir()
        (folder / "class" / student / f"{SET}.ipynb").write_bytes(content)
    (folder / "class" / "absent").mkdir()
    os.symlink(folder / "class" / "aaa-before", folder / "class" / "linked")
    before = digest(folder / "class")
    assert _grade_class(handed_in(folder / "class", course.sets()), course, trust_students=False) == 0
    with (course.work / f"grades-{SET}.csv").open() as file:
        rows: dict[str, list[dict[str, str]]] = {}
        for row in csv.DictReader(file):
            rows.setdefault(row["student"], []).append(row)
    return Graded(rows=rows, course=course, printed="", untouched=digest(folder / "class") == before)


@pytest.mark.parametrize("student", ATTACKS)
def test_an_attack_earns_what_was_answered_honestly_and_no_more(graded: Graded, student: str) -> None:
    assert graded.points(student) == DESERVED, [
        row for row in graded.rows[student] if float(row["points"]) or row["question"] == KEPT
    ]
    assert sum(float(row["maximum"]) for row in graded.rows[student]) == maximum(SET)
    assert graded.status(student) == ENDS.get(student, "graded"), graded.rows[student][0]["notes"]


@pytest.mark.parametrize("student", BROKEN)
def test_what_is_no_notebook_is_said_to_be_unparsable(graded: Graded, student: str) -> None:
    assert (graded.status(student), graded.points(student)) == ("unparsable", 0)
    assert graded.rows[student][0]["notes"]


@pytest.mark.parametrize("student", HONEST)
def test_the_honest_are_not_disturbed(graded: Graded, student: str) -> None:
    assert (graded.status(student), graded.points(student)) == ("graded", HONEST[student])


def test_a_missing_notebook_is_listed_and_a_link_is_not_followed(graded: Graded) -> None:
    assert graded.status("absent") == "missing"
    assert "linked" not in graded.rows


def test_the_gradebook_is_whole_and_says_the_same(graded: Graded) -> None:
    for student in [*ATTACKS, *HONEST]:
        scores = graded.course.scores(SET, student)
        assert sum(score.points for score in scores) == graded.points(student)
        assert sum(score.maximum for score in scores) == maximum(SET)
        assert not any(score.by_hand for score in scores)


def test_nothing_that_was_handed_in_has_changed(graded: Graded) -> None:
    assert graded.untouched


def test_the_sandbox_showed_nothing(graded: Graded) -> None:
    search = graded.judged("search-the-disk")
    assert "FOUND 0 []" in search
    assert "NOTHING in the frames" in search
    assert "NET OK" not in graded.judged("network")
    assert "GRADEBOOK /" not in graded.judged("gradebook")


@pytest.mark.parametrize("student", ["function-leaks", "function-leaks-by-type"])
def test_hidden_draws_do_not_come_out_with_the_grade(graded: Graded, student: str) -> None:
    notebook = json.loads(graded.judged(student))
    outputs = json.dumps(
        [cell.get("outputs", []) for cell in notebook["cells"]] + [cell["metadata"] for cell in notebook["cells"]]
    )
    assert MARK not in outputs
    assert MARK not in json.dumps(graded.rows[student])


def test_a_page_runs_no_script_of_a_student(graded: Graded) -> None:
    page = (graded.course.folder("feedback", "script-in-output", SET) / f"{SET}.html").read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert 'href="javascript' not in page
    assert "My explanation" in page


def test_self_marks_are_shown_apart_and_never_counted(graded: Graded) -> None:
    assert "1e+308" not in graded.judged("self-marked-richly").split('"threeloops"')[-1]
