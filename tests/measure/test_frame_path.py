"""A frame's way through memory: packed pixels come back, both orders give one picture, and the tensors hold the bytes
that the formula says.
"""

import pytest
import torch

from threeloops.driving import sensor_data
from threeloops.measure.driving import frame_path


def test_packed_pixels_come_back() -> None:
    pixels = torch.tensor([[0x123, 0xABC, 0xFFF, 0x000]])
    packed = torch.tensor([[0x12, 0xAB, 0xC3, 0xFF, 0x00, 0x0F]], dtype=torch.uint8)
    assert torch.equal(frame_path.unpacked(packed).long(), pixels)


def test_both_orders_give_the_same_picture_and_move_what_the_formula_says() -> None:
    packed = frame_path.packed_frames(cameras=2, width=48, height=32)
    large = frame_path.walked(packed, "large first", shrink=4, repeats=1)
    small = frame_path.walked(packed, "small first", shrink=4, repeats=1)
    assert large.picture.shape == (2, 3, 8, 12)
    torch.testing.assert_close(large.picture, small.picture, atol=1e-4, rtol=1e-4)
    pixels = 2 * 48 * 32
    for walk, passes in ((large, (1.5, 2, 2, 12, 12, 12, 12, 0.75)), (small, (1.5, 2, 2, 0.75, 0.75, 0.75))):
        assert walk.moved_bytes == sensor_data.passes_bytes_per_s(pixels_per_s=pixels, pass_bytes_per_pixel=passes)
        assert walk.seconds > 0


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ValueError, match="large first"):
        frame_path.walked(frame_path.packed_frames(cameras=1, width=16, height=8), "middle first", shrink=2)
