"""Models that are trained here once and kept for whoever asks next: the reader's other notebooks, or the next part.

The copies lie in my/models/. A file's name carries what the model was made from (a digest of its recipe, torch,
Python), so that an old one is never mistaken for a new one. Whoever asks second, in this process or another, waits for
the first one's training and takes its copy.
"""

import hashlib
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

KEPT = Path(__file__).resolve().parents[3] / "my" / "models"  # the reader's folder of the book, which git ignores


def digest(words: object) -> str:
    """Changes when anything changes that a model is made from."""
    return hashlib.sha256(repr(words).encode()).hexdigest()[:8]


def path(folder: Path, name: str, recipe_digest: str) -> Path:
    """Where a model's copy lies, whether or not it is there yet."""
    versions = f"torch{torch.__version__.partition('+')[0]}-py{platform.python_version()}"
    return folder / f"{name}-{recipe_digest}-{versions}.pt"


def make_sure_of(kept: Path, make: Callable[[], dict[str, Any]], *, said: str) -> None:
    """Make what has no copy yet, saying so on the line that has been begun, and put the file in its place at once:
    nobody ever reads half a file.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(kept.with_suffix(".lock")):
        if not kept.exists():
            print(f"({said} …)", end=" ", flush=True)
            unfinished = kept.with_suffix(".part")
            torch.save(make(), unfinished)
            unfinished.replace(kept)


def loaded(kept: Path) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(kept, weights_only=True)
    return found
