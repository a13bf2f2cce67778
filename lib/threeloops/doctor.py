"""What this machine has, and what the book will do without."""

import importlib.metadata
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

# Programs under any of these names count as the thing.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox", "microsoft-edge", "safari")
COMPILERS = ("g++", "clang++", "cl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing the book can use, whether it is here, and what follows."""

    name: str
    found: str  # what was found, in words; empty when nothing was
    without: str  # what the book does without it


def version(package: str) -> str:
    """A package's installed version; empty when it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def first_program(names: tuple[str, ...]) -> str:
    return next((name for name in names if shutil.which(name)), "")


def gpu() -> str:
    """The first NVIDIA GPU as its driver names it, with the memory that the driver reports; empty when there is
    none.
    """
    if not shutil.which("nvidia-smi"):
        return ""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.strip().splitlines()[0] if answer.strip() else ""


def findings(*, look_up: Callable[[str], str] = version) -> list[Finding]:
    """Everything `threeloops doctor` reports, in the order of the book's needs."""
    return [
        Finding(name="Python", found=platform.python_version(), without="nothing works"),
        Finding(name="Three Loops", found=look_up("threeloops"), without="nothing works"),
        Finding(
            name="JupyterLab",
            found=look_up("jupyterlab"),
            without="chapters do not open; the command and the terminal drills work",
        ),
        Finding(name="ipywidgets", found=look_up("ipywidgets"), without="widgets are still pictures"),
        Finding(
            name="nbgrader",
            found=look_up("nbgrader"),
            without="graded notebooks cannot be submitted; checks in the terminal work",
        ),
        Finding(name="numpy", found=look_up("numpy"), without="simulators cannot count"),
        Finding(name="torch", found=look_up("torch"), without="nothing is measured here; recorded results stand in"),
        Finding(
            name="transformers",
            found=look_up("transformers"),
            without="real model classes are not measured; the formulas work",
        ),
        Finding(name="GPU", found=gpu(), without="measurements run on the CPU; recorded GPU results stand beside them"),
        Finding(
            name="C++ compiler",
            found=first_program(COMPILERS),
            without="torch.compile does not run; its cells show recorded results",
        ),
        Finding(
            name="browser",
            found=first_program(BROWSERS),
            without="JupyterLab prints its address for you to open; browser tests are skipped",
        ),
    ]


def report() -> str:
    """The findings as a table for a terminal."""
    rows = [
        (finding.name, finding.found or "not here", "" if finding.found else f"without it: {finding.without}")
        for finding in findings()
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {found:<{widths[1]}}  {note}".rstrip() for name, found, note in rows)
