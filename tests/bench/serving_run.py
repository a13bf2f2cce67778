"""How fast the serving simulator is: a million requests of plain continuous batching should take about a minute on one
core. Run it as a script (`--smoke`: the smallest run).
"""

import sys
import time

from threeloops.simulate.product_loop import traffic
from threeloops.simulate.product_loop.serving_policies import KVBlocks, chunked_prefill, continuous_batching
from threeloops.simulate.product_loop.serving_run import run
from threeloops.simulate.product_loop.serving_steps import AffineStep
from threeloops.units import fmt_seconds

STEP_S = AffineStep(base_s=0.010, per_prefill_token_s=30e-6, per_decode_s=50e-6, per_cached_token_s=40e-9)
SLOTS = 256


def main(words: list[str]) -> None:
    number = 2_000 if "--smoke" in words else 1_000_000
    requests = traffic.drawn(traffic.AZURE_CONVERSATION_2023, requests=number, seed=1)
    pool = KVBlocks(num_blocks=20_000)
    for policy, blocks in (
        (chunked_prefill(slots=SLOTS, token_budget=2048), pool),
        (continuous_batching(slots=SLOTS), pool),
        (continuous_batching(slots=SLOTS), None),
    ):
        start = time.process_time()
        done = run(requests, step_s=STEP_S, policy=policy, blocks=blocks)
        taken = time.process_time() - start
        print(
            f"{policy.name}, {'blocks' if blocks else 'no limit'}: {number:,} requests in {fmt_seconds(taken)},"
            f" {number / taken:,.0f} requests/s, {done.steps / taken:,.0f} steps/s"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
