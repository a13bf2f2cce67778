"""Interview draws of driving: speeds, frame rates and periods that people say. One more chapter of band_draws."""

from itertools import product

from threeloops.drills.engine.drill import Draw, drawn


def _stopping() -> tuple[Draw, ...]:
    return tuple(
        drawn(kmh=kmh, reaction_ms=500, braking=braking) for kmh, braking in product((50, 100, 130), (5.0, 8.0))
    )


def _cameras() -> tuple[Draw, ...]:
    return tuple(
        drawn(cameras=cameras, width=1920, height=1080, bits=bits, rate=30)
        for cameras, bits in product((6, 8), (12, 16))
    )


def _late() -> tuple[Draw, ...]:
    return tuple(drawn(parts=parts, late_percent=1) for parts in (8, 10, 20, 100))


def _oldest() -> tuple[Draw, ...]:
    return tuple(drawn(rate=rate, latency_ms=latency) for rate, latency in product((10, 20), (100, 200)))


def _speed_up() -> tuple[Draw, ...]:
    return tuple(
        drawn(deadline=deadline, others=others, model=model)
        for deadline, others, model in ((50, 20, 60), (100, 40, 90), (33, 13, 30))
    )


def _saved() -> tuple[Draw, ...]:
    return tuple(drawn(mph=mph, before_ms=before, after_ms=33) for mph, before in product((60, 70), (100, 66)))


def _chain() -> tuple[Draw, ...]:
    return tuple(
        drawn(periods_ms=periods, responses_ms=responses)
        for periods, responses in (
            ((33, 50, 10), (25, 40, 2)),
            ((100, 100, 20), (60, 50, 5)),
            ((50, 100, 10), (40, 60, 3)),
        )
    )


def _load() -> tuple[Draw, ...]:
    return tuple(
        drawn(costs=costs, periods=periods)
        for costs, periods in (
            ((2, 10, 20), (10, 50, 100)),
            ((2, 5, 20), (10, 20, 100)),
            ((3, 8, 10), (10, 40, 100)),
        )
    )


def _misses() -> tuple[Draw, ...]:
    return tuple(
        drawn(rate=30, chains=chains, minutes=60, per_ten_thousand=late) for chains, late in product((6, 8), (10, 100))
    )


def _measured() -> tuple[Draw, ...]:
    return tuple(drawn(one_in=one_in, confidence=0.95) for one_in in (100, 1000, 10_000))


def _stamp() -> tuple[Draw, ...]:
    return tuple(drawn(kmh=kmh, range_m=50, turn_deg=10, error_ms=error) for kmh, error in product((30, 50), (10, 50)))


def _points() -> tuple[Draw, ...]:
    return tuple(
        drawn(beams=beams, firing_us=firing, rpm=600, returns=2)
        for beams, firing in ((64, 50.0), (128, 50.0), (32, 50.0))
    )


DRIVING = {
    "latency-stopping-distance": _stopping,
    "latency-camera-bandwidth": _cameras,
    "latency-any-late": _late,
    "latency-oldest-picture": _oldest,
    "latency-speedup-needed": _speed_up,
    "latency-metres-saved": _saved,
    "deadlines-chain": _chain,
    "deadlines-utilisation": _load,
    "deadlines-misses": _misses,
    "deadlines-frames": _measured,
    "sensor-time-stamp": _stamp,
    "sensor-lidar-points": _points,
}
