"""The two figures of the reference sheet: what they say in words, and where their points lie."""

import math

import pytest

from threeloops.figures.driving import symptom_tree, technique_map
from threeloops.sheets import techniques


def test_a_technique_stands_where_its_factors_say() -> None:
    figure = technique_map.technique_map(techniques.factors(), title="Map", caption="Computed.")
    assert figure.narrow_body is None  # its places are pixels of the full width
    (points,) = [layer["data"]["values"] for layer in figure.body["layer"] if layer["mark"]["type"] == "point"]
    for point, (name, (faster, less)) in zip(points, techniques.factors().items(), strict=True):
        low, high = technique_map.FASTER
        assert point["x"] / technique_map.WIDTH == pytest.approx(math.log(faster / low) / math.log(high / low))
        low, high = technique_map.LESS
        assert 1 - point["y"] / technique_map.HEIGHT == pytest.approx(math.log(less / low) / math.log(high / low))
        assert f"{name}: {faster:.3g} times as fast" in figure.alt
    names = [
        row["text"]
        for layer in figure.body["layer"]
        if layer["mark"]["type"] == "text"
        for row in layer["data"]["values"]
    ]
    assert sorted(names) == sorted(techniques.factors())


def test_a_factor_beyond_the_axes_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond the axes"):
        technique_map.technique_map({"all": (50.0, 2.0)}, title="", caption="")


def test_the_tree_says_all_of_its_boxes_in_words_and_every_line_fits_its_box() -> None:
    figure = symptom_tree.symptom_tree()
    for told, look, answers in symptom_tree.BRANCHES:
        for text in (told, look, *(part for answer in answers for part in answer)):
            assert text.replace("\n", " ") in figure.alt
            assert max(map(len, text.split("\n"))) * 6.6 <= symptom_tree.COLUMN
    assert figure.png().startswith(b"\x89PNG")
