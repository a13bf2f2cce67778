"""The same sheets and key as a Word document, to be edited before they are printed: paragraphs and tables with named
styles, in the parts that an Office Open XML package must have (ECMA-376, part 1, WordprocessingML,
https://ecma-international.org/publications-and-standards/standards/ecma-376/).

>>> document([paragraph("8 < 9 & more")]).startswith(b"PK")
True
"""

import io
import re
import zipfile
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from threeloops import units
from threeloops.paper import quiz as quizzes
from threeloops.paper.printed import KEY_NOTE, head, how, identity, right
from threeloops.paper.quiz import Asked, Quiz, Version

TWIPS_PER_M = 1_440 / units.inch
STAMP = (1980, 1, 1, 0, 0, 0)  # the same quiz makes the same file
NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that no XML may hold
TEXT_WIDTH = 10_204  # twips: of A4, between margins of 15 mm
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
PARTS = {
    "[Content_Types].xml": (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{_TYPE}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{_TYPE}.styles+xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" Type="{_RELATION}/officeDocument"'
        ' Target="word/document.xml"/></Relationships>'
    ),
    "word/_rels/document.xml.rels": (
        f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="rId1" Type="{_RELATION}/styles"'
        ' Target="styles.xml"/></Relationships>'
    ),
}
# Style -> (its name in Word, size in half points, how its letters and lines are).
STYLES = {
    "Normal": ("Normal", 22, "", '<w:spacing w:after="80"/>'),
    "Heading1": ("heading 1", 30, "<w:b/>", '<w:keepNext/><w:spacing w:before="120" w:after="80"/>'),
    "Heading2": ("heading 2", 24, "<w:b/>", '<w:keepNext/><w:spacing w:before="240" w:after="60"/>'),
    "Working": ("Working", 18, '<w:rFonts w:ascii="Courier New" w:hAnsi="Courier New"/>', '<w:spacing w:after="80"/>'),
    "Identity": ("Identity", 16, '<w:color w:val="444444"/>', '<w:spacing w:before="40" w:after="0"/>'),
}
BELOW = '<w:tcBorders><w:bottom w:val="single" w:sz="4" w:space="0" w:color="555555"/></w:tcBorders>'


def _runs(text: str) -> str:
    lines = (f'<w:t xml:space="preserve">{escape(line)}</w:t>' for line in NO_XML.sub(" ", text).split("\n"))
    return f"<w:r>{'<w:br/>'.join(lines)}</w:r>"


def paragraph(text: str, style: str = "Normal", *, keep: bool = False, new_page: bool = False) -> str:
    """One paragraph; `keep` holds its lines together and to the next one, `new_page` begins a page with it.

    >>> paragraph("a < b\\nc", "Heading2").count("<w:br/>")
    1
    """
    how_it_stands = "<w:keepNext/><w:keepLines/>" * keep + "<w:pageBreakBefore/>" * new_page
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{how_it_stands}</w:pPr>{_runs(text)}</w:p>'


def table(
    rows: Sequence[Sequence[str]], widths: Sequence[int], *, height_m: float | None = None, keep: bool = False
) -> str:
    """A table with a line below each row; a row is at least so high, grows with what is written in it, and is not
    torn apart, with `keep` not from what follows either.
    """
    height = f'<w:trHeight w:val="{round(height_m * TWIPS_PER_M)}" w:hRule="atLeast"/>' if height_m else ""
    grid = "".join(f'<w:gridCol w:w="{width}"/>' for width in widths)
    body = ""
    for row in rows:
        cells = "".join(
            f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/>{BELOW}</w:tcPr>{paragraph(cell, keep=keep)}</w:tc>'
            for cell, width in zip(row, widths, strict=True)
        )
        body += f"<w:tr><w:trPr><w:cantSplit/>{height}</w:trPr>{cells}</w:tr>"
    return (
        f'<w:tbl><w:tblPr><w:tblW w:w="{sum(widths)}" w:type="dxa"/><w:tblLayout w:type="fixed"/></w:tblPr>'
        f"<w:tblGrid>{grid}</w:tblGrid>{body}</w:tbl>"
    )


def document(blocks: Iterable[str]) -> bytes:
    """The file of a document: A4, one column."""
    page = (
        '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="964" w:right="851" w:bottom="964" w:left="851"'
        ' w:header="567" w:footer="567" w:gutter="0"/></w:sectPr>'
    )
    parts = PARTS | {
        "word/document.xml": f"<w:document {W}><w:body>{''.join(blocks)}{page}</w:body></w:document>",
        "word/styles.xml": f"<w:styles {W}>{''.join(_style(key) for key in STYLES)}</w:styles>",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name, STAMP), HEAD + content, compress_type=zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _style(key: str) -> str:
    name, size, letters, lines = STYLES[key]
    default = ' w:default="1"' * (key == "Normal")
    based = '<w:basedOn w:val="Normal"/>' * (key != "Normal")
    return (
        f'<w:style w:type="paragraph"{default} w:styleId="{key}"><w:name w:val="{name}"/>{based}<w:qFormat/>'
        f'<w:pPr>{lines}</w:pPr><w:rPr>{letters}<w:sz w:val="{size}"/></w:rPr></w:style>'
    )


def sheets(quiz: Quiz, versions: Sequence[Version], *, space_m: float) -> bytes:
    """All versions in one document, each beginning on a page of its own, with so many metres for each answer."""
    blocks = []
    for version in versions:
        blocks += [
            paragraph(head(quiz, version), "Heading1", new_page=version is not versions[0]),
            paragraph("Name: ______________________________   Id: ________________"),
            paragraph(how(quiz, version)),
        ]
        for place, asked in enumerate(version.questions, start=1):
            blocks += [
                paragraph(f"{place}. {asked.question.title}", "Heading2"),
                paragraph(asked.question.text, keep=True),
                table([["Answer:"]], [TEXT_WIDTH], height_m=space_m, keep=True),
                paragraph(identity(asked), "Identity"),
            ]
    return document(blocks)


def key(quiz: Quiz, versions: Sequence[Version]) -> bytes:
    """The key to all versions, in a document of its own."""
    blocks = [paragraph(f"{KEY_NOTE} Quiz seed: {quiz.seed}")]
    for version in versions:
        blocks.append(paragraph(f"{head(quiz, version)} · KEY", "Heading1", new_page=version is not versions[0]))
        for place, asked in enumerate(version.questions, start=1):
            blocks += _entry(place, asked)
    return document(blocks)


def _entry(place: int, asked: Asked) -> list[str]:
    wrong = [list(pair) for pair in quizzes.slips(asked)]
    return [
        paragraph(f"{place}. {asked.question.title}: {right(asked)}", "Heading2"),
        paragraph(asked.question.working, "Working"),
        *([table([["would have written", "tell them"], *wrong], [2_604, TEXT_WIDTH - 2_604])] if wrong else []),
        paragraph(identity(asked), "Identity"),
    ]
