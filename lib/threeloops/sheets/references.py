"""Every source of the book: papers by their numbers, books and manuals by their names, pages of the catalogue.

Nothing here is typed. Papers are found in what the library's modules say about themselves and about their drills;
pages in the catalogue. So the list holds what the book really uses, and a wrong number stands where it can be found.
"""

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.sheets.layout import Page, Table
from threeloops.sheets.stated import fields

LIB = Path(__file__).resolve().parents[1]
NUMBERED = re.compile(r"(arXiv:\d{4}\.\d{4,5}|doi:10\.\d{4,}/[^\s,;()]+)")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
# Where in a source something stands, and what a list calls it: the list of sources names the source alone.
PLACE = re.compile(
    r", (?:sections?|tables?|equations?|appendix|theorems?|algorithms?|figures?|chapters?|pages?|pp\.|as above)\b.*$"
    r"| \([^)]*$|^[A-Z][a-z ]{3,20}: (?=[A-Z])"
)
ROWS_A_PAGE = 36


@functools.cache
def found() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Source -> (as the book cites it most fully, the modules that do). A paper is known by its number."""
    cited: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(path for path in LIB.rglob("*.py") if path.parent.name != "sheets"):
        module = ".".join(path.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")
        for text in _texts(path):
            for one in _single(text):
                number = NUMBERED.search(one)
                cited[number[0].rstrip(".") if number else _bare(one)].append((_bare(one), module))
    return {
        key: (max((said for said, _ in told), key=len), tuple(dict.fromkeys(module for _, module in told)))
        for key, told in cited.items()
    }


def _texts(path: Path) -> list[str]:
    """Fields named Source of all docstrings; elsewhere, text that names a paper by its number."""
    texts = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            texts.append(fields(ast.get_docstring(node)).get("Source", ""))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            texts += [node.value] if NUMBERED.search(node.value) and YEAR.search(node.value) else []
    return texts


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
    """Papers, by number, the oldest first."""
    rows = sorted(
        ((YEAR.findall(NUMBERED.sub("", said))[-1], said, _rooms(modules)) for said, modules in _with_number(True))
    )
    return Table(title="Papers", head=("year", "paper", "used in"), rows=tuple(rows))


def manuals() -> Table:
    """Books, manuals and pages of documentation that modules cite."""
    rows = sorted((said, _rooms(modules)) for said, modules in _with_number(False))
    return Table(title="Books, manuals, documentation", head=("source", "used in"), rows=tuple(rows))


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


def _with_number(numbered: bool) -> list[tuple[str, tuple[str, ...]]]:
    every = [said for said, _ in found().values()]
    return [
        told
        for key, told in found().items()
        if bool(NUMBERED.fullmatch(key)) == numbered and (numbered or not _meant_elsewhere(told[0], every))
    ]


def _meant_elsewhere(said: str, every: list[str]) -> bool:
    """Whether this is only the short form ("Higham, 1993") of something that is cited in full."""
    surname, years = re.split(r"[ ,]", said)[0], YEAR.findall(said)
    return any(len(other) > len(said) and other.startswith(surname) and years and years[-1] in other for other in every)


def _rooms(modules: tuple[str, ...]) -> str:
    """At most three modules by name, then how many more."""
    short = [module.rpartition(".")[2] for module in modules]
    return ", ".join(short[:3]) + (f" and {len(short) - 3} more" if len(short) > 3 else "")


def pages() -> tuple[Page, ...]:
    """All lists, cut into printed pages."""
    return tuple(
        Page(
            title=f"Sources: {table.title.lower()}, {start // ROWS_A_PAGE + 1}",
            intro="Made from what the library's modules cite and from the catalogue; nothing on this page is typed.",
            tables=(Table(title="", head=table.head, rows=table.rows[start : start + ROWS_A_PAGE]),),
        )
        for table in (papers(), manuals(), pages_read())
        for start in range(0, len(table.rows), ROWS_A_PAGE)
    )
