"""How long the pipeline simulator takes: 64 stages and 512 micro-batches should stay near two seconds. Run it as a
script (`--smoke`: the smallest run).
"""

import sys
import time

from threeloops.simulate.training_loop.pipeline_orders import INTERLEAVED, SCHEDULES
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.units import fmt_percent, fmt_seconds

WORK = Work(forward_s=1, input_gradient_s=1, weight_gradient_s=1, overlapped_s=3)


def main(words: list[str]) -> None:
    stages, micro_batches = (4, 8) if "--smoke" in words else (64, 512)
    for schedule in SCHEDULES:
        start = time.perf_counter()
        done = run(
            schedule=schedule,
            pp=stages,
            micro_batches=micro_batches,
            chunks=2 if schedule in (*INTERLEAVED, "zb-v") else 1,
            work=WORK,
            send_s=0.01,
        )
        taken = time.perf_counter() - start
        passes = sum(map(len, done.operations))
        print(
            f"{schedule}, {stages} stages, {micro_batches} micro-batches: {fmt_seconds(taken)}, {passes:,} slots, idle"
            f" {fmt_percent(done.idle_share)}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
