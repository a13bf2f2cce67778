"""The book's terms, from A to Z: every word that a part sets in bold where it says what it means, with that sentence
and the way to it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from threeloops.site.parts import Part, headings, label, text

BOLD = re.compile(r"\*\*(?P<term>[^*\n]+?)\*\*(?P<after>.)?")
GREEK = "Greek letters"
MOST_WORDS = 4
MOST_TERMS = 3  # in one sentence: more are a list of signposts
# In bold, and no terms: what the parts say over and over.
SIGNPOSTS = {
    "count",
    "predict",
    "measure",
    "depth",
    "short way",
    "compare",
    "the gap",
    "how many bytes",
    "you need",
    "you get",
}
SENTENCE = re.compile(r"(?<=[.?!:])\s+(?=[A-Z*$\"“(])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word, the sentence that introduces it, and where that stands."""

    term: str
    sentence: str  # markdown
    label: str  # of the heading above it
    part: str  # "1.2 Roofline"


def terms(pages: list[Part]) -> list[Term]:
    """Every term where the book first uses it, from A to Z."""
    found: dict[str, Term] = {}
    for part in pages:
        for term in _of_part(part):
            found.setdefault(term.term.lower().removesuffix("s"), term)
    return sorted(found.values(), key=lambda term: term.term.lower().lstrip("("))


def _of_part(part: Part) -> Iterator[Term]:
    chapter = part.page.partition("_")[0]
    heading = part.title
    for cell in part.cells:
        if cell["cell_type"] != "markdown":
            continue
        for paragraph in re.split(r"\n\s*\n", text(cell)):
            heading = next((title for _, _, title in headings(paragraph)), heading)
            if paragraph.startswith((">", "#", "|", "-", "<", "```")) or re.match(r"\d\. ", paragraph):
                continue
            for sentence in SENTENCE.split(paragraph.replace("\n", " ")):
                bold = list(BOLD.finditer(sentence))
                for match in bold if len(bold) <= MOST_TERMS else ():
                    if _is_term(match["term"], sentence, match.start()):
                        yield Term(
                            term=match["term"],
                            sentence=re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", sentence).strip(),
                            label=label(chapter, heading),
                            part=part.name,
                        )


def _is_term(words: str, sentence: str, start: int) -> bool:
    """Whether bold words name something: few of them, no full stop, and a sentence around them."""
    few = len(words.split()) <= MOST_WORDS and not re.search(r"[.,:;?!$=]$|^\d|^If you|^\W", words)
    alone = len(re.sub(r"\W", "", sentence)) - len(re.sub(r"\W", "", words)) < 12
    return few and not alone and words.lower() not in SIGNPOSTS and sentence.count("$") % 2 == 0


def page(pages: list[Part]) -> str:
    """The page of terms, as markdown."""
    lines = ["(page-terms)=", "# Terms", ""]
    lines += ["Each term with the sentence of the book that introduces it.", ""]
    letter = ""
    for term in terms(pages):
        first = term.term[0].upper()
        group = first if first.isascii() else GREEK  # a Greek capital looks like a Latin one
        if group != letter and first.isalpha():
            letter = group
            lines += [f"## {letter}", ""]
        lines += [term.term, f": {term.sentence} [{term.part}](#{term.label})", ""]
    return "\n".join(lines)
