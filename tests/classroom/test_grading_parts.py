"""The parts of grading, one by one: reading what was handed in, transplanting it, judging values, naming a mistyped
id.
"""

import contextlib
import io
import json
import os
import platform
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from submissions import Notebook, asked, filled, released, right_number, set_source, signed

from threeloops import wall_clock
from threeloops.classroom import placing, sandbox, warm_process
from threeloops.classroom.intake import Person, handed_in, lone_notebook, person
from threeloops.classroom.judging import Examiner, judged, number_verdict, self_mark
from threeloops.classroom.kernel import DiedError, Kernel
from threeloops.classroom.questions import mark, questions, source
from threeloops.classroom.sandbox import Limits
from threeloops.classroom.seccomp import ARCHITECTURES, REFUSED, refusals
from threeloops.classroom.transplant import UnparsableError, disarmed, parsed, transplanted
from threeloops.classroom.warm_process import NoStartError

SET = "kv_cache"
LIBRARY = Path(sandbox.__file__).parents[2]
SETS = ("all_reduce", "kv_cache")
RELEASE = json.dumps(released(SET)).encode()


# --- transplanting ------------------------------------------------------------------------------


def marked_cells(notebook: Notebook) -> list[tuple[object, ...]]:
    """All that nbgrader and the judge go by."""
    return [
        (cell["id"], cell["cell_type"], json.dumps(cell["metadata"], sort_keys=True))
        for cell in notebook["cells"]
        if not cell["id"].startswith("added-")
    ]


def test_a_notebook_transplanted_is_the_release_with_its_answers() -> None:
    made = transplanted(released(SET), filled(SET, student="ada"))
    assert [source(cell) for cell in made["cells"]] == [source(cell) for cell in filled(SET, student="ada")["cells"]]
    assert transplanted(released(SET), made) == made, "a second time changes nothing"


def test_added_code_stays_where_it_stood_and_counts_for_nothing_else() -> None:
    notebook = filled(SET, student="ada")
    where = [cell["id"] for cell in notebook["cells"]].index("paged-answer")
    notebook["cells"].insert(
        where, {"cell_type": "code", "source": "blocks = 7", "metadata": {}, "outputs": [{"secret": 1}], "id": "mine"}
    )
    notebook["cells"].insert(0, {"cell_type": "markdown", "source": "my notes", "metadata": {}, "id": "notes"})
    made = transplanted(released(SET), notebook)
    ids = [cell["id"] for cell in made["cells"]]
    assert source(made["cells"][ids.index("paged-answer") - 1]) == "blocks = 7"
    assert made["cells"][ids.index("paged-answer") - 1] == {**made["cells"][ids.index("added-0")]}
    assert made["cells"][ids.index("added-0")]["outputs"] == []
    assert marked_cells(made) == marked_cells(transplanted(released(SET), released(SET)))


def test_of_doubled_answers_the_last_one_written_counts() -> None:
    notebook = released(SET)
    (answer,) = [cell for cell in notebook["cells"] if cell["id"] == "one-token-answer"]
    notebook["cells"] += [{**answer, "source": "one_token = '1 B'"}, {**answer, "source": "one_token = '2 B'"}, answer]
    made = transplanted(released(SET), notebook)
    assert [source(cell) for cell in made["cells"] if cell["id"] == "one-token-answer"] == ["one_token = '2 B'"]


