"""Every source of the book: papers by their numbers, books and manuals by their names, pages of the catalogue.

Citations are not typed: papers are found in what the library's modules say about themselves and about their drills,
pages in the catalogue. So the list holds what the book really uses, and a wrong number stands where it can be found.
What a part takes from a paper is said in `papers`.
"""

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from threeloops.contents import CHAPTERS, book_root, has_book, places
from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.sheets.layout import Folded, Page, Table
from threeloops.sheets.papers import TAKEN
from threeloops.sheets.stated import fields

LIB = Path(__file__).resolve().parents[1]
NUMBERED = re.compile(r"(arXiv:\d{4}\.\d{4,5}|doi:10\.\d{4,}/[^\s,;()]+)")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
# Where in a source something stands, and what a list calls it: the list of sources names the source alone.
PLACE = re.compile(
    r", (?:sections?|tables?|equations?|appendix|theorems?|algorithms?|figures?|chapters?|pages?|pp\.|as above)\b.*$"
    r"| \([^)]*$|^[A-Z][a-z ]{3,20}: (?=[A-Z])"
)
PAPERS_HEAD = ("part", "paper", "what the part takes from it")
ROWS_A_PAGE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A source, once."""

    said: str  # as the book cites it most fully
    modules: tuple[str, ...]


@functools.cache
def found() -> dict[str, Cited]:
    """Every source that the library cites. A paper is known by its number."""
    cited: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(path for path in LIB.rglob("*.py") if path.parent.name != "sheets"):
        module = ".".join(path.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")
        for one in (one for text in _citing(path) for one in _single(text)):
            number = NUMBERED.search(one)
            cited[number[0].rstrip(".") if number else _bare(one)].append((_bare(one), module))
    return {
        key: Cited(
            said=max((said for said, _ in told), key=len), modules=tuple(dict.fromkeys(module for _, module in told))
        )
        for key, told in cited.items()
    }


def _citing(path: Path) -> Iterator[str]:
    """Fields named Source of all docstrings; elsewhere, text that names a paper by its number."""
    written = path.read_text(encoding="utf-8")
    if "Source:" not in written and not NUMBERED.search(written):
        return
    for node in ast.walk(ast.parse(written)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            described = ast.get_docstring(node) or ""
            yield fields(described).get("Source", "") if "Source:" in described else ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _names_paper(node.value):
            yield node.value


def _names_paper(text: str) -> bool:
    return "\n" not in text and bool(NUMBERED.search(text)) and bool(YEAR.search(text))


def _single(text: str) -> list[str]:
    """One citation each: parts between semicolons that have a year and do not begin in the middle of a sentence."""
    bare = re.sub(r"\([^()]*\)", "", text)
    return [
        part.strip() for part in bare.split(";") if YEAR.search(NUMBERED.sub("", part)) and part.strip()[:1].isupper()
    ]


def _bare(citation: str) -> str:
    number = NUMBERED.search(citation)
    whole = PLACE.sub("", citation[: number.end()] if number else citation)
    return re.sub(r"\s+(?=,)|(?<=\s)\s+", "", whole).strip(" .,:")


def papers() -> Table:
    """Papers, chapter by chapter and part by part, and what the part takes from each."""
    rows = tuple(row for table in by_chapter().tables for row in table.rows)
    return Table(title="Papers", head=PAPERS_HEAD, rows=rows)


def by_chapter() -> Folded:
    """The same, a table for each chapter."""
    titled = places(book_root()) if has_book() else []
    named = {part: "" for part in TAKEN} | {f"{place.chapter}.{place.number}": place.title for place in titled}
    tables = {digit: f"Chapter {digit}: {title[0].lower()}{title[1:]}" for digit, title in CHAPTERS.values()}
    rows = {
        digit: tuple(
            (f"{part} {named[part]}".strip(), found()[number].said, use)
            for part, taken in TAKEN.items()
            if part.startswith(digit)
            for number, use in taken.items()
        )
        for digit in tables
    }
    return Folded(
        tables=tuple(
            Table(title=f"{title}, {len(rows[digit])} papers", head=PAPERS_HEAD, rows=rows[digit])
            for digit, title in tables.items()
        )
    )


def manuals() -> Table:
    """Books, manuals and pages of documentation that modules cite."""
    rows = sorted((one.said, _rooms(one.modules)) for one in _unnumbered())
    return Table(title="Books, manuals, documentation", head=("source", "cited in the library by"), rows=tuple(rows))


def pages_read() -> Table:
    """Pages of the catalogue: where its values were read, and when last. `threeloops sources` has their addresses."""
    seen: dict[str, str] = {}
    for key in hardware.part_keys():
        for fact, _unit in hardware.part(key).all_facts().values():
            seen[fact.title] = max(seen.get(fact.title, ""), fact.checked.isoformat())
    for key in catalogue.model_keys():
        entry = catalogue.model_entry(key)
        seen[entry.title] = max(seen.get(entry.title, ""), entry.checked.isoformat())
    return Table(title="Pages of the catalogue", head=("page", "read"), rows=tuple(sorted(seen.items())))


def _unnumbered() -> list[Cited]:
    every = [one.said for one in found().values()]
    return [
        one for key, one in found().items() if not NUMBERED.fullmatch(key) and not _meant_elsewhere(one.said, every)
    ]


def _meant_elsewhere(said: str, every: list[str]) -> bool:
    """Whether this is only the short form ("Higham, 1993") of something that is cited in full."""
    surname, years = re.split(r"[ ,]", said)[0], YEAR.findall(said)
    return any(len(other) > len(said) and other.startswith(surname) and years and years[-1] in other for other in every)


def _rooms(modules: tuple[str, ...]) -> str:
    """At most three modules by name, then how many more."""
    return ", ".join(modules[:3]) + (f" and {len(modules) - 3} more" if len(modules) > 3 else "")


def pages() -> tuple[Page, ...]:
    """All lists, cut into printed pages."""
    return tuple(
        Page(
            title=f"Sources: {table.title.lower()}, {start // ROWS_A_PAGE + 1}",
            intro="Made from what the library cites and from the catalogue. `threeloops open 1.2` opens part 1.2.",
            tables=(Table(title="", head=table.head, rows=table.rows[start : start + ROWS_A_PAGE]),),
        )
        for table in (papers(), manuals(), pages_read())
        for start in range(0, len(table.rows), ROWS_A_PAGE)
    )
