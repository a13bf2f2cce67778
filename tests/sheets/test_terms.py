"""The table of names: every row says something in each column, and no name of ours stands twice."""

import pytest

from threeloops.sheets import sheet, terms


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
