"""The reader's copies, under my/: outputs cleared, so that no answer stands under its question, and no update touches
anyone's work. `reset` keeps the old one aside.

my/editions.json remembers, for every copy, which edition it came from and what was written, so that an untouched copy
is known and renewed. Where a new edition meets a copy with work in it, both stay: a part's notebook keeps its name
for the new edition, since other parts link to it; a drill set keeps its name for the reader's, since that one is
graded.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops import checks, wall_clock
from threeloops.contents import Place, find_place
from threeloops.desk import parts
from threeloops.desk.carded import carded
from threeloops.desk.parts import Notebook, Part

RECORD = "editions.json"


@dataclass(frozen=True, kw_only=True)
class Source:
    """A notebook that the reader gets a copy of: from what, where to, and as it would be written now."""

    key: str  # in the record: "chapters/1_inner_loop.ipynb#roofline-card", "drills/kv_cache/kv_cache.ipynb"
    copy: str  # below my/
    edition: str  # of what the authors wrote: links between copies do not make another
    notebook: Notebook
    told: str  # how it is called in a sentence
    gives_way: bool = False  # whether the reader's copy is renamed for a new edition, or the new edition for it


def drill_notebooks(root: Path) -> list[Path]:
    """Every drill set, and the interview room beside them."""
    return [*sorted(root.glob("drills/*.ipynb")), *sorted(root.glob("drills/*/*.ipynb"))]


def chapters(root: Path) -> dict[str, Path]:
    """Stem of every committed chapter -> its file."""
    return {path.stem: path for path in sorted(root.glob("chapters/*.ipynb"))}


def find_notebook(word: str, root: Path) -> tuple[str, Place | None]:
    """What a reader means, as the key of its source: a part as find_place knows it (and its place), a drill set as
    "drills/kv_cache", "drills/interview", or a whole chapter as "chapters/1_inner_loop".
    """
    folder, _, rest = word.partition("/")
    name = rest.partition("/")[0].removesuffix(".ipynb")
    if folder == "drills" and rest:
        sets = {path.stem: path.relative_to(root).as_posix() for path in drill_notebooks(root)}
        checks.one_of(sets, drill_set=name)
        return sets[name], None
    if folder == "chapters" and rest:
        checks.one_of(chapters(root), chapter=name)
        return f"chapters/{name}.ipynb", None
    place = find_place(word, root)
    return part_key(place), place


def set_title(path: Path) -> str:
    """What a drill set is called: its heading up to a colon, or, without one, its file's name."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    found = re.match(r"# ([^:\n]+)", parts.source(cells[0])) if cells else None
    return found[1].strip() if found else path.stem.replace("_", " ")


def copy_of_set(name: str, root: Path) -> str:
    """Where the reader's copy of a drill set stands now, below my/."""
    return _record(root).get(name, {}).get("copy", name)


def part_key(place: Place) -> str:
    """What a part is called in the record, whatever its number and title become."""
    return f"{place.notebook}#{place.cell}"


def sources(root: Path) -> Iterator[Source]:
    """Every part, every drill set and the interview room."""
    made = parts.parts(root)
    record = _record(root)
    sets = {path.relative_to(root).as_posix(): path for path in drill_notebooks(root)}
    stand = {name: record.get(name, {}).get("copy", name) for name in sets}
    all_links = parts.links(made, stand, {name: set_title(path) for name, path in sets.items()})
    for part in made:
        yield _of_part(part, all_links)
    for name, path in sets.items():
        content = path.read_bytes()
        notebook = parts.set_notebook(json.loads(content), name=name, copy=stand[name], made=made, all_links=all_links)
        edition = _digest(content)
        yield Source(key=name, copy=name, edition=edition, notebook=_with_cards(notebook), told=path.name)


def _of_part(part: Part, all_links: parts.Links) -> Source:
    place = part.place
    return Source(
        key=part_key(place),
        copy=place.copy,
        edition=_digest(json.dumps([[cell["cell_type"], parts.source(cell)] for cell in part.cells]).encode()),
        notebook=_with_cards(parts.part_notebook(part, all_links)),
        told=f"part {place.number} of chapter {place.chapter}, {place.title},",
        gives_way=True,
    )


def _with_cards(notebook: Notebook) -> Notebook:
    return notebook | {"cells": carded(notebook["cells"])}


def all_copies(root: Path) -> dict[str, Path]:
    """The reader's copy of every part, every drill set and the interview room, made where it is missing: key -> file.

    A whole chapter, as earlier editions of this book opened it, is left where it lies when the reader has written in
    it, and said once.
    """
    record = _record(root)
    found = {source.key: _copied(source, root, record) for source in sources(root)}
    for path in chapters(root).values():
        _earlier_whole_copy(path, root, record)
    _keep(record, root)
    return found


def whole_copy(path: Path, root: Path) -> Path:
    """The reader's copy of a whole chapter, for whoever wants it in one piece."""
    record, name = _record(root), path.relative_to(root).as_posix()
    content = path.read_bytes()
    chapter = json.loads(content)
    all_links = parts.links(parts.parts(root), {}, {})
    cells = parts.moved_cells(parts.cleared(chapter["cells"]), all_links, notebook=name, copy=name, whole=True)
    notebook = parts.noted(chapter | {"cells": cells})
    source = Source(key=name, copy=name, edition=_digest(content), notebook=notebook, told=path.name)
    copy = _copied(source, root, record)
    record[name]["asked"] = "whole"
    _keep(record, root)
    return copy


