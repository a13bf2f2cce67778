"""What is made is read back by Python's own parser of HTML."""

from html.parser import HTMLParser

import pytest

from threeloops.markup import Markup, each, element, lines, page, table, text

HOSTILE = ("<script>alert(1)</script>", "a & b", "&lt;", '"quoted"', "it's", "</p><p>", "<!-- -->", "Größe ≤ 3")


class Read(HTMLParser):
    """The tags of a page with their attributes, and its words."""

    def __init__(self, made: str) -> None:
        super().__init__()
        self.tags, self.words = list[tuple[str, dict[str, str | None]]](), ""
        self.feed(made)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize("said", HOSTILE)
def test_words_stay_words_wherever_they_stand(said: str) -> None:
    assert (read := Read(element("p", said, [said, None, [said]], title=said))).words == 3 * said
    assert read.tags == [("p", {"title": said})]
    assert Read(lines(said, [said])).words == f"{said}\n{said}"
    told = Read(table([said], [[said], [element("td", said)]], caption=element("caption", said)))
    assert told.words == 4 * said
    assert [tag for tag, _ in told.tags] == ["table", "caption", "thead", "tr", "th", "tbody", *["tr", "td"] * 2]
    whole = Read(page(said, text(each("li", [said, said])), "p { color: red }"))
    assert [tag for tag, _ in whole.tags] == ["html", "head", "meta", "meta", "title", "style", "body", "li", "li"]


def test_attributes_are_named_as_in_html() -> None:
    made = element("div", class_="a b", aria_label="x", hidden=True, id=None)
    assert Read(made).tags == [("div", {"class": "a b", "aria-label": "x", "hidden": None})]


def test_markup_is_not_escaped_twice() -> None:
    assert text(element("b", "1 < 2"), Markup("<br>")) == "<b>1 &lt; 2</b><br>"


def test_what_looks_like_a_cell_and_is_text_gets_one() -> None:
    assert Read(table([], [["<td>"]])).words == "<td>"
