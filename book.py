#!/usr/bin/env python3
"""Three Loops on your machine, by one command.

    python3 book.py                 set up if needed, then open the book's start page in JupyterLab
    python3 book.py 2 | roofline    open at a part, by number (1.2: chapter 1, part 2) or by a word of its title
    python3 book.py drills/kv_cache open a graded drill set
    python3 book.py chapters/1_inner_loop           open a whole chapter in one notebook; long ones are slow
    python3 book.py drill           questions in the terminal; installs only the small packages
    python3 book.py progress        how you are doing: by topic, by slip, what is due
    python3 book.py sheet interview one page of numbers or formulas, to print or read
    python3 book.py quiz TOPIC      a printable quiz with its key, in as many versions as a class needs
    python3 book.py grade PATH      grade your drill set (my/drills/kv_cache), or a class's folder or zip
    python3 book.py classroom VERB  a term with a class: roster, sets, hand-ins, marks, syllabus, exams (TEACHING.md)
    python3 book.py reset PART      start a part's notebook afresh; the old one is kept aside
    python3 book.py site            the whole book as a folder of pages, build/site; --serve shows it
    python3 book.py setup           only install; --hub: with what a class's hub needs (TEACHING.md)
    python3 book.py test            install and run the tests: twenty minutes on two cores; other words go to pytest
    python3 book.py test --fast     at every save: what the change since the last commit touches
    python3 book.py test --quick    before a commit: few seeds, and nothing that takes long; two and a half minutes
    python3 book.py test --thorough all that takes turns, and all seeds of every drill; an hour

Options: --no-browser (print the address, open nothing), --no-torch (leave out the one large package), --teach (show
nbgrader's menus and buttons).
On Windows write `py book.py`. Nothing is installed outside this folder.
"""

import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
MARK = VENV / "three-loops.json"  # written last: a set-up that was interrupted has none
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # Linux builds of torch without 2.7 GB of CUDA libraries
LEVELS = ("drill", "book", "site", "test")  # each contains the one before
LIGHT = ("drill", "progress", "history", "sheet", "quiz")  # what the small packages are enough for
DISK_BYTES = {"drill": 3e8, "book": 2.5e9, "site": 3e9, "test": 3e9}
CUDA_DISK_BYTES = 8e9
MOST_WORKERS = 4  # each loads torch, and some measure time: more would get into each other's way
# program that a test needs -> Debian package
SYSTEM_PACKAGES = {
    "bwrap": "bubblewrap",
    "chromium": "chromium",
    "faketime": "faketime",
    "g++": "g++",
    "openssl": "openssl",
    "pg_lsclusters": "postgresql",
    "pgrep": "procps",
    "python3-config": "python3-dev",
}
# Chromium without its windows: half the work. Not every system has it, and the tests do without.
QUICKER_BROWSER = "chromium-headless-shell"


def stop(sentence):
    print("book.py: " + sentence, file=sys.stderr)
    sys.exit(2)


def check_python():
    if sys.version_info < (3, 11):
        stop(
            f"Three Loops needs Python 3.11 to 3.14, and this is {platform.python_version()}; install one from"
            " python.org and run it on book.py."
        )


def torch_refusal():
    """Why this machine cannot have the pinned torch, or an empty string."""
    machine = platform.machine().lower()
    if sys.version_info >= (3, 15):
        return f"torch has no build yet for Python {sys.version_info[0]}.{sys.version_info[1]} (3.11 to 3.14 have one)"
    if sys.platform == "darwin" and machine == "x86_64":
        return "torch no longer has a build for Intel Macs"
    if sys.platform == "win32" and machine not in ("amd64", "x86_64"):
        return "torch has no build for Windows on ARM"
    return ""


def stamp():
    """Changes when the pinned packages or the Python do."""
    content = b"".join((ROOT / name).read_bytes() for name in ("requirements.lock", "pyproject.toml"))
    return hashlib.sha256(content + platform.python_version().encode()).hexdigest()[:16]


def mark():
    """What the last finished set-up wrote: {} if there was none."""
    try:
        return json.loads(MARK.read_text())
    except (OSError, ValueError):
        return {}


