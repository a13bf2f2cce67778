"""The student's side of the wall: what it can do, what it cannot, and what ends with it."""

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sandbox.sides import comes_to_be, running_commands, side

from threeloops.sandbox import walls, warm_process
from threeloops.sandbox.kernel import DiedError
from threeloops.sandbox.seccomp import ARCHITECTURES, REFUSED, refusals
from threeloops.sandbox.walls import Limits
from threeloops.sandbox.warm_process import NoStartError

LIBRARY = Path(walls.__file__).parents[2]

needs_walls = pytest.mark.skipif(bool(walls.problem()), reason=f"needs the sandbox: {walls.problem()}")


@pytest.mark.parametrize("sandboxed", [pytest.param(True, marks=needs_walls), False])
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


@needs_walls
def test_the_empty_places_are_mounted_first() -> None:
    """A book cloned below /tmp has its Python there; mounted the other way round, nothing would start."""
    words = walls.command(sandboxed=True)
    assert words.index("--tmpfs") < words.index("--ro-bind")


@needs_walls
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root becomes another user")
def test_packages_that_students_code_could_not_read_are_named(tmp_path: Path) -> None:
    python = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "closed")]
    subprocess.run(python, check=True, preexec_fn=lambda: os.umask(0o077))
    ask = f"import sys; sys.path.append({str(LIBRARY)!r}); from threeloops.sandbox import walls"
    command = [str(tmp_path / "closed" / "bin" / "python"), "-c", f"{ask}; print(walls.problem())"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f"nobody may not read {tmp_path / 'closed'} (chmod -R go+rX" in said
    subprocess.run(["chmod", "-R", "go+rX", str(tmp_path / "closed")], check=True)
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() == ""


@needs_walls
@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("notebook", [True, False])
def test_files_are_made_with_the_usual_rights_whatever_the_graders_are(notebook: bool) -> None:
    before = os.umask(0o077)
    try:
        with side(Limits(), notebook=notebook) as kernel:
            assert kernel.run("import os\nprint(oct(os.umask(0)))")["printed"] == "0o22\n"
    finally:
        os.umask(before)


@needs_walls
@pytest.mark.usefixtures("whoever")
@pytest.mark.parametrize("notebook", [True, False])
def test_what_is_shown_below_tmp_can_be_read_whatever_the_graders_mask(
    notebook: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A book cloned there has its Python there. /tmp is emptied for each student, and the way made again."""
    tmp_path.chmod(0o755)
    (tmp_path / "module.txt").write_text("here")
    (tmp_path / "module.txt").chmod(0o644)
    binds = [*walls._system_binds(), *walls._open_way(tmp_path), "--ro-bind", str(tmp_path), str(tmp_path)]
    monkeypatch.setattr(walls, "_system_binds", lambda: binds)
    before = os.umask(0o077)
    try:
        with side(Limits(), notebook=notebook) as kernel:
            assert kernel.run(f"print(open({str(tmp_path / 'module.txt')!r}).read())")["printed"] == "here\n"
    finally:
        os.umask(before)


@needs_walls
def test_memory_is_counted_over_all_processes() -> None:
    hoarders = (
        "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        hoard = b'x' * 300_000_000\n       "
        " time.sleep(50)\ntime.sleep(50)"
    )
    with side(Limits(total_memory_bytes=600_000_000, cell_s=60)) as kernel, pytest.raises(DiedError):
        kernel.run(hoarders)
    with side(Limits(total_memory_bytes=600_000_000)) as kernel:
        assert not kernel.run("hoard = b'x' * 200_000_000\nimport time; time.sleep(0.5)")["failed"]


@needs_walls
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
        walls._bwrap.cache_clear()
        warm_process.problem.cache_clear()
        warm_process.drop()
        if changes == 0:
            yield
            monkeypatch.undo()


@needs_walls
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


@needs_walls
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


@needs_walls
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


def test_a_side_that_does_not_start_is_no_fault_of_the_student(monkeypatch: pytest.MonkeyPatch) -> None:
    warm_process.problem()  # asked before it breaks
    monkeypatch.setattr(walls, "command", lambda **_: [sys.executable, "-c", "pass"])
    warm_process.drop()
    with pytest.raises(NoStartError, match="did not start"):
        side(Limits())
