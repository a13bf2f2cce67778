"""Recorded drive: two seconds of one drive through the whole chain, kept for the explorer, which runs without torch.

    python -m threeloops.measure.driving.recorded_drive lib/threeloops/facts/drives/drive.json

What it keeps: where the vehicle and the cars were at every frame, what the tracker said of them, and how long each
stage took, for separate and shared backbones, fp32 and INT8: once as processor time of this process (what a clock shows
on a core that nobody else uses), once on the clock beside two processes that compute without end.
"""

import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import onnxruntime
import torch

from threeloops import wall_clock
from threeloops.measure.driving import bev_training, engine_pieces, faster_network, pipeline
from threeloops.measure.driving.faster_network import Pieces
from threeloops.simulate.driving import rays, scenes
from threeloops.units import ms

SEED, RATE_HZ, WARM, KEPT = 910_006, 30, 20, 60
NEIGHBOURS, TASKS, SURE = 2, 3, 0.4  # a box with a lower score is not shown


def drive(ways: dict[str, Pieces], seen: list[rays.Frame], *, warm: int = WARM) -> dict[str, Any]:
    """One drive, as it is kept: without its first frames, in which the tracker learns velocities."""
    frames = [_frame(frame, result) for frame, result in zip(seen, _run(ways["shared fp32"], seen), strict=True)]
    quiet = {name: _seconds(way, seen, time.process_time)[warm:] for name, way in ways.items()}
    others = [multiprocessing.Process(target=_busy, daemon=True) for _ in range(NEIGHBOURS)]
    for other in others:
        other.start()
    crowded = {name: _seconds(way, seen, time.perf_counter)[warm:] for name, way in ways.items()}
    for other in others:
        other.terminate()
    return {
        "stamp": _stamp(),
        "rate_hz": RATE_HZ,
        "stages": pipeline.STAGES,
        "frames": frames[warm:],
        "milliseconds": {"quiet": quiet, "crowded": crowded},
    }


def _run(way: Pieces, seen: list[rays.Frame]) -> list[pipeline.Result]:
    chain = way.chain()
    return [chain.run(frame) for frame in seen]


def _seconds(way: Pieces, seen: list[rays.Frame], clock: Callable[[], float]) -> list[list[float]]:
    """Milliseconds of every stage of every frame, by this clock."""
    with mock.patch.object(pipeline, "time", SimpleNamespace(perf_counter=clock)):
        return [[round(s / ms, 2) for s in result.seconds.values()] for result in _run(way, seen)]


def _frame(frame: rays.Frame, result: pipeline.Result) -> dict[str, Any]:
    """The vehicle, the cars that it could see, and what the tracker said of cars: all over ground."""
    ego = frame.ego
    true = rays.truth(frame).of(scenes.CAR).in_world(ego)
    said = result.tracks.of(scenes.CAR).in_world(ego)
    said = said.only(said.score >= SURE)
    return {
        "ego": _rounded(ego.x_m, ego.y_m, ego.yaw_rad),
        "cars": [
            [int(number), *_rounded(*place, yaw, *size[:2])]
            for number, place, yaw, size in zip(true.ids, true.centre, true.yaw, true.size, strict=True)
        ],
        "tracks": [
            _rounded(*place, *velocity, yaw, *size[:2])
            for place, velocity, yaw, size in zip(said.centre, said.velocity, said.yaw, said.size, strict=True)
        ],
    }


def _rounded(*values: float) -> list[float]:
    return [round(float(value), 3) for value in values]


def _busy() -> None:
    torch.set_num_threads(1)
    one = torch.ones(512, 512)
    while True:
        one = (one @ one).clamp(0, 1)


def _stamp() -> dict[str, str]:
    return {
        "hardware": f"{_processor()}, one thread",
        "software": ", ".join(
            (
                f"torch {torch.__version__}",
                f"onnxruntime {onnxruntime.__version__}",
                f"Python {platform.python_version()}",
            )
        ),
        "measured": wall_clock.now().date().isoformat(),
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in known.read_text().splitlines() if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()


def main() -> None:
    torch.set_num_threads(1)
    network = bev_training.detector()
    int8 = engine_pieces.graphs(network).pieces("int8", network.lift)
    fp32 = faster_network.as_trained(network)
    ways = {
        "separate fp32": faster_network.encoder_per_task(network, tasks=TASKS),
        "shared fp32": fp32,
        "separate int8": Pieces(
            backbone=lambda images: [int8.backbone(images) for _task in range(TASKS)][-1],
            lift=int8.lift,
            heads=int8.heads,
        ),
        "shared int8": int8,
    }
    kept = drive(ways, rays.frames(SEED, WARM + KEPT, 1 / RATE_HZ))
    lines = (
        json.dumps(kept, separators=(",", ":"))
        .replace('{"ego"', '\n{"ego"')
        .replace('"milliseconds"', '\n"milliseconds"')
    )
    Path(sys.argv[1]).write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
