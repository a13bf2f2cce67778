"""What a perception chain costs: every formula against frames that are worked through picture by picture."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.driving import perception_cost
from threeloops.models import catalogue
from threeloops.simulate.driving import perception_frames, vehicle

EXAMPLE = {"cameras": 6, "image_flops": 8.5e9, "heads_flops": 4.5e9}


@given(
    cameras=st.integers(1, 8),
    image=st.integers(1, 100),
    heads=st.lists(st.integers(0, 50), min_size=1, max_size=4),
)
def test_sharing_an_encoder_computes_each_picture_once(cameras: int, image: int, heads: list[int]) -> None:
    for shared in (True, False):
        counted = perception_frames.flops_of_a_frame(
            cameras=cameras, tasks=len(heads), shared=shared, image_flops=image, head_flops=heads
        )
        assert counted == perception_cost.perception_flops(
            cameras=cameras, encoders=1 if shared else len(heads), image_flops=image, heads_flops=sum(heads)
        )


def test_the_slides_sum_and_the_fair_one() -> None:
    """153 to 55.5 GFLOP counts the heads on one side only."""
    apart = perception_cost.perception_flops(**EXAMPLE, encoders=3)
    together = perception_cost.perception_flops(**EXAMPLE, encoders=1)
    assert (apart, together) == (157.5e9, 55.5e9)
    assert perception_cost.saved_share(before=[153e9], after=[together]) == pytest.approx(0.637, abs=5e-4)
    assert perception_cost.saved_share(before=[apart], after=[together]) == pytest.approx(0.648, abs=5e-4)


@given(height=st.integers(1, 12), width=st.integers(1, 12), times=st.integers(1, 3), kernel=st.integers(1, 3))
def test_a_convolutions_work_grows_with_the_area(height: int, width: int, times: int, kernel: int) -> None:
    small = perception_frames.flops_of_a_convolution(height=height, width=width, kernel=kernel, channels=3)
    large = perception_frames.flops_of_a_convolution(
        height=times * height, width=times * width, kernel=kernel, channels=3
    )
    told = perception_cost.flops_at(flops=small, pixels=height * width, new_pixels=times**2 * height * width)
    assert told == large


@given(
    height=st.integers(1, 8), width=st.integers(1, 8), times=st.integers(1, 3), cameras=st.integers(1, 4),
    heads=st.integers(0, 500),
)  # fmt: skip
def test_larger_pictures_leave_the_heads_on_their_grid_alone(
    height: int, width: int, times: int, cameras: int, heads: int
) -> None:
    small, large = (
        perception_frames.flops_of_a_convolution(height=side * height, width=side * width, kernel=1, channels=3)
        for side in (1, times)
    )
    counted = perception_frames.flops_of_a_frame(
        cameras=cameras, tasks=1, shared=True, image_flops=large, head_flops=[heads]
    )
    image = perception_cost.flops_at(flops=small, pixels=height * width, new_pixels=times**2 * height * width)
    assert counted == perception_cost.perception_flops(
        cameras=cameras, encoders=1, image_flops=image, heads_flops=heads
    )


def test_the_slides_frame_at_two_megapixels() -> None:
    image = perception_cost.flops_at(flops=8.4e9, pixels=380 * 380, new_pixels=1920 * 1080)
    apart, shared = (
        perception_cost.perception_flops(cameras=6, encoders=n, image_flops=image, heads_flops=4.5e9) for n in (3, 1)
    )
    assert (round(apart / 1e9), round(shared / 1e9)) == (2176, 728)
    assert perception_cost.saved_share(before=[apart], after=[shared]) == pytest.approx(0.665, abs=5e-4)


@pytest.mark.parametrize("key", catalogue.convnet_keys())
def test_real_networks_follow_the_area_within_a_few_percent(key: str) -> None:
    small, large = (catalogue.convnet(key, height=h, width=w) for h, w in ((380, 380), (1080, 1920)))
    told = perception_cost.flops_at(flops=small.flops, pixels=380 * 380, new_pixels=1080 * 1920)
    assert large.flops == pytest.approx(told, rel=0.04)


@given(stages=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 100)), min_size=1, max_size=6))
def test_what_a_table_saves_is_seen_by_a_frame_that_goes_through_it(stages: list[tuple[int, int]]) -> None:
    before = [Fraction(stage) for stage, _ in stages]
    after = [stage * (100 - cut) / 100 for stage, (_, cut) in zip(before, stages, strict=True)]
    (_, slow), (_, fast) = (
        vehicle.frames_through(some, period=Fraction(1000), frames=1)[0] for some in (before, after)
    )
    assert perception_cost.saved_share(
        before=[float(stage) for stage in before], after=[float(stage) for stage in after]
    ) == pytest.approx(float(1 - fast / slow), abs=1e-12)


@given(needed=st.lists(st.booleans(), min_size=1, max_size=40), always=st.integers(1, 40), extra=st.integers(0, 20))
def test_work_that_is_sometimes_done_counts_by_its_share_and_the_longest_frame_stays(
    needed: list[bool], always: int, extra: int
) -> None:
    times = perception_frames.seconds_of_frames(always=Fraction(always), sometimes=Fraction(extra), needed=needed)
    told = perception_cost.mean_frame_s(always_s=always, sometimes_s=extra, share=sum(needed) / len(needed))
    assert float(sum(times) / len(times)) == pytest.approx(told)
    assert max(times) == always + extra * any(needed)


@given(cameras=st.integers(2, 12), data=st.data())
def test_cameras_that_take_turns_are_as_old_as_the_formula_says(cameras: int, data: st.DataObject) -> None:
    fresh = data.draw(st.integers(1, cameras))
    ages = perception_frames.turns(cameras=cameras, fresh=fresh, frames=4 * cameras)
    oldest = max(max(frame) for frame in ages[2 * cameras :])
    assert oldest == perception_cost.oldest_view_frames(cameras=cameras, reused=cameras - fresh)


@given(cameras=st.integers(2, 8), data=st.data(), camera=st.integers(1, 9), align=st.integers(0, 9))
def test_a_frame_with_turns_takes_what_the_formula_says(
    cameras: int, data: st.DataObject, camera: int, align: int
) -> None:
    fresh = data.draw(st.integers(1, cameras - 1))
    times = perception_frames.seconds_with_turns(
        cameras=cameras,
        fresh=fresh,
        camera=Fraction(camera),
        align=Fraction(align),
        others=Fraction(7),
        frames=3 * cameras,
    )
    told = perception_cost.reused_frame_s(
        cameras=cameras, reused=cameras - fresh, camera_s=camera, align_s=align, others_s=7
    )
    assert set(times) == {told}


def test_deformable_attention_reads_what_its_loops_read() -> None:
    sizes = {"queries": 25, "layers": 2, "heads": 3, "levels": 2, "points": 4}
    assert perception_cost.attention_samples(**sizes) == perception_frames.places_read(**sizes)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: perception_cost.saved_share(before=[1], after=[1, 2]), "compare the same parts"),
        (lambda: perception_cost.saved_share(before=[0], after=[0]), "the sum before"),
        (lambda: perception_cost.oldest_view_frames(cameras=6, reused=6), "somebody has to look"),
        (lambda: perception_cost.mean_frame_s(always_s=1, sometimes_s=1, share=30), "between 0 and 1"),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()  # type: ignore[operator]
