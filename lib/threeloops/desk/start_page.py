"""The start page: every part with its minutes and what is done, every drill set with its mark, the interview room
with what is due, and the place where the reader was. One click from it to anything.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from threeloops import contents, desk
from threeloops.contents import Place
from threeloops.desk import begun, copies, parts
from threeloops.desk.begun import Begun
from threeloops.markup import Content, Markup, element, table

ROOM = "drills/interview.ipynb"
EXPLORER, EXPLAINED = "inner_loop.roofline", "roofline"  # what lives on the page, and the part that explains it
SHEET = "reference_sheet"
HOUR_MIN = 60
SENTENCE = (
    "Predict how fast machine learning can run, count it, measure it, and be told which mistake you made when you are"
    " wrong."
)
JUPYTER = Markup(
    "<details><summary>Never used Jupyter?</summary><p>A part is a page of cells: text, and code that runs here, on"
    " your machine. Shift+Enter runs the cell with the frame and goes on to the next; <em>Run to the next question</em>"
    " above the page (or the key N) runs all cells up to the next card at once. A card takes a number: type it, press"
    " Enter. What is folded opens with a click. Pages save themselves, and nothing can be broken:"
    " <code>python3 book.py reset 1.2</code> in a terminal starts a part afresh and keeps the old one.</p>"
    "<p>Beside a part stand its drill sets: questions with numbers drawn for you. <em>Grade</em>, above such a set,"
    " marks it and shows what went wrong, as"
    f" <code>python3 book.py grade my/drills/{contents.STARTER}</code> does in a terminal.</p></details>"
)
FIND = Markup(
    '<form class="find" role="search" hidden><label for="threeloops-find">Search the book</label>'
    '<input id="threeloops-find" type="search" autocomplete="off" data-lm-suppress-shortcuts="true">'
    '</form><div class="found" role="status"></div>'
)
BREAK = Markup("<br>")
STYLE = Path(__file__).parents[1] / "lab" / "threeloops" / "static" / "desk.css"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the page: a notebook of the reader's, below my/."""

    title: str
    copy: str
    begun: Begun
    minutes: int = 0
    mark: str = ""
    opened: bool = False

    @property
    def done(self) -> bool:
        return self.begun.done


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A chapter: each part with the drill sets that it prepares for."""

    number: str
    title: str
    parts: Sequence[tuple[Entry, Sequence[Entry]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the start page says."""

    chapters: Sequence[Chapter]
    room: str
    last: Entry | None

    @property
    def html(self) -> str:
        """The page's content: its links lead to notebooks below my/."""
        chapters, touch = [_chapter(chapter) for chapter in self.chapters], self._touch()
        room = element("li", element("a", "The interview room", href=ROOM), f": {self.room}")
        ways = [self._to_begin_with(), room, self._sheet(), self._far()]
        return element(
            "main",
            element("h1", "Three Loops"),
            element("p", SENTENCE, class_="lead"),
            self._continued(),
            FIND,
            element("ul", ways, class_="ways"),
            JUPYTER,
            [chapters, touch] if self.last else [touch, chapters],  # who has been here wants to go on
            class_="threeloops-start",
        )

    @property
    def _parts(self) -> list[Entry]:
        return [part for chapter in self.chapters for part, _ in chapter.parts]

    def _to_begin_with(self) -> Content:
        """What to do with a first half hour; nothing once its set has a mark, or where it is missing."""
        sets = [entry for chapter in self.chapters for _, its in chapter.parts for entry in its]
        first = next((entry for entry in sets if contents.STARTER in entry.copy), None)
        if first is None or first.mark:
            return None
        return element(
            "li",
            "New here, with half an hour? The short way of ",
            _link(self._parts[0]),
            ", then ",
            _link(first),
            ": five numbers from all loops in about twelve minutes.",
        )

    def _sheet(self) -> Content:
        sheet = next((part for part in self._parts if SHEET in part.copy), None)
        return element("li", "To look something up, or to print: ", _link(sheet)) if sheet else None

    def _far(self) -> Content:
        """How far the reader is in all."""
        opened, done = (sum(getattr(part, what) for part in self._parts) for what in ("opened", "done"))
        if not opened and not done:
            return None
        return element("li", f"So far: {max(opened, done)} of {len(self._parts)} parts opened, {done} done")

    def _touch(self) -> Content:
        """The place of the explorer, which the book's JupyterLab makes live; nothing where its part is missing."""
        part = next((part for part in self._parts if EXPLAINED in part.copy), None)
        if part is None:
            return None
        asked = (
            "Each mark is one operation of a language model's layer. Turn a control, or drag a mark or the roof: how"
            " fast can it run at most? "
        )
        explained = element("p", Markup(asked), _link(part), " explains it.")
        return element("section", element("h2", "Touch it"), explained, element("div"), class_="touch", hidden=True)

    def _continued(self) -> Content:
        if self.last is None:
            first = next(iter(self._parts), None)
            return element("p", _link(first, f"Start reading: {first.title}"), class_="go") if first else None
        words = [" ", element("span", self.last.begun.words)] if self.last.begun.words else None
        return element("p", _link(self.last, f"Continue: {self.last.title}"), words, class_="go")