def run(*command, cwd=ROOT):
    """Exit code of a command, its output shown; Ctrl-C ends both."""
    return subprocess.call([str(word) for word in command], cwd=cwd and str(cwd))


def hand_over(*command):
    """Exit code of a command that answers Ctrl-C itself, and takes a moment to close."""
    process = subprocess.Popen([str(word) for word in command])
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def quietly(*command):
    """Exit code of a command that says nothing unless it fails: what pip and uv warn of (root, caches, links) stops
    nobody.
    """
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=str(ROOT),
        check=False,
    )
    if done.returncode in (-signal.SIGINT, 128 + signal.SIGINT):  # a Ctrl-C that it had first
        raise KeyboardInterrupt
    if done.returncode:
        print(done.stdout[-2000:], file=sys.stderr)
    return done.returncode


def beside(*command):
    """Begin a command beside the next ones; what is returned waits for its end, shows its output and gives its exit
    code.
    """
    process = subprocess.Popen(
        [str(word) for word in command], cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )

    def finished():
        said, _ = process.communicate()
        print(said.decode("utf-8", "replace"), end="", flush=True)
        return process.returncode

    return finished


def make_venv():
    print("Making a Python environment in .venv ...", flush=True)
    if quietly(sys.executable, "-m", "venv", "--clear", VENV):
        shutil.rmtree(str(VENV), ignore_errors=True)
        hint = " (on Debian and Ubuntu: apt install python3-venv)" if sys.platform == "linux" else ""
        stop(f"this Python cannot make a virtual environment; install its venv module{hint} and try again.")


def install(level):
    """The pinned packages of a level. uv where it can be had, because it is ten times faster; pip where not. True
    when it worked.
    """
    extras = {"drill": "", "book": "[book]", "site": "[book,site]", "test": "[book,site,machines,hub,test]"}[level]
    line = " (on a slow line this is the long part)" if level != "drill" else ""
    print(f"Installing packages{line} ...", flush=True)
    quiet = ("-qq", "--disable-pip-version-check", "--retries", "1")
    packages = ("-c", "requirements.lock", "-e", "." + extras)
    get_uv = [str(PYTHON), "-m", "pip", "install", *quiet, "-c", "requirements.lock", "uv"]
    fast = subprocess.run(get_uv, capture_output=True, cwd=str(ROOT), check=False).returncode == 0
    if fast and quietly(PYTHON, "-m", "uv", "pip", "install", "--quiet", "--python", PYTHON, *packages) == 0:
        return True
    slow = subprocess.run(
        [str(PYTHON), "-m", "pip", "install", *quiet, *packages],
        capture_output=True,
        text=True,
        cwd=str(ROOT),
        check=False,
    )
    if slow.returncode and re.search(
        "NewConnectionError|Failed to establish|Cannot connect to proxy|Could not find a version", slow.stderr
    ):
        print(
            "book.py: no package registry answers from here; is there a network? The executed chapters can be read"
            " without any of this.",
            file=sys.stderr,
        )
    elif slow.returncode:
        print(slow.stderr[-2000:], file=sys.stderr)
    return slow.returncode == 0


def install_hub(python):
    """What `threeloops classroom init` needs, all compiled: the students, who cannot write here, would each do it
    anew.
    """
    print("Installing the hub ...", flush=True)
    packages = ("--compile-bytecode", "-c", "requirements.lock", "-e", ".[book,hub]")
    if quietly(python, "-m", "uv", "pip", "install", "--quiet", "--python", python, *packages):
        stop("the hub's packages could not be installed; is there a network? Run the same command again.")
    let_all_read()


