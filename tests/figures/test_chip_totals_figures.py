"""The pictures of chips for cars: what is drawn is what was given."""

import pytest

from threeloops.driving.datasheet_tops import Piece
from threeloops.figures.driving import brochure_bars, part_roofs


def test_pieces_stand_one_after_the_other_dense_ones_first() -> None:
    pieces = [
        Piece(engine="gpu", dense_ops_per_s=30e12, sparse_extra_ops_per_s=30e12),
        Piece(engine="dla", dense_ops_per_s=20e12, sparse_extra_ops_per_s=0),
    ]
    figure = brochure_bars.brochure_bars({"a chip": pieces}, title="T", caption="C")
    rows = figure.body["layer"][0]["data"]["values"]
    assert [(row["start"], row["end"]) for row in rows] == [(0, 30), (30, 50), (50, 80)]
    assert "80 in all" in figure.alt
    figure.png()
    with pytest.raises(ValueError, match="rows is empty"):
        brochure_bars.brochure_bars({}, title="T", caption="C")


def test_a_roof_bends_at_its_ridge_point() -> None:
    figure = part_roofs.part_roofs(
        {"a chip": (50e12, 100e9)}, stages={"one": 20.0, "two": 800.0, "three": 90.0}, title="T", caption="C"
    )
    line, _, middle, outer = figure.body["layer"]
    assert [(row["at"], row["tera"]) for row in line["data"]["values"]] == [(1, 0.1), (500, 50), (10_000, 50)]
    assert [row["name"] for row in middle["data"]["values"] + outer["data"]["values"]] == ["three", "one", "two"]
    assert "ridge point 500 FLOP/B, one at most 2.00 TOP/s" in figure.alt
    figure.png()
    with pytest.raises(ValueError, match="is not on the chart"):
        part_roofs.part_roofs({"a chip": (50e12, 100e9)}, stages={"far": 2e4}, title="T", caption="C")
    with pytest.raises(ValueError, match="0 parts"):
        part_roofs.part_roofs({}, stages={}, title="T", caption="C")
