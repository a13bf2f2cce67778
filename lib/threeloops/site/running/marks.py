"""What stands below a code cell on its page: a place where a script (static/running.js) puts a button, or a line that
says what the cell needs that a page has not.
"""

import html

from threeloops.site.parts import Cell, text
from threeloops.site.running.needs import Needs

# Of what a cell needs, the one that brings the others along, said first.
FIRST = ("JupyterLab", "torch", "numpy")


def mark(place: int, cell: Cell, need: Needs, *, word: str, hidden: bool) -> str:
    """The mark of a cell at its place in a part, which `python3 book.py WORD` opens. A cell that is hidden (a card
    stands for it), and one that needs packages, is there for those below it: what they use of it may need none.
    """
    above = " ".join(map(str, need.above))
    source = f' data-source="{html.escape(text(cell))}"' if hidden else ""
    told = f'<p class="run-needs">{_sentence(need, word)}</p>' if need.packages and not hidden else ""
    return f'<div class="run" data-place="{place}" data-above="{above}"{source}>{told}</div>'


def _sentence(need: Needs, word: str) -> str:
    named = next((name for name in FIRST if name in need.packages), min(need.packages))
    what = named if named == FIRST[0] else f"<code>{html.escape(named)}</code>, which a page has not"
    return f"To run this you need {what}: <code>python3 book.py {word}</code>"
