"""What sensors send: every formula against rows, bytes and pulses that are gone through one by one, and against what
data sheets print.
"""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from threeloops.driving import ranging_data, sensor_data
from threeloops.facts import hardware
from threeloops.simulate.driving import sensors

few = st.integers(1, 5)


@settings(max_examples=30)
@given(cameras=few, width=st.integers(1, 9), height=st.integers(1, 9), bits=st.sampled_from((8, 10, 12, 24)), rate=few)
def test_cameras_deliver_what_reading_every_pixel_gives(
    cameras: int, width: int, height: int, bits: int, rate: int
) -> None:
    assert sensor_data.camera_bytes_per_s(
        cameras=cameras, width=width, height=height, bits_per_pixel=bits, frames_per_s=rate
    ) == pytest.approx(
        sensors.bytes_in_a_second(cameras=cameras, width=width, height=height, bits_per_pixel=bits, frames_per_s=rate)
    )


@settings(max_examples=30)
@given(width=st.integers(1, 20), height=st.integers(1, 20), bits=st.sampled_from((8, 12, 16)))
def test_a_picture_is_its_packets(width: int, height: int, bits: int) -> None:
    packets = list(sensors.csi_packets(width=2 * width, height=height, bits_per_pixel=bits))
    assert sensor_data.csi_frame_bytes(width=2 * width, height=height, bits_per_pixel=bits) == sum(packets)
    assert len(packets) == height + 2


@settings(max_examples=30)
@given(width=st.integers(1, 20), height=st.integers(1, 20), pause=st.integers(0, 9), bits=st.sampled_from((8, 12, 16)))
def test_lanes_carry_a_row_in_the_time_of_a_row(width: int, height: int, pause: int, bits: int) -> None:
    rows = list(sensors.csi_packets(width=2 * width, height=height, bits_per_pixel=bits))[1:-1]
    row_s = 1 / (10 * (height + pause))  # ten pictures a second, the pause as long as so many rows
    told = sensor_data.csi_row_bits_per_s(
        width=2 * width, total_height=height + pause, bits_per_pixel=bits, frames_per_s=10
    )
    assert told == pytest.approx(8 * max(rows) / row_s)


@settings(max_examples=30)
@given(width=st.integers(1, 40), height=st.integers(1, 20), bits=st.sampled_from((8, 12, 16)), frames=few)
def test_the_cable_carries_the_clock_through_the_pauses(width: int, height: int, bits: int, frames: int) -> None:
    told = sensor_data.cable_bits_per_s(
        total_width=width, total_height=height, bits_per_pixel=bits, frames_per_s=frames, coded_bits=10, data_bits=9
    )
    sent = sensors.cable_bits(
        total_width=width, total_height=height, bits_per_pixel=bits, frames=frames, coded_bits=10, data_bits=9
    )
    assert 0 <= told - sent < 10  # a group that is not yet full waits


@settings(max_examples=40)
@given(num_bytes=st.integers(1, 400), lane=st.integers(1, 100))
def test_lanes_are_as_few_as_dealing_allows(num_bytes: int, lane: int) -> None:
    assert sensor_data.lanes_needed(bits_per_s=8 * num_bytes, bits_per_s_per_lane=8 * lane) == sensors.fewest_lanes(
        num_bytes, lane_bytes=lane
    )


@given(pixels=st.integers(1, 60), passes=st.lists(st.sampled_from((0.5, 1.5, 2.0, 3.0, 12.0)), min_size=1, max_size=6))
def test_the_bus_pays_for_every_pass(pixels: int, passes: list[float]) -> None:
    assert sensor_data.passes_bytes_per_s(pixels_per_s=pixels, pass_bytes_per_pixel=passes) == sensors.moved_bytes(
        pixels=pixels, pass_bytes_per_pixel=passes
    )


@settings(max_examples=30)
@given(rows=st.integers(1, 300), speed=st.floats(1, 40), distance=st.floats(3, 60))
def test_rows_are_drawn_where_things_are_by_then(rows: int, speed: float, distance: float) -> None:
    values = {"row_time_s": 24e-6, "speed_m_per_s": speed, "focal_pixels": 1500.0, "range_m": distance}
    assert sensor_data.rolling_shift_pixels(rows=rows, **values) == pytest.approx(
        sensors.rows_drawn(rows=rows, **values)[-1]
    )


@settings(max_examples=30)
@given(speed=st.floats(1, 40), distance=st.floats(5, 100), turn=st.floats(0, 0.6), error=st.floats(0.001, 0.02))
def test_a_wrong_stamp_moves_a_point_as_far_as_driving_on_does(
    speed: float, distance: float, turn: float, error: float
) -> None:
    values = {"speed_m_per_s": speed, "range_m": distance, "turn_rad_per_s": turn, "error_s": error}
    assert sensor_data.stamp_error_m(**values) == pytest.approx(sensors.misplaced_m(**values), rel=0.01)


@settings(max_examples=20)
@given(beams=st.integers(1, 12), firing_us=st.integers(2000, 9000), sweeps=st.sampled_from((5, 10, 20)), returns=few)
def test_a_turn_has_the_points_that_its_pulses_bring(beams: int, firing_us: int, sweeps: int, returns: int) -> None:
    points, turns = sensors.lidar_second(
        beams=beams, firing_s=Fraction(firing_us, 10**6), sweeps_per_s=sweeps, returns=returns
    )
    assert ranging_data.lidar_points_per_sweep(
        beams=beams, firing_s=firing_us / 10**6, sweeps_per_s=sweeps, returns=returns
    ) == pytest.approx(float(points / turns))


