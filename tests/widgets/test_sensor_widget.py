"""The sensor explorer, from state to text: no browser needed."""

import re

import pytest

from threeloops.simulate.driving import sensors
from threeloops.widgets.driving import sensor_data as widget
from threeloops.widgets.driving.sensor_data_view import BITS, RATES, SIZES, State, arriving_bytes_per_s, loads, view

START = widget.START


def test_the_loads_are_those_of_pixels_walked_one_by_one() -> None:
    one = State(cameras=1, size="1920 × 1080", bits=12, rate=10)
    carried = loads(one)
    row, rows = max(sensors.csi_packets(width=1920, height=1080, bits_per_pixel=12)), 1080 * 113 // 100
    assert carried["CSI-2, 4 lanes"][0] == 8 * row * 10 * rows
    assert carried["10GBASE-T1"][0] == 8 * arriving_bytes_per_s(one)
    small = 704 * 256 * 6 / (1920 * 1080)
    walked = sensors.moved_bytes(pixels=1000, pass_bytes_per_pixel=(2, 2, 1.5, 1.5, small, small))
    assert carried["bus, small first"][0] == pytest.approx(8 * walked / 1000 * 1920 * 1080 * 10)


def test_one_camera_fills_its_own_cable_and_many_fill_what_they_share() -> None:
    few, many = (loads(State(cameras=cameras, size="2880 × 1860", bits=12, rate=30)) for cameras in (2, 12))
    assert few["cable (GMSL2)"] == many["cable (GMSL2)"]
    assert many["10GBASE-T1"][0] == pytest.approx(6 * few["10GBASE-T1"][0])


def test_every_state_can_be_shown() -> None:
    for cameras in (1, 7, 12):
        for size in SIZES:
            shown = view(State(cameras=cameras, size=size, bits=BITS[cameras % 6], rate=RATES[cameras % 7]))
            assert len(shown.rows) == 5
            assert size in shown.summary
            assert ("does not fit" in shown.summary) == any(
                float(row[3].removesuffix(" %").replace(",", "")) > 100 for row in shown.rows
            )


def test_impossible_states_are_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("bits=11 must be one of 8, 10")):
        State(cameras=8, size="1920 × 1080", bits=11, rate=30)


def test_a_turned_control_changes_state_figure_and_words() -> None:
    explorer = widget.explorer()
    before = explorer.panel.shown
    explorer.turn(cameras=1)
    explorer.turn(size="1920 × 1080")
    explorer.turn(bits=24)
    explorer.turn(rate=60)
    assert explorer.state == State(cameras=1, size="1920 × 1080", bits=24, rate=60)
    assert "1 camera of 1920 × 1080 pixels, 24 bits, 60 frames/s" in explorer.view.summary
    assert explorer.panel.shown != before
