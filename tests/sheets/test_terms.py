"""The table of names: every row says something in each column, no name of ours stands twice, and the chapters that were
gone through say the field's words.
"""

import re

import pytest
from tests.chapters import parts_in_figures

from threeloops.sheets import sheet, terms

GONE_THROUGH = ("1_inner_loop", "2_training_loop", "3_product_loop", "4_driving_case_study")
OTHER_PRODUCTS = re.compile(r"product[_ ]loop|dot product", re.IGNORECASE)  # a loop, and a sum: not a matmul


@pytest.mark.parametrize("loop", terms.TERMS)
def test_every_row_is_whole_and_no_name_comes_twice(loop: str) -> None:
    rows = terms.terms(loop).rows
    assert all(len(row) == 3 and all(row) for row in rows)
    assert len({row[0] for row in rows}) == len(rows) >= 30


def test_the_sheet_prints_every_name() -> None:
    printed = sheet.as_text("terms", answers=False)
    assert all(row[0] in printed for rows in terms.TERMS.values() for row in rows)


def test_a_loop_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="loop='product'"):
        terms.terms("product")


def times(words: tuple[str, ...], text: str) -> int:
    """How often a text says one of these words, in singular or plural."""
    return len(re.findall(rf"\b(?:{'|'.join(map(re.escape, words))})s?\b", text, re.IGNORECASE))


def left_alone(text: str) -> list[str]:
    """The retired words of a text that stand without the field's."""
    counts = {word.retired[0]: (times(word.retired, text), times(word.field, text), word.never) for word in terms.FIELD}
    return [
        f"{retired}: {old} times, the field's word {new}"
        for retired, (old, new, never) in counts.items()
        if old and (never or not new)
    ]


@pytest.mark.parametrize("chapter", GONE_THROUGH)
def test_no_part_says_a_retired_word_without_the_field_s(chapter: str) -> None:
    parts = parts_in_figures.parts(parts_in_figures.ROOT / "chapters" / f"{chapter}.ipynb")
    told = {
        heading: OTHER_PRODUCTS.sub(
            "", "\n".join(parts_in_figures.source(cell) for cell in inside if cell["cell_type"] == "markdown")
        )
        for heading, inside in parts.items()
    }
    alone = {heading: found for heading, text in told.items() if (found := left_alone(text))}
    assert not alone


def test_a_retired_word_alone_is_found() -> None:
    assert left_alone("The product is read from device memory by somebody.") == [
        "product: 1 times, the field's word 0",
        "device memory: 1 times, the field's word 0",
        "somebody: 1 times, the field's word 0",
    ]
    assert not left_alone("A product (matmul) is read from device memory (HBM); a thread waits.")
