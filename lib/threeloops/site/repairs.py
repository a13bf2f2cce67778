"""What the theme and its neighbours leave undone for those who hear a page, mended in every page."""

from typing import Any

REPAIRS = (
    # a name that hides the words that everybody else reads ("Show the code")
    ('<summary aria-label="Toggle hidden content">', "<summary>"),
    # a column of row names has no name itself: a cell, and no heading without words
    ('<th class="head"><p></p></th>', "<td></td>"),
)


def repaired(body: str) -> str:
    """The body of a page, mended.

    >>> repaired('<summary aria-label="Toggle hidden content">Show the code</summary>')
    '<summary>Show the code</summary>'
    """
    for found, better in REPAIRS:
        body = body.replace(found, better)
    return body


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's door."""

    def mend(_: Any, __: str, ___: str, context: dict[str, Any], ____: Any) -> None:
        if "body" in context:
            context["body"] = repaired(context["body"])

    app.connect("html-page-context", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