def test_transplanting_takes_no_longer_than_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: each cell is looked at a few times, however many cells the release has."""
    looks = []
    monkeypatch.setattr(placing, "mark", lambda cell, name: looks.append(name) or mark(cell, name))
    notebook = {"nbformat": 4, "cells": [*filled(SET, student="ada")["cells"], *[{}] * 4_000]}
    made = transplanted(released(SET), parsed(json.dumps(notebook).encode()))
    assert source(made["cells"][-1]) == source(released(SET)["cells"][-1])
    assert len(looks) < 4 * len(notebook["cells"])
    with pytest.raises(UnparsableError, match="at most 5,000"):
        parsed(json.dumps({"nbformat": 4, "cells": [{}] * 5_001}).encode())


FIELDS = some.sampled_from(["source", "metadata", "nbgrader", "grade_id", "id", "cell_type", "threeloops"])
ATOMS = some.none() | some.booleans() | some.floats() | some.text(max_size=8)
some_json = some.recursive(
    ATOMS, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(FIELDS, inner, max_size=4)
)


@settings(max_examples=150, deadline=None)
@given(some.lists(some_json, max_size=6), some.randoms())
def test_no_notebook_whatever_changes_what_is_asked(odd: list[object], chance: object) -> None:
    notebook = filled(SET, student="ada")
    cells = [*notebook["cells"], *odd]
    chance.shuffle(cells)  # type: ignore[attr-defined]
    made = transplanted(released(SET), parsed(json.dumps({"nbformat": 4, "cells": cells}).encode()))
    assert marked_cells(made) == marked_cells(released(SET))
    assert questions(made) == questions(released(SET))


@given(some.binary(max_size=200))
def test_any_bytes_are_a_notebook_or_refused_in_one_sentence(content: bytes) -> None:
    with pytest.raises(UnparsableError) as refusal:
        parsed(content)
    assert "\n" not in str(refusal.value)


def test_the_nearest_notebook_is_read() -> None:
    assert parsed(RELEASE)["nbformat"] == 4
    assert parsed(b"\xef\xbb\xbf" + RELEASE)["nbformat"] == 4, "a byte order mark is no fault of a student's"


@pytest.mark.parametrize(
    "prose",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "![x](http://a/b)",
        "[x][y]\n\n[y]: javascript:1",
        "<a href='x'>",
        "<http://x>",
    ],
)
def test_prose_is_shown_without_anything_that_acts(prose: str) -> None:
    import nbconvert.filters

    page = nbconvert.filters.markdown2html(disarmed(prose))
    assert not any(tag in page for tag in ("<script", "<img", 'href="javascript', "<a href='x'"))


# --- judging values -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"kind": "missing"}, "unanswered"),
        ({"kind": "unwritten"}, "unanswered"),
        ({}, "unanswered"),
        ({"kind": ["text"]}, "unanswered"),
        ({"kind": "text", "text": "24.5"}, "unreadable"),
        ({"kind": "text", "text": {"right": True}}, "unreadable"),
        ({"kind": "number", "text": "nan"}, "unreadable"),
        ({"kind": "number", "text": "1.0"}, "unreadable"),  # of what?
        ({"kind": "number", "text": "__import__('os')"}, "unreadable"),
        ({"kind": "other", "text": "list"}, "unreadable"),
        ({"kind": "other", "text": "<script>"}, "unreadable"),
        ({"kind": "text", "text": "1 B"}, "off"),
    ],
)
def test_whatever_comes_back_is_judged(value: dict[str, object], status: str) -> None:
    verdict = number_verdict("kv-bytes-per-token", value, course="home", student="ada")
    assert verdict.status == status
    assert "<" not in verdict.message


def test_hidden_draws_follow_the_key_the_student_and_the_submission() -> None:
    def secret(key: bytes = b"k", student: str = "ada", words: str = "w") -> str:
        return Examiner(student=student, course="home", key=key).secret(words)

    assert secret() == secret()
    assert len({secret(), secret(key=b"other"), secret(student="grace"), secret(words="another")}) == 4


# --- who handed it in: unsandboxed, the code is ours --------------------------------------------


def as_handed_in(notebook: Notebook, folder: str) -> object:
    made = transplanted(released(SET), notebook)
    return judged(made, Examiner(student=folder, course="home", key=b"k", sandboxed=False))


def test_a_mistyped_id_is_named_and_its_answers_are_held() -> None:
    outcome = as_handed_in(filled(SET, student="adda"), "ada")
    numbers = [one.grade_id for one in asked(SET).values() if one.kind == "number"]
    assert {outcome.verdicts[grade_id].status for grade_id in numbers} <= {"held", "right"}  # type: ignore[attr-defined]
    assert "held" in {outcome.verdicts[grade_id].status for grade_id in numbers}  # type: ignore[attr-defined]
    assert any("student 'adda'" in note for note in outcome.notes)  # type: ignore[attr-defined]
    assert all(outcome.verdicts[one.grade_id].right for one in asked(SET).values() if one.kind == "function")  # type: ignore[attr-defined]


def test_a_mistyped_course_is_named_too_and_wrong_answers_stay_wrong() -> None:
    notebook = filled(SET, student="ada", course="hoem")
    set_source(notebook, "one-token-answer", "one_token = '1 B'")
    outcome = as_handed_in(notebook, "ada")
    assert outcome.verdicts["one-token"].status == "off"  # type: ignore[attr-defined]
    assert outcome.verdicts["a-batch"].status == "held"  # type: ignore[attr-defined]
    assert any("course 'hoem'" in note for note in outcome.notes)  # type: ignore[attr-defined]


def test_the_same_id_typed_otherwise_is_no_mistake() -> None:
    notebook = signed(filled(SET, student="ada-lovelace"), student=" Ada LOVELACE ")
    outcome = as_handed_in(notebook, "ada-lovelace")
    assert outcome.notes == []  # type: ignore[attr-defined]
    assert all(verdict.right for verdict in outcome.verdicts.values())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("code", "marked"),
    [
        ("print('\\ud83d'); self_marked = 2", 2.0),
        ("self_marked = '2'", None),
        ("self_marked = float('nan')", None),
        ("self_marked = type('\\ud83d', (), {})()", None),
    ],
)
def test_half_a_character_or_an_odd_self_mark_costs_nothing(code: str, marked: float | None) -> None:
    """A program that was cut in the middle of an emoji prints half of it; no file and no database can hold that."""
    notebook = filled(SET, student="ada")
    set_source(notebook, "doubling-gpus-mark", code)
    outcome = as_handed_in(notebook, "ada")
    assert all(verdict.right for verdict in outcome.verdicts.values())  # type: ignore[attr-defined]
    assert outcome.self_marked == marked  # type: ignore[attr-defined]
    "".join(outcome.printed.values()).encode()  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["", "two", "1_0", [2], {}, None])
def test_a_self_mark_that_is_no_number_is_none(text: object) -> None:
    assert self_mark({"kind": "number", "text": text}) is None
    assert self_mark({"kind": "number"}) is None
    assert self_mark({"kind": "number", "text": "2.0"}) == 2


# --- the student's side -------------------------------------------------------------------------

walls = pytest.mark.skipif(bool(sandbox.problem()), reason=f"needs the sandbox: {sandbox.problem()}")


def side(limits: Limits, *, sandboxed: bool = True, notebook: bool = True) -> Kernel:
    return Kernel(
        posed={"q": "How many?"},
        whose={"student": "ada", "course": "home"},
        limits=limits,
        sandboxed=sandboxed,
        deadline=time.monotonic() + 120,
        notebook=notebook,
    )


@pytest.mark.parametrize("sandboxed", [pytest.param(True, marks=walls), False])
def test_the_students_side_behaves_like_a_notebook(sandboxed: bool) -> None:
    with side(Limits(), sandboxed=sandboxed) as kernel:
        assert (
            kernel.run(
                "from threeloops.drills.engine import sheet\nsheet.begin(student='x', course='y')\nsheet.ask('q')"
            )["printed"]
            == "Numbers for ada, course home.\nHow many?\n"
        )
        assert not kernel.run("%time import numpy\nx = numpy.float32(2.5)\nimport warnings; warnings.warn('careful')")[
            "failed"
        ]
        assert kernel.value("x") == {"kind": "number", "text": "2.5"}
        assert kernel.run("await __import__('asyncio').sleep(0)\nx") == {
            "printed": "Out[0]: np.float32(2.5)\n",
            "failed": False,
            "timed_out": False,
        }
        assert kernel.run("1 / 0")["failed"]
        assert kernel.value("nothing") == {"kind": "missing"}
        kernel.run("def double(*, n): return 2 * n")
        assert kernel.call("double", {"n": 21}) == {"kind": "number", "text": "42.0"}
        assert kernel.call("double", {"m": 21}) == {"kind": "raised", "text": "TypeError"}
        for forbidden in (
            "import threeloops.product_loop.kv_cache",
            "from threeloops import units",
            "from threeloops.drills.engine import bank, judge",
        ):
            assert kernel.run(forbidden)["failed"]


@walls
def test_the_empty_places_are_mounted_first() -> None:
    """A book cloned below /tmp has its Python there; mounted the other way round, nothing would start."""
    words = sandbox.command(sandboxed=True)
    assert words.index("--tmpfs") < words.index("--ro-bind")


@walls
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root becomes another user")
def test_packages_that_students_code_could_not_read_are_named(tmp_path: Path) -> None:
    python = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "closed")]
    subprocess.run(python, check=True, preexec_fn=lambda: os.umask(0o077))
    ask = f"import sys; sys.path.append({str(LIBRARY)!r}); from threeloops.classroom import sandbox"
    command = [str(tmp_path / "closed" / "bin" / "python"), "-c", f"{ask}; print(sandbox.problem())"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f"nobody may not read {tmp_path / 'closed'} (chmod -R go+rX" in said
    subprocess.run(["chmod", "-R", "go+rX", str(tmp_path / "closed")], check=True)
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == ""


@walls
@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("notebook", [True, False])
def test_files_are_made_with_the_usual_rights_whatever_the_graders_are(notebook: bool) -> None:
    before = os.umask(0o077)
    try:
        with side(Limits(), notebook=notebook) as kernel:
            assert kernel.run("import os\nprint(oct(os.umask(0)))")["printed"] == "0o22\n"
    finally:
        os.umask(before)


@walls
@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("notebook", [True, False])
def test_what_is_shown_below_tmp_can_be_read_whatever_the_graders_mask(
    notebook: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A book cloned there has its Python there. /tmp is emptied for each student, and the way made again."""
    tmp_path.chmod(0o755)
    (tmp_path / "module.txt").write_text("here")
    (tmp_path / "module.txt").chmod(0o644)
    binds = [*sandbox._system_binds(), *sandbox._open_way(tmp_path), "--ro-bind", str(tmp_path), str(tmp_path)]
    monkeypatch.setattr(sandbox, "_system_binds", lambda: binds)
    before = os.umask(0o077)
    try:
        with side(Limits(), notebook=notebook) as kernel:
            assert kernel.run(f"print(open({str(tmp_path / 'module.txt')!r}).read())")["printed"] == "here\n"
    finally:
        os.umask(before)


