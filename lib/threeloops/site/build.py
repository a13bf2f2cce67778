"""`book.py site`: the book as a folder of static files, made from the committed notebooks."""

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from threeloops import widgets
from threeloops.figures import still
from threeloops.room import notebook
from threeloops.sheets.sheet import SHEETS
from threeloops.site import chapters, drill_sets, mathematics, npm, offline, papers, pictures, printing, wasm, words
from threeloops.site.drawn import anew
from threeloops.site.epub import volume
from threeloops.site.finding import index
from threeloops.site.front import heads, page
from threeloops.site.front.edition import Edition, edition
from threeloops.site.judged import as_written
from threeloops.site.lean import gathered
from threeloops.site.links import Places
from threeloops.site.parts import Cell, parts
from threeloops.site.rehearsal.page import rehearsal
from threeloops.site.running import needs
from threeloops.site.serving import page as page_of_serving

STATIC = Path(__file__).with_name("static")
TEMPLATES = Path(__file__).with_name("templates")
TITLE = "Three Loops"
MARK = "_static/loops.svg"  # what only a build of these pages holds
PICTURE = "chapters/pictures/roofline.png"  # of a link that is passed on
# What Sphinx writes for its own search, of which no page asks.
OF_ANOTHER_SEARCH = ("searchindex.js", "_static/searchtools.js", "_static/language_data.js")
SCRIPTS = (
    "memory",
    "python",
    "asking",
    "standing",
    "judging",
    "cards",
    "practise",
    "set_end",
    "far",
    "functions",
    "explorers",
    "running",
    "memory_page",
    "rehearsal",
    "serving_page",
    "offline",
    "places",
    "wide",
    "search",
)  # in this order
# What draws an explorer in JupyterLab draws it on a page.
PANEL = [
    *(Path(widgets.__file__).with_name(name) for name in ("panel.js", "panel.css")),
    *(Path(notebook.__file__).with_name(name) for name in ("interview.js", "interview.css")),
]
# Sphinx's settings: https://www.sphinx-doc.org/en/master/usage/configuration.html
SETTINGS: dict[str, Any] = {
    "project": TITLE,
    "html_title": TITLE,
    "extensions": [
        "myst_nb",
        "sphinx_copybutton",
        *(f"threeloops.site.{name}" for name in ("mathematics", "repairs", "head", "front.heads")),
    ],
    "nb_execution_mode": "off",
    "nb_render_markdown_format": "myst",
    "nb_code_prompt_show": "Show the code",
    "nb_code_prompt_hide": "Hide the code",
    "myst_enable_extensions": ["dollarmath", "deflist", "colon_fence"],
    "myst_heading_anchors": 0,
    "html_math_renderer": "threeloops",
    "html_theme": "pydata_sphinx_theme",
    "templates_path": [str(TEMPLATES)],
    "html_context": {"default_mode": "auto"},
    "html_favicon": str(STATIC / "loops.svg"),
    "html_css_files": ["katex/katex.min.css", "panel.css", "interview.css", "site.css"],
    "html_js_files": [(f"{name}.js", {"defer": "defer"}) for name in SCRIPTS],
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "html_domain_indices": False,
    "html_use_index": False,
    # no list beside a page that stands alone
    "html_sidebars": {
        name: []
        for name in (
            "index",
            "practise",
            "code",
            "room",
            "serve",
            "memory",
            "offline",
            "terms",
            "accessibility",
            heads.LOST,
            *papers.PAPERS,
        )
    },
    "smartquotes": False,
    "copybutton_exclude": ".linenos, .gp, .go",
    "html_theme_options": {
        "logo": {"text": TITLE},
        "header_links_before_dropdown": 5,
        "search_bar_text": "Search the book",
        "navbar_persistent": ["search-button"],
        "navbar_end": ["theme-switcher"],
        "secondary_sidebar_items": ["page-toc"],
        "show_prev_next": True,
        "navigation_depth": 2,
        "footer_start": [],
        "footer_end": [],
        "back_to_top_button": False,
    },
}


class SiteError(ValueError):
    """The pages could not be built; one sentence says why."""


