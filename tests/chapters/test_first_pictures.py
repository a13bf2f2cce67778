"""A part's first picture stands before its third paragraph."""

import re

from tests.chapters import parts_in_figures

CHAPTERS = ("1_inner_loop", "2_training_loop", "3_product_loop", "4_driving_case_study")
MOST = 2  # paragraphs before the picture
NO_PROSE = ("#", ">", "|", "$$", "```", "<", "- ")


def paragraphs_before(cells: list[parts_in_figures.Cell]) -> int:
    """Paragraphs of prose before a part's first picture: cards, headings, tables, formulas and lists aside."""
    found = 0
    for cell in cells:
        if parts_in_figures.pictures([cell]):
            break
        if cell["cell_type"] == "markdown":
            blocks = re.split(r"\n\s*\n", parts_in_figures.source(cell))
            found += sum(bool(block.strip()) and not block.strip().startswith(NO_PROSE) for block in blocks)
    return found


def test_a_picture_stands_before_the_third_paragraph() -> None:
    late = {}
    for chapter in CHAPTERS:
        parts = parts_in_figures.parts(parts_in_figures.ROOT / "chapters" / f"{chapter}.ipynb")
        for heading, cells in parts.items():
            before = paragraphs_before(cells)
            if before > MOST:
                late[f"{chapter[0]}.{heading.split()[1]}"] = before
    assert not late


def test_prose_is_counted_and_what_is_none_is_not() -> None:
    told = {"cell_type": "markdown", "source": "### A heading\n\nOne.\n\n$$x$$\n\n| a |\n\nTwo."}
    drawn = {"cell_type": "code", "source": "", "outputs": [{"data": {"image/png": ""}}]}
    assert paragraphs_before([told, drawn, told]) == 2
