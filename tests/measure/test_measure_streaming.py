"""Streaming scores, with a tracker that is never wrong: what is lost is the latency's alone. And the recorder."""

import json

import pytest

from threeloops.facts import recorded_drive as kept
from threeloops.measure.driving import bev_network, faster_network, pipeline, recorded_drive, streaming
from threeloops.simulate.driving import rays

SEEDS = range(930_000, 930_004)


@pytest.fixture(scope="module")
def perfect() -> list[streaming.Watched]:
    frames = [rays.frames(seed, 1)[0] for seed in SEEDS]
    return [streaming.Watched(frame=frame, tracks=rays.truth(frame)) for frame in frames]


def scored(watched: list[streaming.Watched], repair: str, latency_s: float, within_m: float = 0.5) -> float:
    return streaming.score(watched, latency_s=latency_s, repair=repair, within_m=within_m)


def test_without_latency_a_perfect_tracker_is_perfect(perfect: list[streaming.Watched]) -> None:
    assert [scored(perfect, repair, 0.0) for repair in streaming.REPAIRS] == [1.0, 1.0, 1.0]


def test_latency_costs_those_who_do_not_predict(perfect: list[streaming.Watched]) -> None:
    seen, own, predicted = (scored(perfect, repair, 0.3) for repair in streaming.REPAIRS)
    assert seen < 0.3
    assert own < 0.6
    assert predicted > 0.95


def test_who_forgives_more_metres_sees_less_of_it(perfect: list[streaming.Watched]) -> None:
    assert scored(perfect, "as seen", 0.1, within_m=2.0) > scored(perfect, "as seen", 0.1) + 0.3


def test_an_unknown_repair_is_refused(perfect: list[streaming.Watched]) -> None:
    with pytest.raises(ValueError, match="repair='guessed'"):
        scored(perfect, "guessed", 0.1)


def test_drives_go_through_the_chain_and_keep_the_last_frames() -> None:
    watched = streaming.drives(
        bev_network.BirdsEye().eval(), period_s=0.1, frames=3, judged=2, seeds=[930_000, 930_001]
    )
    assert [round(one.frame.t_s, 3) for one in watched] == [0.1, 0.2, 0.1, 0.2]


def test_the_recorder_writes_what_the_library_reads() -> None:
    seen = rays.frames(930_002, 3, 1 / recorded_drive.RATE_HZ)
    way = faster_network.as_trained(bev_network.BirdsEye().eval())
    made = json.loads(json.dumps(recorded_drive.drive({"shared fp32": way}, seen, warm=1)))
    assert set(made) == {"stamp", "rate_hz", "stages", "frames", "milliseconds"}
    assert set(made["stamp"]) == set(kept.drive().stamp)
    assert tuple(made["stages"]) == kept.drive().stages == pipeline.STAGES
    assert len(made["frames"]) == 2
    for clock in kept.CLOCKS:
        assert [len(frame) for frame in made["milliseconds"][clock]["shared fp32"]] == [len(pipeline.STAGES)] * 2
    assert all(len(car) == 6 for frame in made["frames"] for car in frame["cars"])