def build(root: Path, into: Path, *, prints: Sequence[str] = ()) -> Path:
    """Build every page into a folder, in place of the pages that were there; the first one. The chapters that are named
    are printed as PDFs, too.

    Raises:   SiteError, for what no page could be made of, and for a folder that holds anything else
    """
    if into.exists() and any(into.iterdir()) and not (into / MARK).is_file():
        raise SiteError(f"{into} holds something that is no build of these pages; name an empty folder, or a new one")
    for name in ("katex", "pyodide"):
        npm.kept(name)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_sources(root, work / "pages", prints)
        mathematics.copy_style(work / "static" / "katex")
        shutil.copytree(STATIC, work / "static", dirs_exist_ok=True)
        for path in PANEL:
            shutil.copy(path, work / "static")
        as_written.write(work / "static" / as_written.FOLDER)
        shutil.copy(root / PICTURE, work / "static" / heads.CARD.name)
        _write(still.library(), work / "static" / "vega.js")
        told, pages = edition(root), parts(root)
        _write(index.index(pages, beside(root)), work / "static" / index.FILE)
        _run_sphinx(work, told)
        volume.write(pages, work / "made", told)
        pictures.pack(work / "made", anew.drawings(pages))
        gathered.gather(work / "made")
        wasm.bundle(work / "made" / "_static" / "python", work, imported=needs.modules(pages))
        for chapter in prints:
            printing.write(chapter, pages, work / "made", printing.browser(), told)
        offline.write(work / "made", TITLE)
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(work / "made", into)
    return into / "index.html"


def write_sources(root: Path, sources: Path, prints: Sequence[str]) -> None:
    """What Sphinx reads: a notebook for each part and each drill set, markdown for everything else."""
    pages = parts(root)
    known = Places(pages)
    for part in pages:
        _write_notebook(chapters.page(part, pages, known, prints), sources / f"{part.page}.ipynb")
    for path in drill_sets.paths(root):
        _write_notebook(drill_sets.page(path), sources / "drills" / path.name)
    openings = [(chapters.chapter_title(part), part.page) for part in pages if part.place is None]
    made = {
        "index": page.first_page(pages, edition(root), prints=prints, contents=papers.contents(openings)),
        heads.LOST: heads.MISSING,
        "drills/index": papers.drills_index(root),
        "sheets/index": papers.sheets_index(),
        "practise": papers.practise(),
        "code": papers.code(),
        "room": rehearsal(pages),
        "serve": page_of_serving.serving(),
        "memory": papers.memory(),
        "offline": papers.offline(),
        "terms": words.page(pages),
        "accessibility": papers.accessibility(),
        **{f"sheets/{name}": papers.sheet_page(name) for name in SHEETS},
        **{name: papers.paper(name, root) for name in papers.PAPERS},
    }
    for name, text in made.items():
        _write(text, sources / f"{name}.md")


def _write(text: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _write_notebook(cells: list[Cell], path: Path) -> None:
    numbered = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells)]
    _write(json.dumps({**chapters.NOTEBOOK, "cells": numbered}, ensure_ascii=False), path)


def _run_sphinx(work: Path, told: Edition) -> None:
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError

    static = {"html_static_path": [str(work / "static")]}
    settings = {**SETTINGS, **static, "html_baseurl": told.address, "threeloops_title": told.title}
    folders = (work / "pages", None, work / "made", work / "doctrees")
    try:
        app = Sphinx(*folders, "html", confoverrides=settings, status=None, warning=sys.stderr, warningiserror=True)
        app.connect("env-updated", _unsearched)
        app.build()
    except SphinxError as error:
        raise SiteError(f"the pages could not be built: {error}") from error
    if app.statuscode:
        raise SiteError("the pages could not be built; the lines above say where")
    made = work / "made"
    maps = made.glob("**/*.map")  # of the theme's sources: 2 MB
    for left in (made / ".buildinfo", *maps, *(made / name for name in OF_ANOTHER_SEARCH)):
        left.unlink(missing_ok=True)


def _unsearched(app: Any, env: Any) -> list[str]:
    """No page is read for Sphinx's own search: the book has another index, and this one takes a tenth of the build."""
    for name in env.found_docs:
        env.metadata[name]["nosearch"] = True
    return []


def beside(root: Path) -> dict[str, str]:
    """The pages beside the parts that a search may lead to, with their names."""
    return {
        **{f"drills/{path.stem}": f"Drills: {drill_sets.title(path)}" for path in drill_sets.paths(root)},
        **{f"sheets/{name}": f"Sheet: {told.partition(';')[0]}" for name, told in SHEETS.items()},
        **papers.BESIDE,
    }
