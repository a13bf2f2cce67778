"""How long the pipeline simulator takes: 64 stages and 512 micro-batches should stay near two seconds. Run it as a script."""

import time

from threeloops.simulate.pipeline_orders import SCHEDULES
from threeloops.simulate.pipeline_schedules import Work, run
from threeloops.units import fmt_percent, fmt_seconds

WORK = Work(forward_s=1, input_gradient_s=1, weight_gradient_s=1, overlapped_s=3)

if __name__ == "__main__":
    for schedule in SCHEDULES:
        start = time.perf_counter()
        done = run(schedule=schedule, pp=64, micro_batches=512, chunks=2 if schedule == "interleaved" else 1, work=WORK, send_s=0.01)
        taken = time.perf_counter() - start
        passes = sum(map(len, done.operations))
        print(f"{schedule}, 64 stages, 512 micro-batches: {fmt_seconds(taken)}, {passes:,} slots, idle {fmt_percent(done.idle_share)}")