def start_page(root: Path) -> Page:
    """The page as things stand now."""
    places = contents.places(root)
    sets = _sets(root)
    senders = _senders(root, sets)
    chapters = []
    for number in dict.fromkeys(place.chapter for place in places):
        its = [place for place in places if place.chapter == number]
        rows = [(_part(place, root), [sets[name] for name in senders.get(place.cell, ())]) for place in its]
        title = dict(contents.CHAPTERS.values()).get(number, "")
        chapters.append(Chapter(number=number, title=title, parts=rows))
    return Page(chapters=chapters, room=begun.room_words(desk.history_path()), last=_last(root, chapters))


def written_page(root: Path) -> Path:
    """Write the page into my/, for whoever opens the notebooks without the book's JupyterLab."""
    path = root / "my" / parts.START
    style = STYLE.read_text(encoding="utf-8")
    path.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Three Loops</title><style>{style}</style>"
        f'<body class="threeloops-page">{start_page(root).html}</body></html>\n',
        encoding="utf-8",
    )
    return path


def _part(place: Place, root: Path) -> Entry:
    done, opened = begun.begun(root / "my" / place.copy), place.copy in begun.opened(root)
    return Entry(title=place.name, copy=place.copy, begun=done, minutes=place.minutes, opened=opened or done.run > 0)


def _sets(root: Path) -> dict[str, Entry]:
    """Name of every drill set that has a folder -> its entry."""
    marks = begun.marks(root)
    found = {}
    for path in copies.drill_notebooks(root):
        if path.parent.name == path.stem:
            copy = copies.copy_of_set(path.relative_to(root).as_posix(), root)
            found[path.stem] = Entry(
                title=copies.set_title(path),
                copy=copy,
                begun=begun.begun(root / "my" / copy),
                mark=marks.get(path.stem, ""),
            )
    return found


def _senders(root: Path, sets: Iterable[str]) -> dict[str, list[str]]:
    """Cell of a part's card -> the drill sets that the part is the first to name."""
    found: dict[str, list[str]] = {}
    left = set(sets)
    for part in sorted(parts.parts(root), key=lambda part: part.place.chapter):
        text = "\n".join(parts.source(cell) for cell in part.cells[:4] if cell["cell_type"] == "markdown")
        named = [name for name in re.findall(r"drills/(\w+)/", text) if name in left]
        found[part.place.cell] = list(dict.fromkeys(named))
        left -= set(named)
    return found


def _last(root: Path, chapters: Sequence[Chapter]) -> Entry | None:
    path = begun.last_place(root)
    entries = [entry for chapter in chapters for part, sets in chapter.parts for entry in (part, *sets)]
    room = Entry(title="The interview room", copy=ROOM, begun=Begun())
    return next((entry for entry in (*entries, room) if path and entry.copy == path), None)


# --- as HTML -------------------------------------------------------------------------------------


def _link(entry: Entry, words: str = "") -> Markup:
    return element("a", words or entry.title, href=quote(entry.copy))


def _chapter(chapter: Chapter) -> Markup:
    minutes = sum(part.minutes for part, _ in chapter.parts)
    done = sum(part.done for part, _ in chapter.parts)
    about = f"{len(chapter.parts)} parts, {minutes / HOUR_MIN:.1f} hours" + (f", {done} done" if done else "")
    heads = ["part", element("th", "minutes", scope="col", class_="number"), "so far", "drill sets"]
    name = element("h2", f"{chapter.number} {chapter.title}".strip(), " ", element("small", about))
    return element("section", name, table(heads, [_row(part, sets) for part, sets in chapter.parts]))


def _row(part: Entry, sets: Sequence[Entry]) -> list[Content]:
    words = part.begun.words or ("opened" if part.opened else "")
    drills = [[BREAK if place else None, _drill(entry)] for place, entry in enumerate(sets)]
    return [
        element("th", _link(part), scope="row"),
        element("td", str(part.minutes or ""), class_="number"),
        [element("strong", "done", class_="done"), f" {words}"] if part.done else words,
        drills,
    ]


def _drill(entry: Entry) -> Content:
    said = entry.mark and f"{entry.mark} points"
    if not said and entry.begun.right:
        said = f"{entry.begun.right} of {entry.begun.checks} right"
    return [_link(entry), [" ", element("span", said)] if said else None]


def as_json(root: Path) -> str:
    """What the server sends to the page in JupyterLab."""
    return json.dumps({"html": start_page(root).html})
