"""Voxel grids, slow and fast loops and windows of frames, held against cells, clocks and pictures that are counted."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.driving import frame_window, language_loop, voxel_grids
from threeloops.driving.language_loop import LanguageLoop
from threeloops.driving.slow_fast import SlowFast
from threeloops.simulate.driving import slow_fast_clocks, voxel_scenes, word_clock

small = st.integers(1, 7)


@given(small, small, small, st.integers(1, 4), st.integers(1, 4))
def test_a_grid_and_its_planes_take_what_is_written(x: int, y: int, z: int, channels: int, wide: int) -> None:
    kept = {"channels": channels, "bytes_per_element": wide}
    assert voxel_grids.dense_bytes((x, y, z), **kept) == voxel_scenes.bytes_dense((x, y, z), **kept)
    assert voxel_grids.planes_bytes((x, y, z), **kept) == voxel_scenes.bytes_in_planes((x, y, z), **kept)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 8), st.integers(0, 99))
def test_a_list_takes_what_is_written(channels: int, wide: int, index: int, seed: int) -> None:
    street = voxel_scenes.street((24, 16, 5), edge_m=0.8, boxes=3, seed=seed)
    kept = {"channels": channels, "bytes_per_element": wide, "index_bytes": index}
    assert voxel_grids.listed_bytes(len(street), **kept) == voxel_scenes.bytes_listed(street, **kept)


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 8))
def test_list_and_grid_are_equal_at_the_break_even_share(channels: int, wide: int, index: int) -> None:
    kept = {"channels": channels, "bytes_per_element": wide}
    share = voxel_grids.break_even_share(**kept, index_bytes=index)
    listed = voxel_grids.listed_bytes(share * 1000, **kept, index_bytes=index)
    assert listed == pytest.approx(voxel_grids.dense_bytes((10, 10, 10), **kept))


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 8))
def test_cells_are_added_until_the_list_is_longer_than_the_grid(channels: int, wide: int, index: int) -> None:
    kept = {"channels": channels, "bytes_per_element": wide}
    grid = voxel_scenes.bytes_dense((5, 5, 4), **kept)
    occupied: dict[tuple[int, int, int], int] = {}
    while voxel_scenes.bytes_listed(occupied, **kept, index_bytes=index) <= grid:
        occupied[len(occupied), 0, 0] = 1
    share = voxel_grids.break_even_share(**kept, index_bytes=index)
    assert len(occupied) - 1 <= share * 5 * 5 * 4 < len(occupied) + 1e-9


@given(st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(1, 9)), st.integers(1, 8))
def test_cells_are_laid_side_by_side_until_the_box_is_full(sides: tuple[int, int, int], edge: int) -> None:
    extent = [side * edge for side in sides]  # in tenths of a metre
    laid = [sum(1 for _start in range(0, length, edge)) for length in extent]
    whole = (extent[0] / 10, extent[1] / 10, extent[2] / 10)
    assert voxel_grids.cells(extent_m=whole, edge_m=edge / 10) == tuple(laid)


def test_an_edge_that_leaves_a_rest_is_refused() -> None:
    with pytest.raises(ValueError, match="does not divide"):
        voxel_grids.cells(extent_m=(10.0, 10.0, 1.0), edge_m=0.3)


def test_a_finer_street_fills_a_smaller_share() -> None:
    shares = []
    for edge in (0.8, 0.4):
        shape = voxel_grids.cells(extent_m=(40.0, 40.0, 6.4), edge_m=edge)
        shares.append(len(voxel_scenes.street(shape, edge_m=edge, boxes=8, seed=1)) / (shape[0] * shape[1] * shape[2]))
    assert shares[1] < 0.7 * shares[0]


@given(*[st.integers(1, 900)] * 4)
def test_ages_are_what_the_clocks_show(
    slow_latency: int, slow_period: int, fast_latency: int, fast_period: int
) -> None:
    told = SlowFast(
        slow_latency_s=slow_latency,
        slow_period_s=slow_period,
        fast_latency_s=fast_latency,
        fast_period_s=fast_period,
    )
    clocks = {
        "slow_latency": Fraction(slow_latency),
        "slow_period": Fraction(slow_period),
        "fast_latency": Fraction(fast_latency),
        "fast_period": Fraction(fast_period),
    }
    assert told.oldest_s == float(slow_fast_clocks.oldest(**clocks))
    assert told.mean_age_s == pytest.approx(float(slow_fast_clocks.mean_age(**clocks)))


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 8), st.integers(1, 50), st.integers(0, 500))
def test_repeated_work_is_what_a_memory_of_pictures_finds(
    cameras: int, window: int, new: int, image: int, other: int
) -> None:
    def pictures(decision: int) -> set[tuple[int, int]]:
        last = window + decision * new
        return {(camera, frame) for camera in range(cameras) for frame in range(last - window, last)}

    again = len(pictures(0) & pictures(1)) * image
    whole = len(pictures(1)) * image + other
    assert frame_window.repeated_flops_share(
        cameras=cameras, window=window, new=new, flops_per_image=image, other_flops=other
    ) == pytest.approx(again / whole)


@given(st.integers(1, 90), st.integers(1, 16), st.integers(1, 4000), st.integers(20, 400), st.integers(5, 900))
@settings(deadline=None)
def test_tokens_are_those_that_a_clock_lets_through(
    parameters: int, bits: int, prompt: int, bandwidth: int, deadline_ms: int
) -> None:
    loop = LanguageLoop(
        num_parameters=parameters * 1e8,
        bits=bits,
        prompt_tokens=prompt,
        memory_bytes_per_s=bandwidth * 1e9,
        peak_flops_per_s=1e14,
        utilisation=0.5,
    )
    step = Fraction(parameters * bits, 8 * bandwidth * 10)
    computing = Fraction(prompt * 2 * parameters, 500_000)
    deadline = Fraction(deadline_ms, 1000) + Fraction(1, 10**7)  # no tie that rounding could decide
    counted = word_clock.tokens_until(deadline, first=max(step, computing), step=step)
    assert loop.tokens_in(float(deadline)) == counted


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.integers(1, 6))
def test_picture_tokens_are_squares_that_are_cut_out(
    cameras: int, frames: int, rows: int, columns: int, edge: int
) -> None:
    """Each pixel says in which square it lies; different squares are different tokens."""
    pixels = ((y // edge, x // edge) for y in range(rows * edge) for x in range(columns * edge))
    squares = len({(camera, frame, *one) for one in pixels for camera in range(cameras) for frame in range(frames)})
    shape = {"height": rows * edge, "width": columns * edge, "edge": edge}
    assert language_loop.picture_tokens(cameras=cameras, frames=frames, **shape) == squares


def test_a_picture_of_broken_squares_is_refused() -> None:
    with pytest.raises(ValueError, match=r"multiples of edge=32"):
        language_loop.picture_tokens(cameras=6, frames=4, height=330, width=576, edge=32)
