"""What makes feedback pages quicker to write: a class has the same questions, and most pages need no afterthoughts."""

import functools
import re
from typing import Any

from bs4 import BeautifulSoup
from nbconvert.filters.highlight import Highlight2HTML

KEPT = 512  # sources that are kept in colour: those of a set, and some of a student's
# What nbconvert changes in a page that it has made: pictures without a description, and the Lab's own cells.
AFTERTHOUGHT = re.compile(r"<img(?![^>]*\salt=)|jp-Notebook", re.IGNORECASE)


class Unread:
    """A page in which there is nothing to change."""

    def __init__(self, page: str) -> None:
        self._page = page

    def select(self, _: str) -> tuple[()]:
        return ()

    def __str__(self) -> str:
        return self._page


def read_where_needed(page: str, features: str) -> Any:
    """In place of nbconvert's BeautifulSoup: a page of half a megabyte is read anew only when that will change it.

    >>> str(read_where_needed("<p>Right<br>", "html.parser")), str(read_where_needed("<img src='x'>", "html.parser"))
    ('<p>Right<br>', '<img src="x"/>')
    """
    return BeautifulSoup(page, features) if AFTERTHOUGHT.search(page) else Unread(page)


@functools.lru_cache(KEPT)
def _in_colour(source: str, language: str) -> str:
    coloured: str = Highlight2HTML(pygments_lexer=language)(source)  # type: ignore[no-untyped-call]
    return coloured


def in_colour(source: str, language: str | None = None, metadata: Any = None) -> str:
    """The filter `highlight_code`, for notebooks whose language is Python throughout."""
    return _in_colour(source, language or "python")