def reset(word: str, root: Path) -> tuple[Path, Path | None]:
    """Start a part, a drill set or a whole chapter afresh: (the new copy, where the old one was kept, None if there
    was nothing in it to keep).
    """
    key, _ = find_notebook(word, root)
    copy = _copy_of(key, root)
    if _fingerprint(_read(copy)) == _record(root)[key]["written"]:
        return copy, None
    moment = wall_clock.here().strftime("%Y-%m-%d-%H%M%S")
    aside = root / "my" / "aside" / f"{copy.stem}.{moment}.ipynb"
    aside.parent.mkdir(parents=True, exist_ok=True)
    copy.replace(aside)
    return _copy_of(key, root), aside


def _copy_of(key: str, root: Path) -> Path:
    whole = {f"chapters/{stem}.ipynb": path for stem, path in chapters(root).items()}
    return whole_copy(whole[key], root) if key in whole else all_copies(root)[key]


def _copied(source: Source, root: Path, record: dict[str, dict[str, str]]) -> Path:
    """The copy of one notebook; made on first use, renewed while untouched, and otherwise joined by the new
    edition.
    """
    my = root / "my"
    seen = record.get(source.key, {})
    copy = my / seen.get("copy", source.copy)
    if not copy.exists():
        copy = my / source.copy if source.gives_way else copy
    mine = _read(copy)
    untouched = mine is not None and seen.get("written") in (_fingerprint(mine), _digest(copy.read_bytes()))
    if mine is not None and not untouched:
        if mine and seen.get("edition") == source.edition:
            led_on = _led_on(mine, source.notebook)
            if led_on != mine:
                _write(led_on, copy)
            return copy
        copy = _both_kept(source, copy, my)
    elif untouched and source.gives_way and copy != my / source.copy:  # the part was renamed
        copy.unlink()
        copy = my / source.copy
    if not copy.exists() or _read(copy) != source.notebook:
        _write(source.notebook, copy)
    record[source.key] = seen | {
        "copy": copy.relative_to(my).as_posix(),
        "edition": source.edition,
        "written": _fingerprint(source.notebook),
    }
    return copy


def _both_kept(source: Source, copy: Path, my: Path) -> Path:
    """Where the new edition is to stand; the reader's own copy stays beside it."""
    if not source.gives_way:
        print(f"A new edition of {source.told} is here; your own copy stays beside it.")
        return my / source.copy.replace(".ipynb", f".edition-{source.edition[:6]}.ipynb")
    moment = wall_clock.here().strftime("%Y-%m-%d-%H%M%S")
    kept = next(
        path
        for path in (
            copy.with_suffix(f".yours-{moment}{again}.ipynb") for again in ("", *(f"-{n}" for n in range(2, 99)))
        )
        if not path.exists()
    )
    copy.replace(kept)
    print(f"A new edition of {source.told} is here; your own copy stays beside it as {kept.name}.")
    return my / source.copy


def _led_on(mine: Notebook, made: Notebook) -> Notebook:
    """The reader's notebook with today's ways to the parts before and after."""
    ways = {cell["id"]: cell["source"] for cell in made["cells"] if cell["id"] in (parts.TOP, parts.END)}

    def moved(cell: parts.Cell) -> bool:
        way = ways.get(cell.get("id", ""))
        return way is not None and way != parts.source(cell)  # JupyterLab saves a text in lines

    return mine | {"cells": [cell | {"source": ways[cell["id"]]} if moved(cell) else cell for cell in mine["cells"]]}


def _earlier_whole_copy(path: Path, root: Path, record: dict[str, dict[str, str]]) -> None:
    name = path.relative_to(root).as_posix()
    seen = record.get(name, {})
    copy = root / "my" / seen.get("copy", name)
    if "asked" in seen or not copy.exists():
        return
    if seen.get("written") == _digest(copy.read_bytes()):
        copy.unlink()
        del record[name]
        return
    print(
        f"The book now opens a part at a time. Your whole chapter with what you wrote stays as it is:"
        f" {copy.relative_to(root)} (`book.py chapters/{path.stem}` opens it)."
    )
    record[name] = seen | {"asked": "earlier"}


def _record(root: Path) -> dict[str, dict[str, str]]:
    try:
        found: dict[str, dict[str, str]] = json.loads((root / "my" / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def _keep(record: dict[str, dict[str, str]], root: Path) -> None:
    (root / "my").mkdir(exist_ok=True)
    (root / "my" / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> Any:
    """A notebook; {} for a file that is none, None where there is no file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "cells" in found else {}


def _write(notebook: Notebook, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _fingerprint(notebook: Notebook) -> str:
    """What a reader can have changed: text and outputs, but not how a program has written it down."""
    cells = [[cell["cell_type"], parts.source(cell), bool(cell.get("outputs"))] for cell in notebook.get("cells", ())]
    return _digest(json.dumps(cells).encode())