def install_torch():
    """The pinned torch, small where a small build can be had, and never several GB without a word. True when torch is
    there.
    """
    have = subprocess.run(
        [str(PYTHON), "-c", "import importlib.metadata as m; print(m.version('torch'))"],
        capture_output=True,
        text=True,
        check=False,
    )
    if have.returncode == 0:
        return True  # whatever build the reader has, it stays
    wanted = re.search(r'"(torch==[^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")).group(1)
    gpu = shutil.which("nvidia-smi") is not None
    command = [str(PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check", wanted]
    if sys.platform == "linux" and not gpu:
        command += ["--retries", "1", "--extra-index-url", CPU_INDEX]
    print("Looking for torch ...", flush=True)
    plan = subprocess.run([*command, "--dry-run", "--report", "-"], capture_output=True, text=True, check=False)
    try:
        names = {row["metadata"]["name"].lower() for row in json.loads(plan.stdout)["install"]}
    except ValueError:
        print(
            "book.py: torch cannot be had from here; the book opens with recorded results in place of measurements.",
            file=sys.stderr,
        )
        return False
    if any(name.startswith("nvidia-") for name in names):
        if shutil.disk_usage(str(ROOT)).free < CUDA_DISK_BYTES:
            print(
                "book.py: only torch's CUDA build can be had here and the disk is too full for it (8 GB); going on"
                " without torch.",
                file=sys.stderr,
            )
            return False
        reason = "For your NVIDIA GPU" if gpu else "No CPU build of torch can be reached from here, so"
        print(reason + " torch comes with its CUDA libraries: about 2.7 GB to download, 5 GB on disk.")
        if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # begun in the background: nobody's Ctrl-C comes here
            print("`book.py --no-torch` opens the book without it.", flush=True)
        else:
            print("Ctrl-C within 10 seconds stops; `book.py --no-torch` opens the book without it.", flush=True)
            time.sleep(10)
    print("Installing torch ...", flush=True)
    return quietly(*command) == 0


def middleware_builds():
    """Whether the pinned middleware has a build for this kind of machine."""
    return (sys.platform, platform.machine().lower()) in (("linux", "x86_64"), ("win32", "amd64"), ("darwin", "arm64"))


def install_middleware():
    """The pinned middleware, where it has a build; without it a part shows its recorded run. True when it is there."""
    wanted = re.search(r'"(iceoryx2==[^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")).group(1)
    command = ("-m", "pip", "install", "-qq", "--disable-pip-version-check", "--retries", "1", "--only-binary", ":all:")
    done = middleware_builds() and subprocess.run(
        [str(PYTHON), *command, "-c", "requirements.lock", wanted],
        capture_output=True,
        text=True,
        cwd=str(ROOT),
        check=False,
    )
    if done and done.returncode == 0:
        return True
    if os.environ.get("CI") == "true" and (sys.platform, platform.machine()) == ("linux", "x86_64"):
        stop(f"{wanted} could not be installed, and the tests need it here: {done.stderr[-2000:]}")
    why = "cannot be had from here" if done else "has no build here"
    print(f"book.py: iceoryx2 {why}: part 9 of chapter 4 shows its recorded run.", file=sys.stderr)
    return False


def let_all_read():
    """Root runs students' code as another user, who is to read what is installed: with umask 077, here or when a
    package first came into uv's cache, it could not.
    """
    if os.name != "nt" and os.geteuid() == 0:
        quietly("chmod", "-R", "go+rX", VENV)


def set_up(level, with_torch):
    """Bring .venv to at least this level; a second call costs one small file."""
    done = mark()
    fresh = done.get("stamp") == stamp() and PYTHON.exists()
    enough = LEVELS.index(done.get("level", "drill")) >= LEVELS.index(level)
    refusal = torch_refusal() if level != "drill" else ""
    torch_settled = level == "drill" or not with_torch or refusal or done.get("torch")
    middleware_settled = level == "drill" or not middleware_builds() or done.get("middleware")
    if fresh and enough and torch_settled and middleware_settled:
        return
    if refusal and with_torch:
        print(f"book.py: {refusal}. The book opens all the same: recorded results stand where measurements would.")
    if shutil.disk_usage(str(ROOT)).free < DISK_BYTES[level]:
        stop(
            f"this needs {DISK_BYTES[level] / 1e9:.1f} GB of free disk; `book.py drill` needs 0.3 GB, `--no-torch`"
            " saves one."
        )
    if not done or not PYTHON.exists() or done.get("python") != platform.python_version():
        make_venv()
    level = max(level, done.get("level", "drill"), key=LEVELS.index)
    MARK.unlink(missing_ok=True)
    if not install(level):
        if done and PYTHON.exists():
            MARK.write_text(json.dumps(done))
            print(
                "book.py: the packages could not be brought up to date; going on with those that are installed.",
                file=sys.stderr,
            )
            return
        stop("the packages could not be installed; what was fetched is kept, so run the same command again.")
    torch = bool(done.get("torch"))
    if level != "drill" and with_torch and not refusal:
        torch = install_torch()
    middleware = level != "drill" and install_middleware()
    let_all_read()
    reached = {"level": level, "stamp": stamp(), "python": platform.python_version()}
    MARK.write_text(json.dumps({**reached, "torch": torch, "middleware": middleware}))


def here():
    """The running Python, if this book is already installed in it (a conda environment, say); else None."""
    spec = importlib.util.find_spec("threeloops")
    return Path(sys.executable) if spec and spec.origin and ROOT in Path(spec.origin).resolve().parents else None


def system_packages():
    """On a CI machine, and only there, install the programs that tests need."""
    if os.environ.get("CI") != "true" or not shutil.which("apt-get"):
        return
    missing = [package for program, package in SYSTEM_PACKAGES.items() if not shutil.which(program)]
    quicker = [] if shutil.which(QUICKER_BROWSER) else [QUICKER_BROWSER]
    if missing or quicker:
        run("apt-get", "update", "-qq")
    install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
    if missing and run(*install, *missing):
        stop("the system packages that the tests need could not be installed: " + " ".join(missing))
    if quicker and run(*install, *quicker):
        print(f"book.py: there is no {QUICKER_BROWSER} for this system; the tests take Chromium.", file=sys.stderr)


def workers(arguments):
    """How pytest is told to use the cores; nothing where the words say it themselves, or ask for a debugger, which
    needs the terminal to itself.
    """
    told = ("-n", "--numprocesses", "--dist", "-p", "--pdb", "--trace", "-s", "--co", "--collect-only")
    cores = min(os.cpu_count() or 1, MOST_WORKERS)
    if cores == 1 or any(word.split("=")[0] in told or re.match("-n[0-9]", word) for word in arguments):
        return ()
    # the order is that of tests/conftest.py: what takes long first
    return ("-n", str(cores), "--dist", "loadgroup", "--no-loadscope-reorder")


def test(python, arguments):
    """Format, lint, types, tests: every one runs, and one failure fails the whole. Types are checked beside the
    tests, and told after them.
    """
    amounts = [word for word in ("--fast", "--quick", "--thorough") if word in arguments]
    if len(amounts) > 1:
        stop(f"test {amounts[0]} leaves out what test {amounts[1]} adds; choose one of them.")
    fast = amounts == ["--fast"]
    if not fast:
        system_packages()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of small processes: each would compile the library anew
    formats = [run(python, "-m", "ruff", *words) for words in (("format", "--check", "."), ("check", "."))]
    types = beside(python, "-m", "mypy") if not fast else lambda: 0
    tests = run(python, "-m", "pytest", *workers(arguments), *arguments)
    return max([*formats, tests, types()])


def main(words):
    check_python()
    with_torch = "--no-torch" not in words
    with_hub = "--hub" in words and "setup" in words
    words = [word for word in words if word != "--no-torch" and not (with_hub and word == "--hub")]
    verb = (
        words[0]
        if words and words[0] in ("setup", "test", *LIGHT, "grade", "classroom", "reset", "site", "-h", "--help")
        else "open"
    )
    if verb in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    python = here()
    if python is None:
        level = verb if verb in LEVELS else "drill" if verb in LIGHT else "book"
        set_up(level, with_torch and verb != "site")
        python = PYTHON
    if verb == "setup" and with_hub:
        install_hub(python)
    if verb == "setup":
        print(f"Ready. `{'py' if os.name == 'nt' else 'python3'} book.py` opens the book.")
        return 0
    if verb == "test":
        return test(python, words[1:])
    command = [str(python), "-m", "threeloops", *(words if verb != "open" else ["open", *words])]
    if os.name == "nt":
        return hand_over(*command) if verb == "open" else run(*command, cwd=None)
    sys.stdout.flush()
    return os.execv(command[0], command)  # in place of this process: signals reach the one that works


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nbook.py: interrupted; the next run takes up where this one stopped.", file=sys.stderr)
        sys.exit(130)
