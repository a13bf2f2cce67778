"""Work of a stage by formula, against filters laid over pictures one place at a time and bytes added up by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.driving import stage_work
from threeloops.simulate.driving import filters

small = st.integers(1, 3)


@settings(max_examples=40)
@given(cameras=small, inside=small, outside=small, kernel=st.sampled_from((1, 3)), stride=st.integers(1, 2), rows=small)
def test_flops_are_what_filters_multiply(
    cameras: int, inside: int, outside: int, kernel: int, stride: int, rows: int
) -> None:
    height, width = 2 * rows, 4
    layers = stage_work.convolutions(((inside, outside, kernel, stride),), height=height, width=width)
    work = stage_work.layers_work(layers, images=cameras, input_elements=1, bytes_per_element=4, passes=0)
    counted = filters.multiply_adds(
        pictures=cameras, rows=height, columns=width, channels=inside, filters=outside, kernel=kernel, stride=stride
    )
    assert work.flops == 2 * counted


def test_bytes_added_up_by_hand() -> None:
    """Two layers on one picture of 4 x 4: every array by its size."""
    layers = stage_work.convolutions(((3, 5, 3, 2), (5, 7, 1, 1)), height=4, width=4)
    work = stage_work.layers_work(layers, images=1, input_elements=48, bytes_per_element=4, passes=2)
    read, written = 48 + 20, 20 + 28
    weights = 3 * 5 * 9 + 5 * 7
    assert work.moved_bytes == 4 * (read + 5 * written + weights)


def test_weights_are_read_once_for_all_pictures() -> None:
    layers = stage_work.convolutions(((3, 5, 3, 1),), height=4, width=4)
    one, two, three = (
        stage_work.layers_work(layers, images=n, input_elements=48, bytes_per_element=4, passes=0).moved_bytes
        for n in (1, 2, 3)
    )
    assert two - one == three - two == 4 * (48 + 80)


def test_the_lift_multiplies_and_adds_every_product() -> None:
    work = stage_work.lift_work(cameras=2, depths=3, pixels=5, context=7, cells=11, bytes_per_element=4)
    products = sum(1 for _ in range(2 * 3 * 5 * 7))
    assert work.flops == 2 * products
    assert work.moved_bytes == 4 * (2 * 5 * (3 + 7) + 2 * 30 + 4 * products + 11 * 7)


def test_a_stride_must_divide() -> None:
    with pytest.raises(ValueError, match="stride"):
        stage_work.convolutions(((3, 5, 3, 2),), height=5, width=4)
