"""Serving metrics: what a dashboard says of a run, simulated or measured, and which stage made a request slow.

>>> from threeloops.simulate.product_loop.serving_policies import continuous_batching
>>> from threeloops.simulate.product_loop.serving_run import run
>>> from threeloops.simulate.product_loop.serving_steps import AffineStep
>>> from threeloops.simulate.product_loop.traffic import at_once
>>> done = run(at_once([3, 2]), step_s=AffineStep(base_s=1), policy=continuous_batching(slots=1), each_token=True)
>>> metrics(done)["TTFT p99"], stages(done.moments[1])
(3.97, {'waits': 3.0, 'prefill': 1.0, 'decode': 1.0})
"""

import numpy as np

from threeloops import checks
from threeloops.simulate.product_loop.serving_requests import Moments
from threeloops.simulate.product_loop.serving_run import Run


def metrics(run: Run) -> dict[str, float]:
    """Seconds by name: TTFT at p50 and p99, every single gap's mean and p99, TPOT and the whole request at p50 and p99.

    Assumes:  the run kept each token; a percentile between two values lies between them (numpy's linear rule)
    """
    whole = run.each(lambda moments: moments.request_s)
    return {
        "TTFT p50": percentile(run.ttft_s, 50),
        "TTFT p99": percentile(run.ttft_s, 99),
        "ITL mean": float(run.gaps_s.mean()),
        "ITL p99": percentile(run.gaps_s, 99),
        "TPOT p50": percentile(run.tpot_s, 50),
        "TPOT p99": percentile(run.tpot_s, 99),
        "end to end p50": percentile(whole, 50),
        "end to end p99": percentile(whole, 99),
    }


def percentile(values: object, share: float) -> float:
    """The value below which so many per cent of the values lie."""
    return round(float(np.percentile(np.asarray(values, dtype=float), share)), 9)


def stages(moments: Moments) -> dict[str, float]:
    """Where a request's seconds went: waiting for a slot, reading the prompt, making tokens."""
    return {
        "waits": moments.waited_s,
        "prefill": moments.first_token_s - moments.admitted_s,
        "decode": moments.finished_s - moments.first_token_s,
    }


def broken_promises(run: Run, *, ttft_s: float, tpot_s: float) -> dict[str, int]:
    """Requests that came late with the first token, were slow between tokens, and both."""
    checks.positive(ttft_s=ttft_s, tpot_s=tpot_s)
    late = [moments.ttft_s > ttft_s for moments in run.served]
    slow = [moments.tpot_s > tpot_s for moments in run.served]  # False for a single token, which has no gap
    return {"late_first": sum(late), "slow_between": sum(slow), "both": sum(map(all, zip(late, slow, strict=True)))}
