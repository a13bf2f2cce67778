"""An explorer on a page: its drawing, its words and its table, as they are read without a script. A script
(static/explorers.js) puts the controls above them, and Python behind those.
"""

import ast
import html
import json
import re
from collections.abc import Iterable
from dataclasses import asdict

from threeloops.figures import still
from threeloops.site import exploring
from threeloops.site.exploring import explorer, module_name
from threeloops.site.parts import Cell, text

READABLE = 0.78  # of its size, as in panel.js
SHOWS = "explorer"  # the function that the last line of a cell calls


def shown_by(cell: Cell, cells: Iterable[Cell]) -> str:
    """The explorer that a cell shows, by its module; nothing for one that shows none.

    Raises:   ValueError for one that no page can show: another than the list has, or one that begins elsewhere
    """
    call = _last(text(cell))
    if call is None:
        return ""
    modules = {alias: module for one in cells if one["cell_type"] == "code" for alias, module in _imported(text(one))}
    module = modules.get(ast.unparse(call.func.value)) if isinstance(call.func, ast.Attribute) else None
    found = next((name for name in exploring.EXPLORERS if module_name(name) == module), None)
    if found is None or call.args or call.keywords:
        raise ValueError(f"no page can show {ast.unparse(call)}: site/exploring.py lists what can be shown")
    return found


def _last(source: str) -> ast.Call | None:
    """The call that shows an explorer."""
    if f".{SHOWS}(" not in source:
        return None
    last = ast.parse(source).body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    return call if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(f".{SHOWS}") else None


def _imported(source: str) -> Iterable[tuple[str, str]]:
    """(name in the notebook, module) of what a cell imports from a package."""
    if "import" not in source or source.lstrip().startswith("%"):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def block(name: str) -> str:
    """An explorer, as markdown."""
    return f"```{{raw}} html\n{section(name)}\n```\n\n"


def section(name: str) -> str:
    """An explorer, as HTML."""
    made = explorer(name)
    figure, words = made.view.figure, made.view
    bare = {key: value for key, value in figure.spec.items() if key not in ("title", "description")}
    bare["config"] = {**bare["config"], "background": "transparent"}
    drawing = f'<div class="tl-wide">{_set(still.svg(bare), name)}</div>'
    if figure.live_narrow_body:
        slim = {key: value for key, value in bare.items() if key not in figure.body} | figure.live_narrow_body
        drawing += f'<div class="tl-slim">{_set(still.svg(slim), f"{name}-slim")}</div>'
    told = json.dumps(asdict(made.message), ensure_ascii=False).replace("</", r"<\/")
    return (
        f'<section class="explorer" data-explorer="{name}" aria-label="{html.escape(figure.title)}">'
        f'<div class="tl-explorer"><figure class="tl-figure"><p class="tl-title">{html.escape(figure.title)}</p>'
        f'<p class="tl-caption">{html.escape(figure.caption)}</p>'
        f'<div class="tl-chart"><div role="img" aria-label="{html.escape(figure.alt)}">{drawing}</div></div>'
        "</figure>"
        f'<p class="tl-said">{html.escape(words.summary)}</p><div class="tl-table">{words.table}</div></div>'
        f'<script type="application/json">{told}</script></section>'
    )


def _set(drawing: str, name: str) -> str:
    """A drawing as it stands on a page: on a narrow one it scrolls before it becomes too small, as the panel's does;
    what it names inside itself it shares with no other.
    """
    width = float(re.search(r'<svg[^>]* width="([\d.]+)"', drawing)[1])  # type: ignore[index]
    own = re.sub(r'(\bid="|url\(#)', rf"\g<1>{name.replace('.', '-')}-", drawing)
    return own.replace("<svg ", f'<svg style="min-width:{READABLE * width:g}px" ', 1)
