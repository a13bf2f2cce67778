"""Every source of the book: papers by their numbers, books and manuals by their names, pages of the catalogue.

Nothing here is typed. Papers are found in what the library's modules say about themselves and about their drills, and
what each is good for in what the function says that cites it; pages in the catalogue. So the list holds what the book
really uses, and a wrong number stands where it can be found.
"""

import ast
import functools
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
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
# Rooms whose words say what a source is good for, the best first: those of formulas, of counts, of measurements.
ROOMS = (
    *("inner_loop", "training_loop", "product_loop", "driving", "foundations"),
    *("operations", "models", "simulate", "measure"),
)
FEW, FEW_NOTED = 5, 3  # words of a function, and in brackets, that say too little by themselves
ROWS_A_PAGE = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A source, once."""

    said: str  # as the book cites it most fully
    rests: str  # what rests on it, in the words of what cites it
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citing:
    """A place that cites."""

    text: str
    rests: str  # what it says of itself
    module: str
    whole: bool  # a module, not one of its functions

    @property
    def rank(self) -> tuple[int, bool, int]:
        """The lowest says best what a source is good for: a whole module, of a room of formulas."""
        room = self.module.partition(".")[0]
        known = room in ROOMS
        return not known, not self.whole, ROOMS.index(room) if known else 0


@functools.cache
def found() -> dict[str, Cited]:
    """Every source that the library cites. A paper is known by its number."""
    cited: defaultdict[str, list[tuple[str, Citing]]] = defaultdict(list)
    for path in sorted(path for path in LIB.rglob("*.py") if path.parent.name != "sheets"):
        for citing in _citing(path):
            for one in _single(citing.text):
                number = NUMBERED.search(one)
                cited[number[0].rstrip(".") if number else _bare(one)].append((_bare(one), citing))
    return {
        key: Cited(
            said=max((said for said, _ in told), key=len),
            rests=min((citing for _, citing in told), key=lambda citing: citing.rank).rests,
            modules=tuple(dict.fromkeys(citing.module for _, citing in told)),
        )
        for key, told in cited.items()
    }


def _citing(path: Path) -> Iterator[Citing]:
    """Fields named Source of all docstrings; elsewhere, text that names a paper by its number."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = ".".join(path.relative_to(LIB).with_suffix("").parts).removesuffix(".__init__")
    about, cases = says(ast.get_docstring(tree)), _cases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            told, whole = ast.get_docstring(node), isinstance(node, ast.Module)
            own = says(told)
            rests = own if len(own.split()) >= FEW else about
            yield Citing(text=fields(told).get("Source", ""), rests=rests, module=module, whole=whole)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _names_paper(node.value):
            rests = cases.get(node.value) or _noted(node.value) or about
            yield Citing(text=node.value, rests=rests, module=module, whole=False)


def _cases(tree: ast.Module) -> dict[str, str]:
    """Source of a debugging case -> its cause."""
    calls = ({one.arg: one.value for one in node.keywords} for node in ast.walk(tree) if isinstance(node, ast.Call))
    told = ((given.get("source"), given.get("cause")) for given in calls)
    return {
        str(source.value): f"a case: {cause.value!s}"
        for source, cause in told
        if isinstance(source, ast.Constant) and isinstance(cause, ast.Constant)
    }


def _noted(text: str) -> str:
    """What a citation of a single paper says in brackets, if it says enough."""
    numbers = list(NUMBERED.finditer(text))
    notes = re.findall(r"\(([^()]*)\)", text[numbers[0].end() :]) if len(numbers) == 1 else []
    return notes[0] if notes and len(notes[0].split()) >= FEW_NOTED else ""


def _names_paper(text: str) -> bool:
    return "\n" not in text and bool(NUMBERED.search(text)) and bool(YEAR.search(text))


def says(docstring: str | None) -> str:
    """The first sentence of a docstring; of a module's, what stands behind its name.

    >>> says("Tail samples: how many frames to watch. And more.")
    'how many frames to watch'
    """
    first = inspect.cleandoc(docstring or "").partition("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"\.(?= |$)", first)[0]
    return re.sub(r"^[A-Z][\w ,-]{2,30}: (?=[a-z])", "", sentence)


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
        (YEAR.findall(NUMBERED.sub("", one.said))[-1], one.said, one.rests, _rooms(one.modules))
        for one in _with_number(True)
    )
    return Table(title="Papers", head=("year", "paper", "what rests on it here", "used in"), rows=tuple(rows))


def manuals() -> Table:
    """Books, manuals and pages of documentation that modules cite."""
    rows = sorted((one.said, one.rests, _rooms(one.modules)) for one in _with_number(False))
    head = ("source", "what rests on it here", "used in")
    return Table(title="Books, manuals, documentation", head=head, rows=tuple(rows))


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


def _with_number(numbered: bool) -> list[Cited]:
    every = [one.said for one in found().values()]
    return [
        one
        for key, one in found().items()
        if bool(NUMBERED.fullmatch(key)) == numbered and (numbered or not _meant_elsewhere(one.said, every))
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