@walls
def test_memory_is_counted_over_all_processes() -> None:
    hoarders = (
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        hoard = b'x' * 300_000_000\n       "
        " time.sleep(50)\ntime.sleep(50)"
    )
    with side(Limits(total_memory_bytes=600_000_000, cell_s=60)) as kernel, pytest.raises(DiedError):
        kernel.run(hoarders)
    with side(Limits(total_memory_bytes=600_000_000)) as kernel:
        assert not kernel.run("hoard = b'x' * 200_000_000\nimport time; time.sleep(0.5)")["failed"]


@walls
@pytest.mark.parametrize("look_away", ["", "shared.madvise(mmap.MADV_DONTNEED); "])
def test_shared_memory_is_counted(look_away: str) -> None:
    hoarders = f"""
import mmap, os, time
for _ in range(3):
    if os.fork() == 0:
        shared = mmap.mmap(-1, 250_000_000)
        shared[::4096] = bytes(len(range(0, 250_000_000, 4096)))
        {look_away}time.sleep(50)
time.sleep(50)
"""
    with side(Limits(total_memory_bytes=600_000_000, cell_s=60)) as kernel, pytest.raises(DiedError):
        kernel.run(hoarders)


@pytest.fixture(params=["as it is", "as an ordinary user"])
def whoever(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The sandbox that this user gets, and the one that somebody who is not root gets."""
    if request.param == "as an ordinary user":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for changes in range(2):
        sandbox._bwrap.cache_clear()
        warm_process.problem.cache_clear()
        warm_process.drop()
        if changes == 0:
            yield
            monkeypatch.undo()


@walls
@pytest.mark.usefixtures("whoever")
def test_all_that_can_be_written_to_has_a_size() -> None:
    write = """
import os
room = {}
for line in open('/proc/self/mounts'):
    place = line.split()[1]
    try:
        path = os.path.join(place, 'mine')
        open(path, 'w').close()
        os.remove(path)
        room[place] = os.statvfs(place).f_blocks * os.statvfs(place).f_frsize
    except OSError:
        pass
for place in ('/run', '/dev', '/', '/usr', '/var', '/etc', '/home'):
    try: open(place + '/mine', 'w').close(); room[place] = 10**18
    except OSError: pass
places, most = ' '.join(sorted(room)), max(room.values())
import multiprocessing
lock = str(type(multiprocessing.Lock()).__name__)
"""
    with side(Limits()) as kernel:
        printed = kernel.run(write)
        assert kernel.value("places") == {"kind": "text", "text": "/dev/shm /tmp"}, printed
        assert float(kernel.value("most")["text"]) <= 110e6
        assert kernel.value("lock") == {"kind": "text", "text": "Lock"}, "an honest notebook has its semaphores"


@walls
@pytest.mark.usefixtures("whoever")
@pytest.mark.skipif(not refusals(), reason="the numbers of this processor's calls are in no table here")
def test_the_kernels_own_calls_that_reach_past_the_walls_are_refused() -> None:
    """A keyring is a user's, not a sandbox's: a word that one student's code leaves there is there for the next."""
    numbers = {name: pair[ARCHITECTURES[platform.machine()][0]] for name, pair in REFUSED.items()}
    call = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
let_through = []
for name, number in {numbers!r}.items():
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0)
    if ctypes.get_errno() != errno.EPERM: let_through.append(name)
