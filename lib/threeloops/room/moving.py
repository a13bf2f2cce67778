"""Attempts on the move: written as JSON or CSV, and read back by whoever has the file."""

import contextlib
import csv
import json
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from threeloops import units
from threeloops.room.attempts import Attempt
from threeloops.room.history import History, HistoryError

NUMBERS: dict[str, Callable[[Any], Any]] = {
    "position": int,
    "hints": int,
    "seconds": float,
    "target_s": float,
    "extra": float,
    "at_s": float,
    "share": float,
    "sure": lambda written: None if written in (None, "") else float(written),
}
NAMES = [field.name for field in fields(Attempt)]


def export(history: History, path: Path) -> int:
    """Write every attempt to a .json or .csv file; how many."""
    return _write(history.attempts(desk=True), path)


def rescue(history: History) -> str:
    """Write what the history has not taken yet: into it, or else into a side file that can be imported later. What
    happened, in a sentence; empty when nothing waited.
    """
    if not history.waiting:
        return ""
    try:
        history.write_waiting()
        return f"Everything is kept now in {history.path}."
    except HistoryError as error:
        for folder in (history.path.parent, Path.home(), Path(tempfile.gettempdir())):
            with contextlib.suppress(OSError):
                return f"{error}. {_set_aside(history.waiting, folder)}"
        return (
            f"{error}. {units.counted(len(history.waiting), 'answer')} could be kept nowhere: no folder takes a file."
        )


def _set_aside(attempts: Sequence[Attempt], folder: Path) -> str:
    path = folder / f"three-loops-answers-{secrets.token_hex(4)}.json"
    try:
        _write(attempts, path)
        read(path)  # a full disk can leave half a file without a word
    except (OSError, ValueError) as error:
        path.unlink(missing_ok=True)
        raise OSError(str(error)) from error
    return (
        f"{units.counted(len(attempts), 'answer')} set aside in {path}; `python3 book.py history import {path}` takes"
        " them in."
    )


def _write(attempts: Sequence[Attempt], path: Path) -> int:
    rows = [asdict(attempt) for attempt in attempts]
    if _kind(path) == "json":
        path.write_text(
            json.dumps({"threeloops_attempts": 1, "attempts": rows}, indent=1, ensure_ascii=False) + "\n",
            encoding="utf-8",
        )
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, NAMES)
            writer.writeheader()
            writer.writerows(rows)
    return len(rows)


def read(path: Path) -> list[Attempt]:
    """The attempts of a file that `export` wrote.

    Raises: ValueError, naming the file and the row, for anything else
    """
    kind = _kind(path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = json.load(file)["attempts"] if kind == "json" else list(csv.DictReader(file))
    except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
        raise ValueError(
            f"{path} holds no attempts; only a file that `python3 book.py history export FILE` wrote can be imported"
        ) from None
    return [_attempt(row, f"{path}, attempt {number}") for number, row in enumerate(rows, 1)]


def _attempt(row: object, where: str) -> Attempt:
    if isinstance(row, Mapping):
        # files from before answers could be right in part, or said to be sure, have none
        row = {"share": 0.0, "sure": None} | dict(row)
    if not isinstance(row, Mapping) or set(row) != set(NAMES):
        raise ValueError(f"{where}: expected the fields {', '.join(NAMES)}")
    try:
        return Attempt(**{name: NUMBERS.get(name, str)(row[name]) for name in NAMES})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _kind(path: Path) -> str:
    if path.suffix not in (".json", ".csv"):
        raise ValueError(
            f"{path.name} should end in .json or .csv (attempts), or in .apkg (export alone: an Anki deck)"
        )
    return path.suffix[1:]
