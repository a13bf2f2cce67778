"""Facts: a number with everything needed to check it, and the files they are read from.

catalog/FORMAT.md describes the files. A reader's own parts and models overlay the shipped ones, under the same
checks: pass a path, or name it in the environment variable THREELOOPS_CATALOG.
"""

import datetime
import functools
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops import checks

KINDS = ("datasheet", "paper", "reported", "measured", "derived", "estimate")
OVERLAY_VARIABLE = "THREELOOPS_CATALOG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value as a source gives it."""

    value: float  # base SI
    printed: str  # the figure as the source prints it
    kind: str  # one of KINDS
    title: str
    url: str
    checked: datetime.date
    note: str = ""
    opened: str = ""  # the copy that was read, where that was not the page itself

    def __post_init__(self) -> None:
        checks.positive(value=self.value)
        checks.one_of(KINDS, kind=self.kind)
        if self.kind in ("derived", "estimate") and not self.note:
            raise ValueError(f"kind={self.kind!r} needs a note that shows the arithmetic or the reason")
        if not isinstance(self.checked, datetime.date):
            raise ValueError(f"checked={self.checked!r} must be a date, like 2026-11-21 without quotation marks")
        if not str(self.url).startswith(("https://", "http://", "doi:", "arXiv:", "arxiv:")):
            raise ValueError(f"url={self.url!r} must be a web address or a DOI")


def read_fact(row: Mapping[str, Any], sources: Mapping[str, Any], *, where: str) -> Fact:
    """One row of a catalogue file as a Fact; a defect in the row is refused with its place."""
    try:
        checks.table(fact=row, sources=sources)
        unknown = set(row) - {"value", "printed", "kind", "source", "note"}
        if unknown:
            raise ValueError(f"unknown field {sorted(unknown)[0]!r}; known: value, printed, kind, source, note")
        missing = [field for field in ("value", "printed", "kind", "source") if field not in row]
        if missing:
            raise ValueError(f"{missing[0]!r} is missing; a fact needs value, printed, kind and source")
        checks.one_of(sources, source=row["source"])
        source = sources[row["source"]]
        checks.table(**{str(row["source"]): source})
        return Fact(
            value=row["value"],
            printed=str(row["printed"]),
            kind=row["kind"],
            note=row.get("note", ""),
            title=source["title"],
            url=source["url"],
            checked=source["checked"],
            opened=source.get("opened", ""),
        )
    except KeyError as error:
        raise ValueError(f"{where}: its source lacks {error}; a source needs title, url and checked") from error
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


@functools.cache
def _shipped() -> tuple[tuple[str, dict[str, Any]], ...]:
    """The catalogue files that come with the library, in name order."""
    files = sorted(Path(__file__).with_name("catalog").glob("*.toml"))
    return tuple((entry.name, tomllib.loads(entry.read_text(encoding="utf-8"))) for entry in files)


def read_overlay(path: str | Path) -> dict[str, Any]:
    """A reader's own catalogue file.

    Raises ValueError, in one sentence, when the file is missing or is not TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(
            f"catalogue {str(path)!r} cannot be read ({error.strerror}); give the path of a TOML file"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"catalogue {str(path)!r} is not TOML: {error}") from error


TABLES = ("sources", "parts", "models", "convnets", "compute_capabilities", "layouts", "frame_rates")


def _known_tables(content: dict[str, Any], name: str) -> dict[str, Any]:
    """The content, once its outline is what a catalogue's must be."""
    for table, rows in content.items():
        try:
            checks.one_of(TABLES, table=table)
            checks.table(**{table: rows})
            checks.table(**{f"{table}.{key}": row for key, row in rows.items()})
        except ValueError as error:
            raise ValueError(f"catalogue {name!r}: {error}") from error
    return content


def catalogue_files(overlay: str | Path | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """(file name, content) of every catalogue file; the reader's own overlay comes last, so that it wins."""
    yield from _shipped()
    path = overlay or os.environ.get(OVERLAY_VARIABLE)
    if path:
        yield Path(path).name, _known_tables(read_overlay(path), str(path))
