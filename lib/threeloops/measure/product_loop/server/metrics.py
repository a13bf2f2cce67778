"""Metrics: counts and histograms of an engine, in the text form that Prometheus collects.

>>> times = Histogram((0.01, 0.1))
>>> times.add(0.05)
>>> print(times.text("ttft_seconds"))
# TYPE ttft_seconds histogram
ttft_seconds_bucket{le="0.01"} 0
ttft_seconds_bucket{le="0.1"} 1
ttft_seconds_bucket{le="+Inf"} 1
ttft_seconds_sum 0.05
ttft_seconds_count 1
"""

import bisect
import itertools
from collections import Counter

from threeloops.measure.product_loop.server.generation import Generation
from threeloops.measure.product_loop.server.scheduler import Scheduler

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Histogram:
    """How many values stayed below each bound: enough for a p99 to within a bucket, and it adds up over servers."""

    def __init__(self, bounds: tuple[float, ...] = BOUNDS_S) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.sum += value

    def text(self, name: str) -> str:
        totals = list(itertools.accumulate(self.counts))
        labels = [*map(str, self.bounds), "+Inf"]
        rows = [f'{name}_bucket{{le="{label}"}} {total}' for label, total in zip(labels, totals, strict=True)]
        return "\n".join(
            [f"# TYPE {name} histogram", *rows, f"{name}_sum {self.sum:.6g}", f"{name}_count {totals[-1]}"]
        )


class Metrics:
    """What an engine has done since it began."""

    def __init__(self) -> None:
        self.ttft, self.itl, self.request = Histogram(), Histogram(), Histogram()
        self.requests: Counter[str] = Counter()  # by how they ended
        self.prompt_tokens = self.generation_tokens = self.steps = 0
        self.step_s = 0.0
        self.in_steps = [0, 0, 0]  # prompt tokens, decodes, cached tokens, summed over all steps

    def token(self, generation: Generation) -> None:
        """A token was made: the first closes the TTFT, each later one a gap."""
        self.generation_tokens += 1
        if len(generation.token_s) == 1:
            self.prompt_tokens += len(generation.order.prompt)
            self.ttft.add(generation.token_s[0] - generation.arrived_s)
        else:
            self.itl.add(generation.token_s[-1] - generation.token_s[-2])

    def finished(self, generation: Generation, reason: str) -> None:
        self.requests[reason] += 1
        if generation.token_s:
            self.request.add(generation.token_s[-1] - generation.arrived_s)


def prometheus_text(metrics: Metrics, scheduler: Scheduler, *, refused: Counter[int], vanished: int) -> str:
    """Everything, as /metrics answers it."""
    gauges = {
        "requests_running": len(scheduler.running),
        "requests_waiting": len(scheduler.waiting),
        "kv_blocks_total": scheduler.pool.blocks,
        "kv_blocks_free": scheduler.pool.free,
    }
    counters = {
        "steps_total": metrics.steps,
        "step_seconds_total": round(metrics.step_s, 6),
        **{
            f"step_{what}_total": total
            for what, total in zip(("prefill_tokens", "decodes", "cached_tokens"), metrics.in_steps, strict=True)
        },
        "prompt_tokens_total": metrics.prompt_tokens,
        "generation_tokens_total": metrics.generation_tokens,
        "preemptions_total": scheduler.preemptions,
        "clients_vanished_total": vanished,
    }
    rows = [f"# TYPE threeloops_{name} gauge\nthreeloops_{name} {value}" for name, value in gauges.items()]
    rows += [f"# TYPE threeloops_{name} counter\nthreeloops_{name} {value}" for name, value in counters.items()]
    rows.append("# TYPE threeloops_requests_total counter")
    rows += [f'threeloops_requests_total{{finish="{reason}"}} {n}' for reason, n in sorted(metrics.requests.items())]
    rows.append("# TYPE threeloops_requests_refused_total counter")
    rows += [f'threeloops_requests_refused_total{{status="{status}"}} {n}' for status, n in sorted(refused.items())]
    histograms = {"time_to_first_token": metrics.ttft, "inter_token_latency": metrics.itl, "request": metrics.request}
    rows += [histogram.text(f"threeloops_{name}_seconds") for name, histogram in histograms.items()]
    return "\n".join(rows) + "\n"
