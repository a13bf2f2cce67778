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


def _late_percent() -> tuple[Draw, ...]:
    return tuple(drawn(service_ms=service, percent=busy) for service, busy in ((100, 50), (100, 80), (20, 90)))


def _rates_for_a_p99() -> tuple[Draw, ...]:
    return tuple(drawn(service_ms=service, p99_ms=p99) for service, p99 in ((100, 1000), (50, 500), (20, 200)))


def _scaled_too_late() -> tuple[Draw, ...]:
    return tuple(
        drawn(before=before, arrive=arrive, after=after, late_s=late)
        for before, arrive, after, late in ((20, 30, 50, 60), (100, 150, 220, 120), (50, 60, 90, 300))
    )


def _turned_away() -> tuple[Draw, ...]:
    return tuple(
        drawn(servers=servers, service_ms=service, arrive=arrive)
        for servers, service, arrive in ((4, 100, 50), (8, 200, 60), (16, 500, 40))
    )


def _looping_clients() -> tuple[Draw, ...]:
    return tuple(
        drawn(clients=clients, answer_ms=answer, think_ms=think)
        for clients, answer, think in ((100, 2000, 8000), (64, 4000, 1000), (1000, 5000, 30_000))
    )


def _stalls() -> tuple[Draw, ...]:
    return tuple(
        drawn(step_ms=10, token_us=token, prompt=prompt, chunk=chunk)
        for token, prompt, chunk in ((32, 8000, 512), (32, 32_000, 2048), (250, 8000, 1024))
    )


def _checked_drafts() -> tuple[Draw, ...]:
    return tuple(
        drawn(accepted=accepted, drafted=drafted, cost=cost)
        for accepted, drafted, cost in ((0.8, 5, 0.05), (0.7, 4, 0.1), (0.6, 3, 0.05))
    )


def _four_bits() -> tuple[Draw, ...]:
    rates = ((8.0, 3.35, 989.4), (70.6, 4.8, 989.4), (8.0, 1.0, 165.2))
    return tuple(
        drawn(billions=billions, group=128, bandwidth=bandwidth * TB, peak=peak * TFLOP)
        for billions, bandwidth, peak in rates
    )


def _split_steps() -> tuple[Draw, ...]:
    return tuple(
        drawn(billions=70.6, layers=80, tp=tp, bandwidth=3.35 * TB, cache=cache * GB, latency_us=10)
        for tp, cache in ((4, 40), (8, 40), (8, 160))
    )


def _files() -> tuple[Draw, ...]:
    return tuple(
        drawn(narrow=narrow, wide=wide, bits=4, group=group, unit=GB)
        for narrow, wide, group in ((7, 1, 128), (68, 2, 128), (68, 2, 32))
    )


def _streamed() -> tuple[Draw, ...]:
    return tuple(
        drawn(bytes_per_parameter=size, link=link, tflops=peak)
        for size, link, peak in ((2, 25, 312), (2, 50, 989), (2, 25, 989))
    )


def _fetched() -> tuple[Draw, ...]:
    return tuple(
        drawn(per_token=131_072, rate=rate, link=link * GB, start_ms=start)
        for rate, link, start in ((30_000, 50, 5), (30_000, 7, 10), (10_000, 7, 2))
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
    "queue-p99": _late_percent,
    "queue-rate-for-a-p99": _rates_for_a_p99,
    "queue-late-servers": _scaled_too_late,
    "queue-shed-share": _turned_away,
    "queue-closed-loop-rate": _looping_clients,
    "serving-chunk-stall": _stalls,
    "serving-draft-speedup": _checked_drafts,
    "decode-latency-floor": _four_bits,
    "decode-tensor-parallel-step": _split_steps,
    "compression-model-bytes": _files,
    "capacity-streamed-weights": _streamed,
    "kv-offload-break-even": _fetched,
}
