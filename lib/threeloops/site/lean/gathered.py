"""Gathered: one style sheet and one script for all pages, in place of thirty files that a browser would ask for one by
one before it draws anything.

What every page loads goes into the two; what a single page loads beside them (the search) stays its own, and waits for
them.
"""

import hashlib
import posixpath
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from threeloops.site.lean import styles

STYLE, SCRIPT = "_static/pages.css", "_static/pages.js"
FIRST = "index.html"
LINK = re.compile(r'[ \t]*<link\b(?=[^>]*rel="stylesheet")[^>]*href="(?P<to>[^"?]+)(?:\?[^"]*)?"[^>]*>\n?')
LOADED = re.compile(r'[ \t]*<script\b[^>]*\bsrc="(?P<to>[^"?]+)(?:\?[^"]*)?"[^>]*></script>\n?')
AHEAD = re.compile(r'[ \t]*<link\b[^>]*rel="preload"[^>]*as="script"[^>]*>\n?')
# set by inline scripts before it is there, and false anyway
SET = re.compile(r"[ \t]*<script>DOCUMENTATION_OPTIONS\.\w+ = [^<]*</script>\n?")
# site.css draws the icons in use
LEFT_OUT = ("_static/scripts/fontawesome.js", "_static/scripts/fontawesome.js.LICENSE.txt")
ICONS = "_static/vendor/fontawesome"
OURS = Path(__file__).parents[1] / "static"
SAID = re.compile(r"^[ \t]*//[^\n]*\n", re.MULTILINE)  # a comment that has its line to itself: for who reads the source
THEME = "pydata-sphinx-theme.js"
# Each block is measured and then changed, so that the page is laid out anew for each of them.
MEASURES = re.compile(
    r'document\.querySelectorAll\(\["pre",[^\]]*\]\.join\(", "\)\)\.forEach\(e=>\{e\.tabIndex=[^}]*\}\)'
)
TOKEN = re.compile(r"[A-Za-z_][\w-]*")
CLASSES = re.compile(r'\b(?:class|id)="([^"]*)"')
ADDRESS = re.compile(r"url\(\s*([\"']?)(?!data:|#)([^\"')]+)\1\s*\)")
IMPORT = re.compile(r"""@import\s+(?:url)?\(?\s*["']?(?P<to>[^"')\s]+)["']?\s*\)?\s*;""")


def gather(folder: Path) -> None:
    """Do it in a folder of built pages.

    Raises:   ValueError for a page that loads other styles than the first one does, or its scripts in another order
    """
    pages = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts
    }
    sheets = _loaded(LINK, FIRST, pages[FIRST])
    scripts = [path for path in _loaded(LOADED, FIRST, pages[FIRST]) if path not in LEFT_OUT]
    for name, page in pages.items():
        own = [path for path in _loaded(LOADED, name, page) if path not in LEFT_OUT]
        if _loaded(LINK, name, page) != sheets or [path for path in own if path in scripts] != scripts:
            raise ValueError(f"{name} loads other styles or scripts than {FIRST} does; one file cannot stand for both")
    script = ";\n".join(_script(folder / path) for path in scripts) + "\n"
    known = names([*pages.values()], [script, *(path.read_text(encoding="utf-8") for path in _modules(folder))])
    read: list[str] = []
    style = "".join(styles.used(_whole(folder, path, read), known) for path in sheets)
    (folder / STYLE).write_text(style, encoding="utf-8")
    (folder / SCRIPT).write_text(script, encoding="utf-8")
    version = hashlib.sha256((style + script).encode()).hexdigest()[:8]
    for name, page in pages.items():
        own = [path for path in _loaded(LOADED, name, page) if path not in [*scripts, *LEFT_OUT]]
        (folder / name).write_text(_headed(name, page, own, version), encoding="utf-8")
    for path in {*read, *scripts, *LEFT_OUT}:
        (folder / path).unlink(missing_ok=True)
    shutil.rmtree(folder / ICONS, ignore_errors=True)


def _script(path: Path) -> str:
    """What a browser runs of a script: of ours, the code alone; of the theme's, what wide.js does not do better.

    Raises:   ValueError for another theme, which measures elsewhere
    """
    source = path.read_text(encoding="utf-8")
    if (OURS / path.name).is_file():
        return SAID.sub("", source)
    if path.name != THEME:
        return source
    source, found = MEASURES.subn("0", source)
    if found != 1:
        raise ValueError(f"{path.name} measures what scrolls {found} times, not once; look at it again")
    return source


def names(pages: Sequence[str], scripts: Sequence[str]) -> set[str]:
    """Every class and name that pages have, and every word that a script might give them."""
    on_pages = {one for page in pages for told in CLASSES.findall(page) for one in told.split()}
    return on_pages | {one for script in scripts for one in TOKEN.findall(script)}


def _modules(folder: Path) -> list[Path]:
    """Scripts that a page fetches later."""
    return [path for path in (folder / "_static").glob("*.js") if path.name != "vega.js"]


def _loaded(tag: re.Pattern[str], name: str, page: str) -> list[str]:
    """What a page loads by such tags, from the folder of all pages."""
    return [posixpath.normpath(posixpath.join(posixpath.dirname(name), match["to"])) for match in tag.finditer(page)]


def _whole(folder: Path, path: str, read: list[str]) -> str:
    """A style sheet with those that it imports, its addresses right in the folder of the gathered one; notes what was
    read.
    """
    css = (folder / path).read_text(encoding="utf-8")
    here, there = posixpath.dirname(path), posixpath.dirname(STYLE)
    read.append(path)

    def whole(match: re.Match[str]) -> str:
        return _whole(folder, posixpath.normpath(posixpath.join(here, match["to"])), read)

    def moved(match: re.Match[str]) -> str:
        return f"url({posixpath.relpath(posixpath.normpath(posixpath.join(here, match[2])), there)})"

    return IMPORT.sub(whole, ADDRESS.sub(moved, IMPORT.sub(lambda match: match[0].replace("url(", "("), css)))


def _headed(name: str, page: str, own: Sequence[str], version: str) -> str:
    """A page that loads the two, and then what is its own."""
    for tag in (LINK, LOADED, AHEAD, SET):
        page = tag.sub("", page)
    page = page.replace('data-theme="auto"', 'data-theme="light"', 1)  # until a script knows better, or without one
    up = posixpath.relpath(".", posixpath.dirname(name) or ".")
    to = "" if up == "." else f"{up}/"
    style = f'<link rel="stylesheet" href="{to}{STYLE}?v={version}" />'
    scripts = [f"{SCRIPT}?v={version}", *own]
    tags = "\n    ".join([style, *(f'<script defer src="{to}{path}"></script>' for path in scripts)])
    return page.replace("</head>", f"  {tags}\n  </head>", 1)
