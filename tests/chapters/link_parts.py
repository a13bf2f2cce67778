"""Link every mention of a part to its heading: python tests/chapters/link_parts.py chapters/1_inner_loop.ipynb

"part 4" in a sentence becomes [part 4](#4-The-programming-model-·-80-min), "part 2 of chapter 3" a link into the
notebook of that chapter, and a link that is already there gets the heading's present anchor. Running it twice changes
nothing. Code, formulas, headings and other links are left alone.
An anchor is the heading's text with spaces as "-": what nbconvert (and so code hosts) writes into the page, and what
lab/ goes to in JupyterLab.
"""

import json
import re
import string
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

HEADING = re.compile(r"^## (?P<number>[0-9]+|[A-Z][0-9]?) (?P<title>.+)$")
NUMBER = r"(?:[1-9][0-9]?|F[0-9]?)\b"
# "part 4", "Parts 3, 5 and 8"; not "part 2 of the training loop", which is another chapter's.
MENTION = re.compile(
    rf"\b(?P<word>[Pp]arts?) (?P<numbers>{NUMBER}(?:(?:, and |, | and | or | to ){NUMBER})*)(?! of (?!this chapter))"
)
ELSEWHERE = re.compile(rf"\b[Pp]art (?P<number>{NUMBER}) of chapter (?P<chapter>\d)\b")
LINK = re.compile(r"\[(?P<words>[^\]]*?(?P<number>[0-9]+|[A-Z][0-9]?))\]\(#(?P<anchored>[0-9]+|[A-Z][0-9]?)-[^)\s]*\)")
HTML_LINK = re.compile(
    r'<a href="#(?P<anchored>[0-9]+|[A-Z][0-9]?)-[^"]*">(?P<words>[^<]*?(?P<number>[0-9]+|[A-Z][0-9]?))</a>'
)
# A link into another chapter, in markdown or in HTML: what stands before its "#" is that notebook.
LINK_ELSEWHERE = re.compile(
    r'(?P<before>\]\(|<a href=")(?P<chapter>\d)_\w+\.ipynb#(?P<number>[0-9]+|[A-Z][0-9]?)-[^)"\s]*(?=[)"])'
)
# What no mention is looked for in: fences, code, formulas, links and pictures, HTML links, tags.
LEFT_ALONE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$|!?\[[^\]]*\]\([^)]*\)|<a [^>]*>.*?</a>|<[^>\n]*>", re.DOTALL
)
HTML_BLOCK = re.compile(r"\s*</?(details|summary|table|tr|td|div|p|dl|dt|dd|ul|ol|li)\b")


def anchor(heading: str) -> str:
    """Where a heading's text can be linked to, as it stands in markdown.

    >>> anchor("4 The programming model · 80 min"), anchor("2 Words (few)")
    ('4-The-programming-model-·-80-min', '2-Words-%28few%29')
    """
    return re.sub(r"[()<>\"%]", lambda sign: f"%{ord(sign[0]):02X}", heading.replace(" ", "-"))


def anchors(sources: Iterable[str]) -> dict[str, str]:
    """Number of a part -> anchor of its heading."""
    lines = (line for source in sources for line in source.splitlines())
    return {match["number"]: anchor(match[0].removeprefix("## ")) for line in lines if (match := HEADING.match(line))}


def anchors_elsewhere(path: Path) -> dict[str, str]:
    """ "3/7" (part 7 of chapter 3) -> notebook and anchor, for every chapter that stands beside this notebook."""
    return {
        f"{other.name[0]}/{number}": f"{other.name}#{there}"
        for other in sorted(path.parent.glob("[1-9]_*.ipynb"))
        if other != path
        for number, there in anchors(markdown(json.loads(other.read_text(encoding="utf-8")))).items()
    }


def markdown(notebook: dict[str, Any]) -> list[str]:
    """The text of every cell that is prose."""
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]


def linked(source: str, known: dict[str, str]) -> str:
    """The markdown with every mention of a known part linked, and every link to a part renewed."""
    return "".join(piece if fenced else _linked_line(piece, known, html) for piece, fenced, html in _pieces(source))


def unknown(source: str, known: dict[str, str]) -> list[str]:
    """Numbers of mentioned parts that the notebook does not have."""
    said = [
        number
        for match in MENTION.finditer(LEFT_ALONE.sub(" ", source))
        for number in re.findall(NUMBER, match["numbers"])
    ]
    return [number for number in said if number not in known]


def _pieces(source: str) -> Iterator[tuple[str, bool, bool]]:
    """(line, inside a fence or a heading, inside an HTML block, where markdown's own links do not work)."""
    fence = html = False
    for line in source.splitlines(keepends=True):
        mark = line.lstrip("> ").startswith("```")
        html = bool(line.strip()) and (html or bool(HTML_BLOCK.match(line)))
        yield line, fence or mark or line.startswith("#"), html
        fence ^= mark


def _linked_line(line: str, known: dict[str, str], html: bool) -> str:
    def renewed(match: re.Match[str]) -> str:
        fits = match["number"] == match["anchored"] and match["number"] in known
        return _link(match["words"], known[match["number"]], html) if fits else match[0]

    def renewed_elsewhere(match: re.Match[str]) -> str:
        target = known.get(f"{match['chapter']}/{match['number']}")
        if target is None:
            return match[0]
        return match["before"] + (target if match["before"] == "](" else quote(target, safe=string.punctuation))

    line = HTML_LINK.sub(renewed, LINK.sub(renewed, LINK_ELSEWHERE.sub(renewed_elsewhere, line)))
    done, end = [], 0
    for kept in LEFT_ALONE.finditer(line):
        done += [_mentions(line[end : kept.start()], known, html), kept[0]]
        end = kept.end()
    return "".join([*done, _mentions(line[end:], known, html)])


def _mentions(words: str, known: dict[str, str], html: bool) -> str:
    def links(match: re.Match[str]) -> str:
        first, *_ = re.findall(NUMBER, match["numbers"])
        rest = re.sub(
            NUMBER,
            lambda number: _link(number[0], known[number[0]], html) if number[0] in known else number[0],
            match["numbers"][len(first) :],
        )
        named = f"{match['word']} {first}"
        return (_link(named, known[first], html) if first in known else named) + rest

    def links_elsewhere(match: re.Match[str]) -> str:
        key = f"{match['chapter']}/{match['number']}"
        return _link(match[0], known[key], html) if key in known else match[0]

    return ELSEWHERE.sub(links_elsewhere, MENTION.sub(links, words))


def _link(words: str, target: str, html: bool) -> str:
    if "#" not in target:
        target = f"#{target}"
    # JupyterLab follows an HTML link as one inside the page only if it is written as the browser reads it: with "·"
    # as %C2%B7.
    return f'<a href="{quote(target, safe=string.punctuation)}">{words}</a>' if html else f"[{words}]({target})"


def rewritten(notebook: dict[str, Any], elsewhere: dict[str, str]) -> tuple[int, list[str]]:
    """Link a notebook in place: how many cells changed, and which mentions have no part to go to."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    known = anchors(markdown(notebook)) | elsewhere
    changed, lost = 0, []
    for cell in cells:
        before = "".join(cell["source"])
        after = linked(before, known)
        lost += [f"{cell['id']}: part {number}" for number in unknown(before, known)]
        if after != before:
            cell["source"] = after.splitlines(keepends=True)
            changed += 1
    return changed, lost


def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        changed, lost = rewritten(notebook, anchors_elsewhere(path))
        if changed:
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path}: {changed} cells changed" + "".join(f"\n  no such part: {place}" for place in lost))


if __name__ == "__main__":
    main(sys.argv[1:])
