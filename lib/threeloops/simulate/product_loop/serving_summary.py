"""What serving runs came to, in a table of text.

>>> from threeloops.simulate.product_loop.serving_policies import continuous_batching
>>> from threeloops.simulate.product_loop.serving_run import run
>>> from threeloops.simulate.product_loop.serving_steps import AffineStep
>>> from threeloops.simulate.product_loop.traffic import at_once
>>> done = run(at_once([5, 5, 9]), step_s=AffineStep(base_s=0.1), policy=continuous_batching(slots=2))
>>> print(table({"two slots": done}))
           TTFT p50  TTFT p99  TPOT p50  TPOT p99  tokens/s
two slots    100 ms    590 ms    100 ms    100 ms      13.6
"""

from collections.abc import Mapping

import numpy as np

from threeloops.simulate.product_loop.serving_run import Run, Seconds
from threeloops.units import fmt_seconds

WIDTH = 10  # letters of a column


def table(runs: Mapping[str, Run]) -> str:
    """A row per run: median and 99th percentile of TTFT and TPOT; of ITL the 99th percentile and the longest, where
    the runs kept each token; output tokens/s over the whole run.
    """
    if not runs:
        raise ValueError("runs is empty; a table needs a row")
    each_token = all(run.gaps_s.size for run in runs.values())
    heads = [
        "TTFT p50",
        "TTFT p99",
        "TPOT p50",
        "TPOT p99",
        *(("ITL p99", "ITL max") if each_token else ()),
        "tokens/s",
    ]
    names = max(map(len, runs))
    lines = [_line("", names, heads)]
    lines += [_line(name, names, _cells(run, each_token)) for name, run in runs.items()]
    return "\n".join(lines)


def _line(name: str, width: int, cells: list[str]) -> str:
    return name.ljust(width) + "".join(cell.rjust(WIDTH) for cell in cells)


def _cells(run: Run, each_token: bool) -> list[str]:
    cells = [*half_and_late(run.ttft_s), *half_and_late(run.tpot_s)]
    if each_token:
        gaps_s = run.gaps_s
        cells += [half_and_late(gaps_s)[1], fmt_seconds(gaps_s.max())]
    rate = run.output_tokens_per_s
    return [*cells, f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"]


def half_and_late(seconds: Seconds) -> tuple[str, str]:
    """Median and 99th percentile, in words."""
    half, late = np.quantile(seconds, [0.5, 0.99])
    return fmt_seconds(half), fmt_seconds(late)
