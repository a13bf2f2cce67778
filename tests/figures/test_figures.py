"""Figures: what is drawn where, in words and in pixels; no picture is compared with an earlier picture."""

import base64
import itertools
import re
import struct
import xml.etree.ElementTree as ET
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threeloops.facts import hardware
from threeloops.figures import labels, look, still
from threeloops.figures.figure import EMBED, MIME, Figure
from threeloops.figures.inner_loop import roofline
from threeloops.figures.inner_loop.roofline_scale import Scale
from threeloops.models import catalogue, transformer
from threeloops.models.forward_step import ForwardStep
from threeloops.operations.roofline import BOUNDS

LLAMA = catalogue.model("llama-3-8b")
H100 = {"matrix_flops_per_s": 989.4e12, "vector_flops_per_s": 66.9e12, "memory_bytes_per_s": 3.35e12}


def layer_points(phase: str, batch: int, sequence: int = 2048, **machine: float) -> tuple[roofline.Point, ...]:
    step = ForwardStep(
        phase=phase,
        batch=batch,
        sequence=sequence,
        causal="exact",
        fused_attention=True,
        logits="last",
        bytes_per_element=2,
    )
    return roofline.op_points(
        transformer.layer_ops(LLAMA.groups[0][0], hidden=LLAMA.hidden, rotary=True, step=step), **{**H100, **machine}
    )


def drawn(points: tuple[roofline.Point, ...], peak: float = 989.4e12, bandwidth: float = 3.35e12) -> Figure:
    roofs = {"bf16": peak, "fp32": peak / 15}
    return roofline.roofline(
        points, roofs=roofs, memory_bytes_per_s=bandwidth, title="A finding", caption="What to see."
    )


def svg(figure: Figure) -> ET.Element:
    return ET.fromstring(still.svg(figure.spec))


def marks(figure: Figure) -> dict[str, tuple[float, float, str, str]]:
    """Words of a point -> (x, y, colour, outline) in the drawing that Vega made."""
    found = {}
    for path in svg(figure).iter("{http://www.w3.org/2000/svg}path"):
        if "-bound, " in (path.get("aria-label") or ""):
            x, y = re.findall(r"[-\d.]+", path.get("transform"))
            found[path.get("aria-label")] = (float(x), float(y), path.get("fill"), path.get("d"))
    return found


# --- roofline ---


def test_points_stand_where_the_published_roofline_has_them() -> None:
    # Williams et al., 2009: below the ridge point the roof is intensity times bandwidth, so that on paper with equal
    # decades it rises by one decade of FLOP/s per decade of FLOP/B. Two kernels a factor of 100 apart in intensity
    # are 2 decades apart on both axes.
    near, far = (
        roofline.Point(name=name, arithmetic_intensity=i, flops_per_s=i * 3.35e12, bound="memory")
        for name, i in (("near", 0.5), ("far", 50.0))
    )
    (x1, y1, *_), (x2, y2, *_) = marks(drawn((near, far))).values()
    decade_right = look.PLOT_WIDTH / 5.602  # log10(20,000 / 0.05) = 5.602
    decade_up = look.PLOT_HEIGHT / 5  # from the slope's foot, 0.05 x 3.35e12 = 1.7e11, to 1e16
    assert x2 - x1 == pytest.approx(2 * decade_right, rel=1e-3)
    assert y1 - y2 == pytest.approx(2 * decade_up, rel=1e-3)


def test_vega_draws_the_points_where_the_labels_expect_them() -> None:
    figure = drawn(layer_points("decode", 8))
    scale = Scale(top=1e16, decades=5)
    for words, (x, y, *_) in marks(figure).items():
        point = next(point for point in layer_points("decode", 8) if point.sentence == words)
        assert (x, y) == (
            pytest.approx(scale.x(point.arithmetic_intensity), abs=0.1),
            pytest.approx(scale.y(point.flops_per_s), abs=0.1),
        )


def test_bounds_differ_in_colour_and_in_shape() -> None:
    points = (
        roofline.Point(name="a", arithmetic_intensity=1.0, flops_per_s=3.35e12, bound="memory"),
        roofline.Point(name="b", arithmetic_intensity=1000.0, flops_per_s=989e12, bound="compute"),
        roofline.Point(name="c", arithmetic_intensity=0.2, flops_per_s=1e10, bound="overhead"),
    )
    looks = [(colour, outline) for _, _, colour, outline in marks(drawn(points)).values()]
    assert len({colour for colour, _ in looks}) == len({outline for _, outline in looks}) == 3
    assert set(look.BOUND_COLOURS) == set(look.BOUND_SHAPES) == set(BOUNDS)


