"""Figures and explorer of number formats, from state to text and to what Vega draws; no browser needed."""

import itertools
import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from threeloops.figures import look, still
from threeloops.figures.figure import Figure
from threeloops.figures.inner_loop import format_ranges, number_line
from threeloops.inner_loop import number_formats as formats
from threeloops.simulate.inner_loop import bit_patterns
from threeloops.widgets.inner_loop import number_line as widget
from threeloops.widgets.inner_loop.number_line_view import FORMATS, State, view


def ticks(figure: Figure) -> list[tuple[float, float, str]]:
    """(x, y, colour) of every tick that Vega drew."""
    found = []
    for group in ET.fromstring(still.svg(figure.spec)).iter("{http://www.w3.org/2000/svg}g"):
        if "mark-rect" in (group.get("class") or "") and "role-mark" in (group.get("class") or ""):
            for path in group.iter("{http://www.w3.org/2000/svg}path"):
                x, y = (float(number) for number in re.findall(r"-?[\d.]+", path.get("d", ""))[:2])
                found.append((x, y, path.get("fill", "")))
    return found


def drawn(forms: list[formats.Format], **stretch: float) -> Figure:
    return number_line.number_line(forms, title="A finding", caption="What to see.", **stretch)


# --- the number line ---


def test_one_tick_stands_for_every_number_that_enumeration_finds() -> None:
    for form in (formats.E2M1, formats.E2M3, formats.E3M2):
        numbers = bit_patterns.numbers(
            exponent_bits=form.exponent_bits, mantissa_bits=form.mantissa_bits, specials=form.specials
        )
        values = sorted(
            {float(number.value) for number in numbers if number.value is not None and 0 <= number.value <= 4}
        )
        found = ticks(drawn([form], low=0, high=4))
        assert len(found) == len(values)
        # ticks are one pixel wide and drawn from half a pixel to the left
        assert sorted(x + 0.5 for x, _, _ in found) == pytest.approx(
            [look.PLOT_WIDTH * value / 4 for value in values], abs=0.01
        )


def test_subnormal_numbers_have_a_colour_and_a_length_of_their_own() -> None:
    found = ticks(drawn([formats.E2M3], low=0, high=2))
    # E2M3: 2^3 - 1 subnormal numbers above zero
    assert Counter(colour for _, _, colour in found)[look.ORANGE] == 7
    assert {colour: y for _, y, colour in found}[look.ORANGE] > {colour: y for _, y, colour in found}[look.BLUE]


def test_dense_formats_leave_no_visible_hole() -> None:
    xs = sorted(x for x, _, _ in ticks(drawn([formats.FP16], low=0, high=8)))
    assert max(after - before for before, after in itertools.pairwise(xs)) <= 1
    assert len(xs) <= look.PLOT_WIDTH / number_line.APART + 1


def test_words_count_what_is_there() -> None:
    assert "E4M3: 81 numbers" in drawn([formats.E4M3], low=0, high=8).alt
    assert (
        "E2M1: 8 numbers, the closest 0.5 apart, the farthest 2, and ends at 6"
        in drawn([formats.E2M1], low=0, high=8).alt
    )
    assert "E2M1: 0 numbers" in drawn([formats.E2M1], low=7, high=8).alt
    assert drawn([formats.E2M1], low=0, high=8, marked=3.0).alt.endswith("A line at 3.")


def test_impossible_lines_are_refused() -> None:
    assert drawn([formats.E2M1], low=0, high=1e-9).alt
    with pytest.raises(ValueError, match=r"low=8 must be below high=8"):
        drawn([formats.E2M1], low=8, high=8)
    with pytest.raises(ValueError, match=r"at least one format"):
        drawn([], low=0, high=8)
    with pytest.raises(ValueError, match=r"marked=9 must lie between low=0 and high=8"):
        drawn([formats.E2M1], low=0, high=8, marked=9)


# --- ranges ---


