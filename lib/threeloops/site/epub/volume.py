"""The book as one EPUB file: title page, contents, every part of every chapter, the terms.

Sources:  W3C, EPUB 3.3, https://www.w3.org/TR/epub-33/; W3C, EPUB Accessibility 1.1, https://www.w3.org/TR/epub-a11y-11/
"""

import html
import itertools
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from threeloops.site import chapters
from threeloops.site.epub import leaves
from threeloops.site.epub.leaves import PICTURES, Leaf
from threeloops.site.front.edition import Edition
from threeloops.site.parts import Part

FILE = "three-loops.epub"
STYLE = Path(__file__).with_name("book.css")
FOLDER = "EPUB"
TERMS = "terms"
CONTAINER = f"""<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="{FOLDER}/package.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
"""
KINDS = {".xhtml": "application/xhtml+xml", ".css": "text/css", ".png": "image/png", ".svg": "image/svg+xml"}
# https://www.w3.org/2021/a11y-discov-vocab/latest/
ACCESS = {
    "accessMode": ("textual", "visual"),
    "accessModeSufficient": ("textual",),
    "accessibilityFeature": ("MathML", "alternativeText", "structuralNavigation", "tableOfContents"),
    "accessibilityHazard": ("none",),
    "accessibilitySummary": ("Every picture has words with its values, and every formula is MathML.",),
}
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">
<head><title>{title}</title><link rel="stylesheet" type="text/css" href="book.css"/></head>
<body>{body}</body>
</html>
"""
NOTE = (
    "Made from the book’s pages. A number that is asked for before it is shown stays folded where your reader can fold;"
    " answers to everything else stand at the end of each part. Pictures that move on the pages stand still here, and"
    " code that only gets things ready is left out. Drills are judged on the pages, in JupyterLab and in the terminal."
)


def write(parts: Sequence[Part], folder: Path, told: Edition) -> Path:
    """Bind the built pages of a folder, whose pictures are the notebooks' own still, into a book in that folder."""
    pages = [*(part.page for part in parts), TERMS]
    made = {page: leaves.leaf(page, (folder / f"{page}.html").read_text(encoding="utf-8")) for page in pages}
    lead = leaves.leader(made, told.address)
    files: dict[str, bytes] = {
        "title.xhtml": PAGE.format(title=html.escape(told.title), body=_title_page(told)).encode(),
        "contents.xhtml": PAGE.format(title="Contents", body=_contents(parts, made)).encode(),
        STYLE.name: STYLE.read_bytes(),
        **{one.file: leaves.bound(one, lead) for one in made.values()},
    }
    for one in made.values():
        files |= {f"{PICTURES}/{name}": drawing.encode() for name, drawing in one.drawings.items()}
        files |= {f"{PICTURES}/{name}": (folder / "_images" / name).read_bytes() for name in one.pictures}
    files["package.opf"] = _package(files, made, told).encode()
    with zipfile.ZipFile(folder / FILE, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr(zipfile.ZipInfo("META-INF/container.xml"), CONTAINER, zipfile.ZIP_DEFLATED)
        for name, content in sorted(files.items()):
            packed = zipfile.ZIP_STORED if name.endswith(".png") else zipfile.ZIP_DEFLATED
            book.writestr(zipfile.ZipInfo(f"{FOLDER}/{name}"), content, packed)
    return folder / FILE


def _title_page(told: Edition) -> str:
    title, _, more = told.title.partition(": ")
    where = "".join(
        f'<p><a href="{html.escape(to)}">{said}</a></p>'
        for said, to in (("The pages of this book", told.address), ("Its source", told.repository))
        if to
    )
    return (
        f'<section class="title-page"><h1>{html.escape(title)}</h1>'
        f"<p>{html.escape(more[:1].upper() + more[1:])}</p><p>{html.escape(told.authors)}</p>"
        f"<p>Version {told.version} of {told.date}</p>"
        f"<p>Code under the {told.licence} licence, prose and pictures under CC BY 4.0.</p>{where}"
        f"<p>To cite it: {html.escape(told.cited)}</p><p>{NOTE}</p></section>"
    )


def _contents(parts: Sequence[Part], made: Mapping[str, Leaf]) -> str:
    def entry(page: str, said: str, below: str = "") -> str:
        return f'<li><a href="{made[page].file}">{html.escape(said)}</a>{below}</li>'

    lines = ['<li><a href="title.xhtml">Title page</a></li>']
    for _, run in itertools.groupby(parts, key=lambda part: part.notebook):
        opening, *rest = run
        below = "".join(entry(part.page, part.name) for part in rest)
        lines.append(entry(opening.page, chapters.chapter_title(opening), f"<ol>{below}</ol>"))
    lines.append(entry(TERMS, made[TERMS].title))
    return f'<nav epub:type="toc" role="doc-toc"><h1>Contents</h1><ol>{"".join(lines)}</ol></nav>'


def _package(files: Mapping[str, bytes], made: Mapping[str, Leaf], told: Edition) -> str:
    """What is in the book, and in which order."""
    properties = {one.file: "mathml" for one in made.values() if one.has_formulas} | {"contents.xhtml": "nav"}
    items, names = [], {}
    for number, name in enumerate(sorted(files)):
        names[name] = f"item-{number}"
        kept = f' properties="{properties[name]}"' if name in properties else ""
        items.append(f'<item id="item-{number}" href="{name}" media-type="{KINDS[Path(name).suffix]}"{kept}/>')
    order = ["title.xhtml", "contents.xhtml", *(one.file for one in made.values())]
    access = "".join(
        f'<meta property="schema:{name}">{value}</meta>\n' for name, values in ACCESS.items() for value in values
    )
    named = uuid.uuid5(uuid.NAMESPACE_URL, f"{told.title} {told.version} {told.date}")
    return f"""<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="book" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="book">urn:uuid:{named}</dc:identifier>
<dc:title>{html.escape(told.title)}</dc:title>
<dc:creator>{html.escape(told.authors)}</dc:creator>
<dc:language>en</dc:language>
<dc:date>{told.date}</dc:date>
<dc:rights>Code: {told.licence}. Prose and pictures: CC BY 4.0.</dc:rights>
<meta property="dcterms:modified">{told.date}T00:00:00Z</meta>
<meta property="schema:version">{told.version}</meta>
{access}</metadata>
<manifest>
{chr(10).join(items)}
</manifest>
<spine>
{chr(10).join(f'<itemref idref="{names[name]}"/>' for name in order)}
</spine>
</package>
"""
