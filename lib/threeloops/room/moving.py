"""Attempts on the move: written as JSON or CSV, and read back by whoever has the file."""

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

from threeloops.room.history import Attempt, History

NUMBERS = {"position": int, "hints": int, "seconds": float, "target_s": float, "extra": float, "at_s": float}
NAMES = [field.name for field in fields(Attempt)]


def export(history: History, path: Path) -> int:
    """Write every attempt to a .json or .csv file; how many."""
    rows = [asdict(attempt) for attempt in history.attempts()]
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
            f"{path} holds no attempts; only a file that `threeloops history export` wrote can be imported"
        ) from None
    return [_attempt(row, f"{path}, attempt {number}") for number, row in enumerate(rows, 1)]


def _attempt(row: object, where: str) -> Attempt:
    if not isinstance(row, Mapping) or set(row) != set(NAMES):
        raise ValueError(f"{where}: expected the fields {', '.join(NAMES)}")
    try:
        return Attempt(**{name: NUMBERS.get(name, str)(row[name]) for name in NAMES})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _kind(path: Path) -> str:
    if path.suffix not in (".json", ".csv"):
        raise ValueError(f"{path.name} should end in .json or .csv")
    return path.suffix[1:]
