"""Interview draws of the product loop: numbers of serving that interviewers like. One more chapter of band_draws."""

from itertools import product

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.units import GB, TB, TFLOP, us

# Cache of a conversation of 2,048 or 8,192 tokens at 131,072 bytes a token (Llama 3 8B, 16 bits).
CONVERSATIONS = (268_435_456, 1_073_741_824)


def _prompts() -> tuple[Draw, ...]:
    return tuple(
        drawn(tokens=tokens, billions=billions, peak=989.4 * TFLOP, utilisation=0.5)
        for billions, tokens in product((8.0, 70.6), (2048, 8192))
    )


def _steps() -> tuple[Draw, ...]:
    return tuple(
        drawn(billions=8.0, bandwidth=3.35 * TB, batch=batch, per_request=size)
        for batch, size in product((8, 16, 64), CONVERSATIONS)
        if batch * size < 64 * GB
    )


def _shared() -> tuple[Draw, ...]:
    return tuple(
        drawn(billions=8.0, bandwidth=bandwidth * TB, per_request=CONVERSATIONS[0], itl_ms=itl)
        for bandwidth, itl in product((3.35, 4.8), (10, 20))
    )


def _before_the_deadline() -> tuple[Draw, ...]:
    return tuple(
        drawn(ttft_ms=500, itl_ms=itl, deadline_ms=deadline) for itl, deadline in ((50, 2000), (20, 5000), (30, 3500))
    )


def _inside() -> tuple[Draw, ...]:
    return tuple(drawn(per_minute=rate, ttft=0.5, itl_ms=30, tokens=301) for rate in (120, 600, 6000))


def _copies() -> tuple[Draw, ...]:
    return tuple(
        drawn(rate=rate, seconds=10.0, slots=slots, headroom=0.3) for rate, slots in ((100, 64), (10, 32), (500, 128))
    )


def _prices() -> tuple[Draw, ...]:
    return tuple(
        drawn(cents=300, gpus=gpus, rate=rate, busy=busy)
        for gpus, rate, busy in ((1, 2500, 0.5), (8, 20_000, 0.4), (8, 5000, 1.0))
    )


def _drafts() -> tuple[Draw, ...]:
    return tuple(
        drawn(accepted=accepted, drafted=drafted) for accepted, drafted in ((0.8, 5), (0.7, 4), (0.9, 3), (0.5, 4))
    )


def _narrow() -> tuple[Draw, ...]:
    h100 = catalogued.part("h100-sxm5")
    return tuple(
        drawn(
            part=h100.name,
            memory=h100["memory_bytes_per_s"],
            weights_bytes=16 * GB,
            narrow_bits=bits,
            kernels=kernels,
            issue_s=issue * us,
        )
        for bits, kernels, issue in ((8, 1300, 3.0), (4, 400, 6.0), (4, 800, 3.0))
    )


SERVING = {
    "serving-prefill": _prompts,
    "serving-decode-step": _steps,
    "serving-batch-for-itl": _shared,
    "serving-tokens-before-deadline": _before_the_deadline,
    "serving-in-flight": _inside,
    "serving-replicas": _copies,
    "serving-price-per-million": _prices,
    "serving-tokens-per-check": _drafts,
    "engine-narrow-weights": _narrow,
}
