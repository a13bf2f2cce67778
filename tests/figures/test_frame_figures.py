"""The way of a frame: every number that it is given stands in its words, in order."""

import pytest

from threeloops.figures.driving import frame_way

WIRES = (("sensor\nraw", "24 Gbit/s"), ("serialiser", "35 Gbit/s"), ("receiver", ""))
ENGINES = (("ISP", "4 GB/s", "3 GB/s"), ("network", "1 GB/s", ""))


def test_every_wire_and_every_pass_is_told() -> None:
    figure = frame_way.frame_way(wires=WIRES, written="5 GB/s", engines=ENGINES, title="Five", caption="A sketch.")
    assert "sensor raw to serialiser: 24 Gbit/s. serialiser to receiver: 35 Gbit/s." in figure.alt
    assert "receiver writes 5 GB/s to memory. ISP reads 4 GB/s and writes 3 GB/s. network reads 1 GB/s." in figure.alt
    assert figure.body["width"] <= 640
    assert figure.png()


def test_a_way_without_a_wire_or_an_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="two stations"):
        frame_way.frame_way(wires=WIRES[:1], written="1 B/s", engines=ENGINES, title="", caption="")
    with pytest.raises(ValueError, match="one engine"):
        frame_way.frame_way(wires=WIRES, written="1 B/s", engines=(), title="", caption="")
