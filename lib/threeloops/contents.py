"""The book's table of contents, read from the chapters themselves: which part stands where, and where an idea is
taught.
"""

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

CHAPTERS = {
    "inner": ("1", "The inner loop"),
    "training": ("2", "The training loop"),
    "product": ("3", "The product loop"),
    "driving": ("4", "The driving case study"),
}
STARTER = "first_steps"  # the drill set to begin with: short, and of all loops
PART_HEADING = re.compile(r"^## (?:(?P<number>[0-9A-Z]+) )?(?P<title>.*?)(?: · (?P<minutes>\d+) min)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A part of a chapter: which notebook, which heading."""

    notebook: str  # relative to the book's root
    chapter: str  # "1"
    number: str  # "2"; empty for an unnumbered part
    title: str
    minutes: int  # 0 where the heading does not say
    heading: str  # the heading's whole text, without ##
    cell: str  # id of the cell that holds the heading
    card: str  # what that cell says below it: question, what one needs, minutes

    @property
    def name(self) -> str:
        """What the part is called in one line: "1.2 Roofline"."""
        return f"{self.chapter}.{self.number} {self.title}" if self.number else self.title

    @property
    def copy(self) -> str:
        """The reader's notebook of this part, below my/: "chapters/1_inner_loop/2_roofline.ipynb"."""
        slug = re.sub(r"[^a-z0-9]+", "_", self.title.lower()).strip("_")
        return f"{PurePosixPath(self.notebook).with_suffix('')}/{f'{self.number}_{slug}'.strip('_')}.ipynb"


_ROOT = Path(__file__).resolve().parents[2]


def has_book() -> bool:
    """Whether the chapters stand beside the library: in a clone of the book, and not where the library alone is
    installed.
    """
    return (_ROOT / "chapters").is_dir()


def book_root() -> Path:
    """The folder that holds the book: chapters/, drills/, my/.

    Raises: ValueError where the library is installed without the book
    """
    if not has_book():
        raise ValueError(
            "this needs the book itself, and here is the library alone: clone its repository, and run `python3 book.py`"
            " there; calculations, drill, progress, history, sheet and quiz work without it"
        )
    return _ROOT


def reader_folder() -> Path:
    """Where what a reader leaves is kept: my/ in the book, or .threeloops in the reader's home without it."""
    return _ROOT / "my" if has_book() else Path.home() / ".threeloops"


def places(root: Path) -> list[Place]:
    """Every part of every chapter, in reading order."""
    return [place for path in sorted(root.glob("chapters/*.ipynb")) for place in _of_chapter(path, root)]


def _of_chapter(path: Path, root: Path) -> tuple[Place, ...]:
    state = path.stat()
    return _read(path, path.relative_to(root).as_posix(), (state.st_mtime_ns, state.st_size))


@functools.lru_cache(maxsize=16)
def _read(path: Path, notebook: str, _as_it_is: tuple[int, int]) -> tuple[Place, ...]:
    """The parts of one chapter, read again when its file has changed: a chapter with its outputs is megabytes."""
    return tuple(
        Place(
            notebook=notebook,
            chapter=path.name.split("_")[0],
            number=match["number"] or "",
            title=match["title"],
            minutes=int(match["minutes"] or 0),
            heading=match[0].removeprefix("## "),
            cell=cell["id"],
            card="".join(cell["source"])[match.end() :].strip(),
        )
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "markdown"
        for match in PART_HEADING.finditer("".join(cell["source"]))
    )


def find_place(word: str, root: Path) -> Place:
    """The part that a reader means by "2", "1.2" or "roofline".

    Raises:   ValueError, listing what there is, for a word that fits no part or several
    """
    everything = places(root)
    asked = word.strip().lower()
    fits = [place for place in everything if asked in (f"{place.chapter}.{place.number}".lower(), place.number.lower())]
    fits = fits or [place for place in everything if asked and asked in place.title.lower()]
    if len(fits) == 1:
        return fits[0]
    listing = "; ".join(f"{place.chapter}.{place.number} {place.title}" for place in fits or everything)
    problem = f"{len(fits)} parts fit {word!r}" if fits else f"no part is called {word!r}"
    raise ValueError(f"{problem}; choose one of: {listing}")


def in_commands(text: str) -> str:
    """A text with its commands as they are typed here: `threeloops drill` where there is no book.py."""
    return text if has_book() else re.sub(r"python3 book\.py (?=drill|history|progress)", "threeloops ", text)


def taught_here(section: str, loop: str) -> tuple[str, str]:
    """As `taught` in this book; where the library is alone the part is named, and no notebook of it."""
    if has_book():
        return taught(section, loop, book_root())
    return f"the book, part “{section}”", ""


def taught(section: str, loop: str, root: Path) -> tuple[str, str]:
    """Where a section of the book stands: in words, and the reader's notebook of it, below my/. A section is named by a
    part's title: one of the loop's own chapter, or else of another (the law of three loops is asked in every loop).

    Raises:   ValueError for a title that no part has

    >>> taught("Roofline", "inner", book_root())[0]
    'chapter 1, part 2, Roofline; `python3 book.py 1.2` opens it'
    """
    chapter, _ = CHAPTERS[loop]
    titled = [place for place in places(root) if place.title == section]
    if not titled:
        raise ValueError(f"no part of the book is called {section!r}; a section is a part's title, to the letter")
    place = next((place for place in titled if place.chapter == chapter), titled[0])
    words = (
        f"chapter {place.chapter}, part {place.number}, {place.title}; `python3 book.py"
        f" {place.chapter}.{place.number}` opens it"
    )
    return words, place.copy