try: let_through.append('/proc/keys') if open('/proc/keys').read() else None
except OSError: pass
answer = ' '.join(let_through) + '.'
"""
    with side(Limits()) as kernel:
        printed = kernel.run(call)
        assert kernel.value("answer") == {"kind": "text", "text": "."}, printed


@walls
def test_nothing_outlives_the_sandbox() -> None:
    with side(Limits()) as kernel:
        name = f"left-behind-by-{os.getpid()}"
        stay = (
            "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)',"
            f" '{name}'], start_new_session=True)"
        )
        assert not kernel.run(stay)["failed"]
        assert comes_to_be(lambda: name in running_commands())
    assert comes_to_be(lambda: name not in running_commands())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_without_a_sandbox_a_child_that_slips_away_does_not_hold_the_grader_up() -> None:
    start = time.monotonic()
    with side(Limits(), sandboxed=False) as kernel:
        assert not kernel.run(
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(100)\n    os._exit(0)"
        )["failed"]
    # not until it wakes; starting the student's side may itself take long on a busy machine
    assert time.monotonic() - start < 90


def comes_to_be(condition: Callable[[], bool], patience_s: float = 60) -> bool:
    """Does it become true? A process shows its command a moment after it has started, and disappears a moment after
    it was ended.
    """
    return wall_clock.until(condition, limit_s=patience_s, step_s=0.02)


def running_commands() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_text(errors="replace"))
    return " ".join(found)


def test_a_side_that_does_not_start_is_no_fault_of_the_student(monkeypatch: pytest.MonkeyPatch) -> None:
    warm_process.problem()  # asked before it breaks
    monkeypatch.setattr(sandbox, "command", lambda **_: [sys.executable, "-c", "pass"])
    warm_process.drop()
    with pytest.raises(NoStartError, match="did not start"):
        side(Limits())


def test_a_submission_has_one_time_limit_for_all_its_starts() -> None:
    notebook = filled(
        SET, student="ada", wrong={"a-batch": "import os\nos._exit(1)", "latent": "import time\ntime.sleep(600)"}
    )
    start = time.monotonic()
    outcome = judged(
        transplanted(released(SET), notebook),
        Examiner(student="ada", course="home", key=b"k", sandboxed=False, limits=Limits(total_s=12, cell_s=600)),
    )
    assert time.monotonic() - start < 300, "the second start would have waited ten minutes"
    assert outcome.status == "died"
    assert "it took longer than 12 s in all" in outcome.notes
    assert outcome.verdicts["one-token"].right


# --- taking in ----------------------------------------------------------------------------------


def test_one_readers_notebook_is_told_from_a_class(tmp_path: Path) -> None:
    path = tmp_path / "kv_cache" / "kv_cache.ipynb"
    path.parent.mkdir()
    path.write_bytes(RELEASE)
    assert lone_notebook(path, SETS) == ("kv_cache", path)
    assert lone_notebook(path.parent, SETS) == ("kv_cache", path)
    assert lone_notebook(tmp_path, SETS) is None


def test_a_loose_notebook_makes_no_reader_of_a_class(tmp_path: Path) -> None:
    for path in ("kv_cache.ipynb", "ada/kv_cache.ipynb", ".ipynb_checkpoints/kv_cache.ipynb"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(path.encode())
    assert lone_notebook(tmp_path, SETS) is None
    found = handed_in(tmp_path, SETS)
    assert [(one.student, one.content) for one in found.submissions] == [("ada", b"ada/kv_cache.ipynb")]
    assert found.left_out == ("'kv_cache.ipynb', which lies in no student's folder",)
    for place in (tmp_path / "ada", tmp_path / "ada" / "kv_cache.ipynb"):
        (one,) = handed_in(place, SETS).submissions
        assert (one.student, one.content) == ("ada", b"ada/kv_cache.ipynb"), "one student of a class, by the folder"


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_uploads_of_learning_platforms_are_read(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "uploads.zip",
        {
            "Ada Lovelace_123_assignsubmission_file_/kv_cache.ipynb": b"1",
            "hoppergrace_LATE_12_34_kv_cache-1.ipynb": b"2",
            "curie/deep/er/kv_cache.ipynb": b"3",
            "__MACOSX/curie/._kv_cache.ipynb": b"no",
            "curie/.ipynb_checkpoints/kv_cache.ipynb": b"no",
            "readme.txt": b"no",
            "noether/essay.pdf": b"no",
            "noether/": b"",
        },
    )
    found = handed_in(path, SETS)
    assert found.name == "kv_cache"
    assert {one.student: one.content for one in found.submissions} == {
        "ada-lovelace": b"1",
        "hoppergrace": b"2",
        "curie": b"3",
        "noether": None,
    }


def test_a_zip_that_climbs_or_swells_stays_where_it_is(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../../tmp/evil/kv_cache.ipynb", b"x")
        archive.writestr("/etc/kv_cache.ipynb", b"y")
        archive.writestr("swollen/kv_cache.ipynb", b"0" * 60_000_000)
        link = zipfile.ZipInfo("linked/kv_cache.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    (tmp_path / "z.zip").write_bytes(bomb.getvalue())
    before = set(tmp_path.rglob("*"))
    found = handed_in(tmp_path / "z.zip", SETS)
    linked, swollen = found.submissions
    assert (linked.student, linked.read, swollen.student) == ("linked", None, "swollen")
    assert linked.others == ("'linked/kv_cache.ipynb' is a link, which is not followed",)
    assert [line for line in found.left_out if "leads out" in line] == list(found.left_out)
    assert len(found.left_out) == 2
    assert len(swollen.content or b"") == 20_000_001
    assert set(tmp_path.rglob("*")) == before


def test_a_damaged_member_hurts_nobody_else(tmp_path: Path) -> None:
    path = zipped(tmp_path / "z.zip", {"ada/kv_cache.ipynb": RELEASE * 3, "grace/kv_cache.ipynb": RELEASE})
    content = bytearray(path.read_bytes())
    content[200:260] = b"\0" * 60
    path.write_bytes(content)
    found = {one.student: one.content for one in handed_in(path, SETS).submissions}
    assert (found["ada"], found["grace"]) == (b"", RELEASE)


def test_folders_files_links_and_a_class_list(tmp_path: Path) -> None:
    for name in ("ada", "grace"):
        (tmp_path / name).mkdir()
    (tmp_path / "ada" / "kv_cache.ipynb").write_bytes(b"1")
    (tmp_path / "Curie_5_6_kv_cache.ipynb").write_bytes(b"2")
    os.symlink("/etc/passwd", tmp_path / "spy_1_2_kv_cache.ipynb")
    (tmp_path / "mole").mkdir()
    os.symlink("/etc/passwd", tmp_path / "mole" / "kv_cache.ipynb")
    found = handed_in(tmp_path, SETS, roster=["Ada", "Emmy"])
    assert {one.student: one.content for one in found.submissions} == {
        "ada": b"1",
        "curie": b"2",
        "emmy": None,
        "grace": None,
        "mole": None,
        "spy": None,
    }
    assert {one.student for one in found.submissions if one.others} == {"mole", "spy"}, "whose links are named"


def test_two_notebooks_of_one_student_are_said(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "z.zip",
        {"Ada_1_assignsubmission_file_/kv_cache.ipynb": b"1", "Ada_1_assignsubmission_file_/z/kv_cache.ipynb": b"2"},
    )
    (one,) = handed_in(path, SETS).submissions
    assert (one.student, one.content) == ("ada", b"2")
    assert "two notebooks" in one.problem


def test_a_notebook_of_another_set_stops_nobody(tmp_path: Path) -> None:
    members = {
        "ada/kv_cache.ipynb": b"1",
        "ada/all_reduce.ipynb": b"2",
        "grace/kv_cache.ipynb": b"3",
        "emmy/all_reduce.ipynb": b"4",
        "curie/kv_cache.ipynb": b"5",
    }
    path = zipped(tmp_path / "z.zip", members)
    found = handed_in(path, SETS)
    assert found.name == "kv_cache"
    assert [one.content for one in found.submissions] == [b"1", b"5", None, b"3"]
    assert found.left_out == ("all_reduce, handed in by 2; --set all_reduce grades that",)
    asked_for = handed_in(path, SETS, drill_set="all_reduce")
    assert [one.content for one in asked_for.submissions] == [b"2", None, b"4", None]
    with pytest.raises(ValueError, match="drill_set"):
        handed_in(path, SETS, drill_set="nothing")


def test_people_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    """By the platform's own number, or by the folder's name to the letter; nobody overwrites anybody."""
    members = {
        "John Smith_101_assignsubmission_file_/kv_cache.ipynb": b"1",
        "John Smith_202_assignsubmission_file_/kv_cache.ipynb": b"2",
        "Ada_9_assignsubmission_file__77_assignsubmission_file_/kv_cache.ipynb": b"3",
        "Ada_9_assignsubmission_file_/kv_cache.ipynb": b"4",
        "Grace/kv_cache.ipynb": b"5",
        "grace./kv_cache.ipynb": b"6",
        "curie_5_6_kv_cache.ipynb": b"7",
        "curie_8_9_kv_cache.ipynb": b"8",
        "../emmy/kv_cache.ipynb": b"no",
        "emmy/kv_cache.ipynb": b"9",
        "\N{GRINNING FACE}/kv_cache.ipynb": b"10",
        "!!!/kv_cache.ipynb": b"11",
    }
    found = handed_in(zipped(tmp_path / "z.zip", members), SETS, roster=["Grace", "GRACE", "Zoë", "zoë!"])
    assert sorted(one.content for one in found.submissions if one.content) == sorted(
        content for content in members.values() if content != b"no"
    )
    ids = {one.content: one.student for one in found.submissions}
    assert (ids[b"1"], ids[b"2"], ids[b"4"], ids[b"9"]) == ("john-smith~101", "john-smith~202", "ada", "emmy")
    assert ids[b"3"].startswith("ada-9-assign")
    assert {ids[content].partition("~")[0] for content in (b"5", b"6", b"7", b"8", b"10", b"11")} == {
        "grace",
        "curie",
        "",
    }
    assert len({one.student for one in found.submissions}) == 13, "eleven who handed in, and both who are called Zoë"
    assert all("people are called grace" in one.problem for one in found.submissions if "grace" in one.student)
    assert any("no letter" in one.problem for one in found.submissions)
    assert found.left_out == ("'../emmy/kv_cache.ipynb' leads out of the zip",)


def test_what_is_handed_in_is_read_one_file_at_a_time(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"s{number}").mkdir()
        with (tmp_path / f"s{number}" / "kv_cache.ipynb").open("wb") as file:
            file.truncate(20_000_000)  # a file with a hole: large to whoever reads it
    tracemalloc.start()
    try:
        found = handed_in(tmp_path, SETS)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        assert [len(one.content or b"") for one in found.submissions] == [20_000_000] * 12
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()


def test_a_small_file_that_would_fill_the_memory_is_refused_unread() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UnparsableError, match="lists and objects"):
            parsed(b'{"nbformat": 4, "cells": [' + b"[]," * 1_500_000 + b"0]}")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"ada/essay.ipynb": b"1"}, "no notebook of a drill set"),
        ({"a/kv_cache.ipynb": b"1", "a/all_reduce.ipynb": b"1"}, "--set all_reduce says which"),
    ],
)
def test_what_cannot_be_graded_is_refused_in_one_sentence(tmp_path: Path, members: dict[str, bytes], told: str) -> None:
    with pytest.raises(ValueError, match=told) as refusal:
        handed_in(zipped(tmp_path / "z.zip", members), SETS)
    assert "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match="does not exist"):
        handed_in(tmp_path / "nowhere", SETS)
    (tmp_path / "x.zip").write_bytes(b"PK not a zip")
    with pytest.raises(ValueError, match="neither a notebook"):
        handed_in(tmp_path / "x.zip", SETS)


def test_a_students_name_is_read_from_what_platforms_make_of_it() -> None:
    assert person("a_b_c/kv_cache.ipynb") == Person("a_b_c", "a_b_c")
    assert person("kv_cache.ipynb").name == "kv_cache"


def test_the_id_cell_is_the_students_own() -> None:
    made = transplanted(released(SET), signed(released(SET), student="ada"))
    (cell,) = [cell for cell in made["cells"] if cell["id"] == "who"]
    assert "student = 'ada'" in source(cell)
    assert mark(cell, "grade_id") is None
    one = asked(SET)["one-token"]
    assert right_number(one, student="ada") != right_number(one, student="grace")
