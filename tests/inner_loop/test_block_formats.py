"""Block formats against tensors that are really packed into bits, and scales against torch's."""

import math
import random

import pytest

from threeloops import dtypes
from threeloops.inner_loop import block_formats as blocks
from threeloops.inner_loop.number_formats import E2M1, E4M3, rounded
from threeloops.measure.inner_loop import number_formats as torch_formats
from threeloops.simulate.inner_loop import packed_blocks

MX = [blocks.MXFP8_E5M2, blocks.MXFP8_E4M3, blocks.MXFP6_E3M2, blocks.MXFP6_E2M3, blocks.MXFP4]
by_name = {"ids": lambda form: form.name}


def normal(count: int, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0, 0.02) for _ in range(count)]


@pytest.mark.parametrize(
    ("form", "bits"),
    [
        # OCP MX v1.0, table 1: 32 elements share 8 bits. gpt-oss model card (arXiv:2508.10925): "4.25 bits per
        # parameter" in MXFP4
        (blocks.MXFP4, 4.25),
        (blocks.MXFP6_E2M3, 6.25),
        (blocks.MXFP8_E4M3, 8.25),
        # 2509.25149: blocks of 16 with an 8-bit scale: 4 + 8/16
        (blocks.NVFP4, 4.5),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_published_bits(form: blocks.BlockFormat, bits: float) -> None:
    assert form.bits_per_element == bits


def test_the_dtype_table_counts_the_same_bits() -> None:
    for form in (*MX, blocks.NVFP4):
        assert dtypes.BITS[form.name.split()[0].lower()] == form.bits_per_element


@pytest.mark.parametrize("form", MX, **by_name)
@pytest.mark.parametrize("elements", [1, 32, 33, 200])
def test_mx_tensors_take_the_bits_and_mean_the_values_that_packing_gives(
    form: blocks.BlockFormat, elements: int
) -> None:
    grid = packed_blocks.grid(form.element.name)
    values = [*normal(elements - 1), 0.5]
    written = packed_blocks.packed(values, grid=grid, block=form.block)
    assert len(written) == 8 * blocks.stored_bytes(elements, form)
    assert packed_blocks.unpacked(written, elements=elements, grid=grid, block=form.block) == list(
        blocks.quantised(values, form).values
    )


@pytest.mark.parametrize("elements", [16, 17, 160])
def test_nvfp4_tensors_take_the_bits_that_packing_takes(elements: int) -> None:
    assert len(packed_blocks.packed_in_two_levels(normal(elements), block=16)) == 8 * blocks.stored_bytes(
        elements, blocks.NVFP4
    )


def test_nvfp4_scales_are_torchs_e4m3_of_the_ideal_ones() -> None:
    values = normal(320)
    stored = blocks.quantised(values, blocks.NVFP4)
    ideal = [max(map(abs, values[start : start + 16])) / 6 / stored.tensor_scale for start in range(0, 320, 16)]
    # a cast starts from fp32: none of these lies within its rounding of a tie
    assert list(stored.scales) == torch_formats.cast(ideal, "e4m3")
    assert max(stored.scales) == 448


def test_mx_scales_are_numbers_that_torchs_e8m0_keeps() -> None:
    scales = blocks.quantised(
        [value * 2.0**power for power in (-60, 0, 60) for value in normal(32)], blocks.MXFP4
    ).scales
    assert list(scales) == torch_formats.cast(scales, "e8m0")


def test_fp8_tiles_are_what_torch_makes_of_scaled_values() -> None:
    values = [*normal(127), 3.0, *normal(100, seed=2)]
    stored = blocks.quantised(values, blocks.FP8_TILES)
    assert list(stored.scales) == torch_formats.cast([3.0 / 448, max(map(abs, values[128:])) / 448], "fp32")
    scaled = [value / stored.scales[place // 128] for place, value in enumerate(values)]
    assert list(stored.elements) == torch_formats.cast(scaled, "e4m3")
    # 2412.19437, section 3.3.2: one fp32 scale per 1 × 128 tile: 8 + 32/128
    assert blocks.FP8_TILES.bits_per_element == 8.25


def test_a_block_keeps_powers_of_two_and_saturates_above_six() -> None:
    # 7.9 has the power of two 4 = 2^2, E2M1's own largest: scale 1, and 7.9 becomes 6
    assert blocks.quantised([7.9, 1.0], blocks.MXFP4).values == (6.0, 1.0)
    assert blocks.quantised([8.0, 1.0], blocks.MXFP4).values == (8.0, 1.0)


def test_one_outlier_costs_its_own_block_only() -> None:
    values = [*normal(31), 8.0, *normal(32, seed=2)]
    calm = [*normal(32), *normal(32, seed=2)]
    hit, spared = blocks.quantised(values, blocks.MXFP4).values, blocks.quantised(calm, blocks.MXFP4).values
    assert set(hit[:31]) <= {0.0, -0.0}
    assert hit[32:] == spared[32:]


def test_scaling_a_tensor_by_a_power_of_two_scales_what_is_kept() -> None:
    values = normal(64)
    for form in blocks.BLOCK_FORMATS.values():
        once, twice = blocks.quantised(values, form), blocks.quantised([2 * value for value in values], form)
        assert [2 * value for value in once.values] == list(twice.values)
        assert once.elements == twice.elements


def test_every_error_is_at_most_half_of_the_widest_gap() -> None:
    stored = blocks.quantised(normal(320), blocks.NVFP4)
    for value, kept, scale in zip(
        normal(320), stored.values, (s for s in stored.scales for _ in range(16)), strict=True
    ):
        # the widest gap of E2M1 is 2, between 4 and 6; a scale rounded down may cut off up to 6 × 1/16 more
        assert abs(value - kept) <= scale * stored.tensor_scale * 1.0001
    assert all(rounded(element, E2M1, overflow="saturate") == element for element in stored.elements)
    assert all(rounded(scale, E4M3, overflow="saturate") == scale for scale in stored.scales)


def test_zeros_stay_zeros() -> None:
    for form in blocks.BLOCK_FORMATS.values():
        assert blocks.quantised([0.0] * 40, form).values == (0.0,) * 40
        last = blocks.quantised([0.0] * 128 + [1.0], form)
        assert all(math.isfinite(value) for value in last.values)
        assert last.elements[:128] == (0.0,) * 128


def test_refusals() -> None:
    bare = blocks.BlockFormat(name="bare", element=E2M1, block=32, tensor_scale_bits=0)
    assert blocks.stored_bytes(32, bare) == (32 * 4 + 8) / 8
    assert blocks.stored_bytes(1, blocks.MXFP4) == 1.5
    with pytest.raises(ValueError, match=r"elements=0 must be a whole number of at least 1"):
        blocks.stored_bytes(0, blocks.MXFP4)
    with pytest.raises(ValueError, match=r"values is empty"):
        blocks.quantised([], blocks.MXFP4)
    with pytest.raises(ValueError, match=r"block=0 must be a whole number of at least 1"):
        blocks.BlockFormat(name="none", element=E2M1, block=0)
