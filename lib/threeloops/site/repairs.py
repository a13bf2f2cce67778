"""What the theme and its neighbours leave undone, mended in every page: for those who hear it, and so that nothing
moves once a script has counted the page's questions.
"""

import re
from typing import Any

REPAIRS = (
    # a name that hides the words that everybody else reads ("Show the code")
    ('<summary aria-label="Toggle hidden content">', "<summary>"),
    # a column of row names has no name itself: a cell, and no heading without words
    ('<th class="head"><p></p></th>', "<td></td>"),
)
CARD = re.compile(r'<section class="drill"(?! id=)')  # the page of all drills has a card with a name, and counts none
STANDING = '</h1>\n<p class="drill-standing"></p>'  # where standing.js writes


def repaired(body: str) -> str:
    """The body of a page, mended.

    >>> repaired('<summary aria-label="Toggle hidden content">Show the code</summary>')
    '<summary>Show the code</summary>'
    >>> repaired('<h1>Sums</h1><section class="drill" data-drill="sum">')
    '<h1>Sums</h1>\\n<p class="drill-standing"></p><section class="drill" data-drill="sum">'
    """
    for found, better in REPAIRS:
        body = body.replace(found, better)
    return body.replace("</h1>", STANDING, 1) if CARD.search(body) else body


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's door."""

    def mend(_: Any, __: str, ___: str, context: dict[str, Any], ____: Any) -> None:
        if "body" in context:
            context["body"] = repaired(context["body"])

    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