def test_decode_hangs_under_the_slope_and_prefill_under_the_roof() -> None:
    assert {point.bound for point in layer_points("decode", 8)} == {"memory"}
    prefill = {point.name: point for point in layer_points("prefill", 1)}
    assert prefill["gate up projection"].flops_per_s == 989.4e12
    assert prefill["rotary"].bound == "memory"


def test_points_on_one_place_share_one_mark() -> None:
    names = [point.name for point in layer_points("decode", 8)]
    assert "attention norm, mlp norm" in names
    assert len(names) == 9  # eleven kernels; the two norms and the two residual additions coincide


def test_launches_push_small_kernels_below_the_roof_and_the_chart_grows_down_to_them() -> None:
    points = layer_points("decode", 1, launch_overhead_s=5e-6)
    assert {"overhead"} < {point.bound for point in points}
    lowest = max(y for _, y, *_ in marks(drawn(points)).values())
    assert lowest <= look.PLOT_HEIGHT


def test_double_everything_and_the_picture_is_the_same_shape() -> None:
    doubled = layer_points(
        "decode", 8, matrix_flops_per_s=2 * 989.4e12, vector_flops_per_s=2 * 66.9e12, memory_bytes_per_s=2 * 3.35e12
    )
    for once, twice in zip(layer_points("decode", 8), doubled, strict=True):
        assert (twice.arithmetic_intensity, twice.bound) == (once.arithmetic_intensity, once.bound)
        assert twice.flops_per_s == pytest.approx(2 * once.flops_per_s)


def test_the_words_hold_every_value() -> None:
    points = layer_points("decode", 8)
    alt = drawn(points).alt
    assert all(point.name in alt and point.bound in alt for point in points)
    assert "ridge point 295 FLOP/B" in alt  # 989.4e12 / 3.35e12


@pytest.mark.parametrize(
    "key", [key for key in hardware.part_keys() if {"bf16", "fp32"} <= set(hardware.part(key).peaks)]
)
def test_every_accelerator_of_the_catalogue_fits_on_the_chart(key: str) -> None:
    part = hardware.part(key)
    if "memory_bytes_per_s" not in part.facts:
        pytest.skip(f"{key} has no memory bandwidth in the catalogue")
    peaks = part.peak_flops_per_s("bf16"), part.peak_flops_per_s("fp32")
    points = layer_points(
        "prefill",
        4,
        matrix_flops_per_s=peaks[0],
        vector_flops_per_s=peaks[1],
        memory_bytes_per_s=part["memory_bytes_per_s"],
    )
    figure = roofline.roofline(
        points,
        roofs={"bf16": peaks[0], "fp32": peaks[1]},
        memory_bytes_per_s=part["memory_bytes_per_s"],
        title="t",
        caption="c",
    )
    assert all(0 <= x <= look.PLOT_WIDTH and 0 <= y <= look.PLOT_HEIGHT for x, y, *_ in marks(figure).values())
    assert len(marks(figure)) == len(points)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arithmetic_intensity": 0.04}, "arithmetic_intensity=0.04 of 'k' must lie on the chart"),
        ({"arithmetic_intensity": 2.1e4}, "must lie on the chart, between 0.05 and 20000 FLOP/B"),
        ({"bound": "latency"}, "bound='latency' is not known"),
        ({"flops_per_s": 0}, "flops_per_s=0 must be greater than 0"),
    ],
)
def test_points_off_the_chart_are_refused(change: dict[str, object], message: str) -> None:
    fine = {"name": "k", "arithmetic_intensity": 0.05, "flops_per_s": 1e12, "bound": "memory"}
    roofline.Point(**fine)
    with pytest.raises(ValueError, match=re.escape(message)):
        roofline.Point(**{**fine, **change})


def test_a_chart_without_a_roof_is_refused() -> None:
    with pytest.raises(ValueError, match="roofs is empty; a roofline needs at least one peak"):
        roofline.roofline([], roofs={}, memory_bytes_per_s=1e12, title="t", caption="c")
    roofline.roofline([], roofs={"bf16": 1e15}, memory_bytes_per_s=1e12, title="t", caption="c").png()


def test_measured_calls_stand_below_the_roof_that_they_do_not_beat() -> None:
    calls = [(1.0, 2e12), (1000.0, 8e14), (0.1, 1e11)]
    figure = roofline.roofline(
        [],
        roofs={"bf16": 1e15},
        memory_bytes_per_s=3e12,
        title="A finding",
        caption="What to see.",
        measured=calls,
    )
    assert "3 measured calls, from 100 GFLOP/s to 800 TFLOP/s" in figure.alt
    dots = [
        tuple(map(float, re.findall(r"[-\d.]+", path.get("transform") or "")))
        for path in svg(figure).iter("{http://www.w3.org/2000/svg}path")
        if path.get("fill") == look.INK and path.get("opacity") == "0.6"
    ]
    assert len(dots) == len(calls)
    assert dots[0][0] < dots[1][0]  # more FLOP per byte is further right,
    assert dots[0][1] > dots[1][1]  # and more FLOP/s further up


