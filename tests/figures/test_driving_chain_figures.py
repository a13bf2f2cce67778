"""Pictures of the driving chain: every mark where its numbers say."""

import struct
import zlib

import numpy as np
import pytest

from threeloops.figures import still
from threeloops.figures.driving import birds_eye, budget_board, camera_strip, chain_frame
from threeloops.figures.driving.birds_eye import Outline
from threeloops.simulate.driving import rays, scenes


def test_a_picture_is_stored_pixel_by_pixel() -> None:
    stored = camera_strip.png([[(1, 2, 3), (4, 5, 6)], [(7, 8, 9), (10, 11, 12)]])
    assert struct.unpack(">II", stored[16:24]) == (2, 2)
    begin = stored.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", stored[begin - 8 : begin - 4])
    assert zlib.decompress(stored[begin : begin + length]) == bytes([0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12])


def test_pictures_of_several_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="2 sizes"):
        camera_strip.camera_strip({"a": [[(1, 1, 1)]], "b": [[(1, 1, 1)] * 2]}, title="t", caption="c")


def test_a_turned_box_has_its_corners_where_they_are() -> None:
    corners = Outline(x_m=10, y_m=0, length_m=4, width_m=2, yaw_rad=np.pi / 2).corners()
    assert sorted((round(x, 6), round(y, 6)) for x, y in corners[:4]) == [(9, -2), (9, 2), (11, -2), (11, 2)]
    assert corners[0] == corners[4]


def test_what_is_out_of_reach_is_not_drawn() -> None:
    figure = birds_eye.birds_eye(road=[(0, 0), (40, 0)], outlines={"true": []}, title="t", caption="c")
    assert len(figure.body["layer"][0]["data"]["values"]) == 1


def test_stages_follow_one_another() -> None:
    figure = budget_board.budget_board({"a": 0.010, "b": 0.030}, deadline_s=0.0333, title="t", caption="c")
    rows = figure.body["layer"][0]["data"]["values"]
    assert [(row["begin"], row["end"]) for row in rows] == [(0.0, 10.0), (10.0, 40.0)]
    assert "33.3 ms" in still.svg(figure.spec)


def test_a_frame_shows_its_true_boxes_and_names_its_cameras() -> None:
    frame = rays.frame(scenes.scene(2), 0.0)
    true = rays.truth(frame)
    seen = chain_frame.from_above(
        frame, road=rays.road_truth(frame), found=true, tracks=true, path=np.zeros((2, 2)), title="t"
    )
    assert seen.alt.count(f"{len(true)} boxes") == 3
    for name in ("front", "left rear"):
        assert name in still.svg(chain_frame.cameras(frame).spec)


def test_the_lift_shows_the_cells_of_a_table() -> None:
    cells = rays.GRID_CELLS
    table = np.full((2, 3, 1, 2), cells**2)  # outside, but for three places
    table[0, 0, 0, 1], table[0, 1, 0, 1], table[1, 2, 0, 0] = 0, cells + 1, 7
    figure = chain_frame.lifted(table, column=1, title="t")
    assert len(figure.body["layer"][0]["data"]["values"]) == 3
    assert "2 boxes at (-32, -32), (-30, -30) m" in figure.alt