def test_lines_of_ranges_have_their_corners_where_the_formats_have_theirs() -> None:
    figure = format_ranges.format_ranges([formats.FP16, formats.E4M3], title="A finding", caption="What to see.")
    words = " ".join(
        path.get("aria-label") or ""
        for path in ET.fromstring(still.svg(figure.spec)).iter("{http://www.w3.org/2000/svg}path")
    )
    for corner in (
        "FP16: largest number 65504",
        "E4M3: largest number 448",
        "E4M3: smallest number 0.00195",
        "FP16: below 6.1e-05 precision is lost",
    ):
        assert corner in words
    assert "FP16: from 5.96e-08 to 65,504, gaps of 0.000977" in figure.alt
    with pytest.raises(ValueError, match=r"6 formats were given; 1 to 5 can be told apart"):
        format_ranges.format_ranges([formats.FP16] * 6, title="A finding", caption="What to see.")


def test_fields_are_as_wide_as_their_bits() -> None:
    figure = format_ranges.bit_fields([formats.FP32, formats.E2M1], title="A finding", caption="What to see.")
    drawn = [box for box in figure.body["layer"][0]["data"]["values"] if box["kind"] != "bare"]
    assert [(box["x2"] - box["x"]) / format_ranges.BIT for box in drawn] == [1, 8, 23, 1, 2, 1]
    assert "mantissa 23" in still.svg(figure.spec)
    assert figure.alt.endswith("E2M1: 1, 2 and 1.")
    with pytest.raises(ValueError, match="forms is empty"):
        format_ranges.bit_fields([], title="A finding", caption="What to see.")


# --- the explorer ---


def test_the_summary_says_what_becomes_of_the_value() -> None:
    # E2M1 has 3 and 4 around 3.32; E4M3 steps by 0.25 between 2 and 4
    assert view(State(formats=("E2M1", "E4M3"), high=8.0, value=3.32)).summary.endswith(
        "3.32 becomes 3 in E2M1, 3.25 in E4M3."
    )
    assert "448, its end, in E4M3" in view(State(formats=("E4M3",), high=512.0, value=500.0)).summary
    assert view(State(formats=("E2M1", "E3M2"), high=8.0, value=3.0)).figure.title == "3 is a number of E2M1 and E3M2"
    assert view(State(formats=("E2M1",), high=8.0, value=0.0)).figure.title == "0 is a number of E2M1"


def test_every_stretch_can_be_shown_with_every_format() -> None:
    for high in widget.HIGHS:
        for value in (0.0, high / 3, high):
            shown = view(State(formats=FORMATS, high=high, value=value))
            assert [row.form.name for row in shown.rows] == list(FORMATS)
            assert shown.table.count("<tr>") == len(FORMATS) + 1


def test_turned_controls_change_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(formats=("FP16",))
    assert explorer.state.formats == ("FP16",)
    assert explorer.panel.shown != before
    assert "in FP16" in explorer.view.summary
    explorer.turn(high=512.0)
    # the value keeps its place on the screen: 3.32 of 8 is 212.5 of 512
    assert explorer.state.value == pytest.approx(212.5, rel=0.002)
    explorer.turn(value=explorer.controls["value"].values[-1] / 2)
    assert explorer.state.value == 256
    assert explorer.view.summary.endswith("256 becomes 256 in FP16.")
    explorer.turn(formats=())
    assert explorer.state.formats == ("FP16",)


def test_a_step_of_a_slider_looks_at_the_numbers_that_can_be_told_apart_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explorer = widget.explorer()
    explorer.turn(formats=FORMATS)
    asked, number_at = [], formats.number_at

    def counted(place: int, form: formats.Format) -> float:
        asked.append(form.name)
        return number_at(place, form)

    monkeypatch.setattr(formats, "number_at", counted)
    explorer.turn(value=explorer.controls["value"].values[50])
    told_apart = look.PLOT_WIDTH / number_line.APART + 1
    assert formats.numbers_up_to(8.0, formats.BF16) > 10 * told_apart  # a step that took them all would not be quick
    for name in FORMATS:
        assert 0 < asked.count(name) < 3 * told_apart, name  # once for each of two colours, and where they begin


def test_impossible_states_are_refused() -> None:
    State(formats=("E2M1",), high=8.0, value=8.0)
    for change, message in (
        ({"formats": ()}, "formats is empty; choose from E2M1"),
        ({"formats": ("E9M9",)}, "format='E9M9' is not known"),
        ({"value": 9.0}, "value=9.0 must not be above high=8.0"),
        ({"high": 0}, "high=0 must be greater than 0"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            State(**{"formats": ("E2M1",), "high": 8.0, "value": 8.0, **change})