# --- labels ---


places = st.tuples(st.floats(0, 500), st.floats(20, 200), st.text("abc", min_size=1, max_size=9))


@given(st.lists(places, max_size=7))
@example([(0, 20, "a"), (0, 20, "a"), (0, 27, "a"), (0, 27, "a")])  # two leaders to cross, or a text to cover
def test_no_two_labels_touch_and_none_leaves_the_plot(found: list[tuple[float, float, str]]) -> None:
    marks = [labels.Mark(x=x, y=y, name=name) for x, y, name in found]
    boxes = [spot.text(mark) for mark, spot in zip(marks, labels.beside(marks, width=550, height=330), strict=True)]
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))
    assert all(
        box.left >= -labels.EDGE and box.right <= 550 + labels.EDGE and box.top >= 0 and box.bottom <= 330
        for box in boxes
    )


def test_labels_with_room_stay_beside_their_points() -> None:
    marks = [labels.Mark(x=100, y=y, name="a kernel") for y in (20, 50, 80)]
    assert labels.beside(marks, width=550, height=330) == [labels.Spot(row=y, side=1) for y in (20, 50, 80)]


def test_a_label_makes_way_for_a_line_and_for_what_is_written_there() -> None:
    mark = labels.Mark(x=100, y=100, name="a kernel")
    (spot,) = labels.beside([mark], width=550, height=330, lines=[labels.Line(0, 100, 550, 100)])
    assert abs(spot.row - 100) >= labels.ROW / 2
    (spot,) = labels.beside([mark], width=550, height=330, taken=[labels.Box(left=101, top=90, right=550, bottom=110)])
    assert spot == labels.Spot(row=100, side=-1)


def test_labels_without_room_are_all_there() -> None:
    # A dozen names in a plot that has room for two: some must cover others, none may be lost.
    assert len(labels.beside([labels.Mark(x=20, y=10, name="a kernel")] * 12, width=60, height=30)) == 12


# --- figure and still picture ---


def test_a_notebook_gets_drawing_picture_and_words() -> None:
    figure = drawn(layer_points("decode", 8))
    data, metadata = figure._repr_mimebundle_()
    assert data[MIME]["description"] == figure.alt
    assert base64.b64decode(data["image/png"]).startswith(still.SIGNATURE)
    assert data["text/plain"].startswith("A finding. Roofline.")
    assert metadata["image/png"]["alt"] == figure.alt
    assert metadata[MIME] == EMBED
    assert "image/svg+xml" not in data, "JupyterLab does not show SVG of a notebook that it does not trust"


def test_the_picture_fits_a_page_and_a_commit() -> None:
    picture = drawn(layer_points("prefill", 1)).png()
    width, height = still.size(picture)
    assert width <= 640
    assert height <= 480
    assert len(picture) < 80_000


def test_a_repacked_picture_has_the_same_pixels() -> None:
    import vl_convert

    bar = {"data": {"values": [{"x": 1}]}, "mark": "bar", "encoding": {"x": {"field": "x", "type": "quantitative"}}}
    made = vl_convert.vegalite_to_png(bar, vl_version=still.VEGA_LITE)
    packed = still.repacked(made)
    assert struct.unpack(">II", packed[16:24]) == struct.unpack(">II", made[16:24])

    def pixels(picture: bytes) -> bytes:
        return zlib.decompress(b"".join(body for kind, body in still._chunks(picture) if kind == b"IDAT"))

    assert pixels(packed) == pixels(made)
    for kind, body in still._chunks(packed):  # a reader of PNG refuses a chunk whose checksum is wrong
        assert struct.pack(">I", zlib.crc32(kind + body)) in packed


def test_text_is_at_least_nine_points_on_paper() -> None:
    # 160 mm of text width for 640 pixels: one pixel is 0.25 mm, and 9 points are 3.175 mm, so 12.7 pixels.
    sizes = [
        float(size) for size in re.findall(r'font-size="([\d.]+)px"', still.svg(drawn(layer_points("decode", 8)).spec))
    ]
    assert sizes
    assert min(sizes) >= 12.7


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [*look.BOUND_COLOURS.values(), *look.SERIES_COLOURS, look.GREY, look.INK])
def test_colours_stand_out_from_the_paper(colour: str) -> None:
    # WCAG 2.2, 1.4.11: graphics need a contrast of 3 to 1; 1.4.3: text 4.5 to 1.
    contrast = (luminance(look.PAPER) + 0.05) / (luminance(colour) + 0.05)
    assert contrast >= (4.5 if colour in (look.GREY, look.INK) else 3)