@settings(max_examples=20)
@given(beams=st.integers(1, 20), firings=few, other=st.integers(0, 100))
def test_a_lidar_sends_the_packets_that_it_fills(beams: int, firings: int, other: int) -> None:
    firing, seconds = Fraction(533, 10**7), 7 * firings * Fraction(533, 10**7)
    sent = sensors.lidar_packets(
        beams=beams, point_bytes=3, firings=firings, other_bytes=other, seconds=seconds, firing_s=firing
    )
    assert ranging_data.lidar_bytes_per_s(
        beams=beams, point_bytes=3, firings=firings, other_bytes=other, firing_s=float(firing)
    ) == pytest.approx(float(sent / seconds))


@settings(max_examples=20)
@given(beams=st.integers(1, 20), firings=few, other=st.integers(0, 100), packets=st.integers(2, 9), returns=few)
def test_a_turn_is_sent_in_the_packets_of_all_returns(
    beams: int, firings: int, other: int, packets: int, returns: int
) -> None:
    """A turn of so many packets: what each return sends in that time."""
    firing = Fraction(533, 10**7)
    turn_s = packets * firings * firing
    packet = {"beams": beams, "point_bytes": 3, "firings": firings, "other_bytes": other, "firing_s": firing}
    sent = sum(sensors.lidar_packets(**packet, seconds=turn_s) for _return in range(returns))
    one = sensors.lidar_packets(**packet, seconds=firings * firing)
    assert ranging_data.lidar_bytes_per_sweep(
        packets_per_s=float(1 / (firings * firing)), packet_bytes=one, returns=returns, sweeps_per_s=float(1 / turn_s)
    ) == pytest.approx(sent)


def test_velodynes_own_figures_follow() -> None:
    """The manual prints 7,804,867.2 bytes a second in 6,253.9 packets; the packet's parts are in its section 9."""
    vls = hardware.part("velodyne-vls-128")
    points = int(vls["beams"] * vls["firings_per_packet"])
    other = 42 + 12 * 4 + 6
    assert points * 3 + other == vls["packet_bytes"]
    told = ranging_data.lidar_bytes_per_s(
        beams=128, point_bytes=3, firings=3, other_bytes=other, firing_s=vls["firing_s"]
    )
    assert told == pytest.approx(7_804_867.2, rel=1e-5)
    assert vls["packets_per_s"] * points == pytest.approx(128 / vls["firing_s"], rel=1e-5)


@settings(max_examples=20)
@given(speed=st.floats(1, 40), sweeps=st.sampled_from((5, 10, 20)))
def test_a_wall_is_sheared_by_what_the_car_drove(speed: float, sweeps: int) -> None:
    wall = sensors.swept_wall(speed_m_per_s=speed, sweeps_per_s=sweeps, columns=180, ahead_m=40, widest_deg=60)
    assert len(wall) > 50
    for turned, _, place, put in wall:
        assert place == pytest.approx(40)
        assert place - put == pytest.approx(
            ranging_data.sweep_shift_m(speed_m_per_s=speed, sweeps_per_s=sweeps, turned_share=turned), abs=1e-9
        )


@settings(max_examples=20)
@given(samples=st.integers(1, 20), chirps=few, transmitters=few, receivers=few, size=st.sampled_from((2, 4)))
def test_a_cube_is_every_sample_of_every_pair(
    samples: int, chirps: int, transmitters: int, receivers: int, size: int
) -> None:
    shape = {"samples": samples, "chirps": chirps, "transmitters": transmitters, "receivers": receivers}
    assert ranging_data.radar_cube_bytes(**shape, bytes_per_sample=size) == sensors.radar_cube(
        **shape, bytes_per_sample=size
    )


def test_a_squeezed_stream_just_fits_its_link_and_fills_its_drive() -> None:
    stream, link = 720e6, 1e9
    factor = sensor_data.compression_needed(stream_bytes_per_s=stream, link_bits_per_s=link, usable_share=0.8)
    assert 8 * stream / factor == pytest.approx(0.8 * link)
    written, seconds = 0.0, 0
    while written + stream / factor <= 2e12:
        written, seconds = written + stream / factor, seconds + 1
    assert math.floor(
        sensor_data.drive_lasts_s(drive_bytes=2e12, stream_bytes_per_s=stream, compression=factor)
    ) == pytest.approx(seconds, abs=1)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: sensor_data.csi_frame_bytes(width=3, height=2, bits_per_pixel=12), "must be whole bytes"),
        (lambda: sensor_data.passes_bytes_per_s(pixels_per_s=1, pass_bytes_per_pixel=()), "is empty"),
        (lambda: sensor_data.passes_bytes_per_s(pixels_per_s=1, pass_bytes_per_pixel=(2, 0)), "pass 2=0"),
        (
            lambda: sensor_data.compression_needed(stream_bytes_per_s=1, link_bits_per_s=1, usable_share=80),
            "between 0 and 1",
        ),
        (
            lambda: ranging_data.lidar_bytes_per_sweep(packets_per_s=9, packet_bytes=5, returns=0, sweeps_per_s=2),
            "returns=0 must be a whole number of at least 1",
        ),
        (lambda: ranging_data.sweep_shift_m(speed_m_per_s=1, sweeps_per_s=10, turned_share=1.5), "between 0 and 1"),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()  # type: ignore[operator]


def test_two_clocks_are_apart_by_the_ticks_that_one_has_more() -> None:
    for ppm, seconds in ((50, 100), (100, 30), (7, 1000)):
        told = sensor_data.clock_offset_s(drift=ppm * 1e-6, seconds=seconds)
        assert told == pytest.approx(
            sensors.ticks_apart_s(ticks_per_s=10_000, extra_ppm=ppm, seconds=seconds), abs=1e-4
        )
