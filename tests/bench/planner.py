"""How long the planner takes: 100,000 layouts should be considered in about five seconds. Run it as a script. It also prints how far it is from runs."""

import statistics
import time

from threeloops import planner
from threeloops.published_layouts import planned_as_published, published, published_keys
from threeloops.units import fmt_percent, fmt_seconds

ROUNDS = 3
LARGE = "llama-3-405b-16k"
CHOICES = planner.Choices(
    micro_batches=(1, 2, 4, 8),
    zero_stages=(0, 1, 2, 3),
    recomputes=("none", "selective", "full"),
    schedules=(("1f1b", 1), ("interleaved", 2), ("interleaved", 4), ("interleaved", 8)),
    context=(1, 2, 4, 8, 16, 32),
)

if __name__ == "__main__":
    row, seconds = published(LARGE), []
    for _ in range(ROUNDS):
        start = time.process_time()
        found = planner.search(job=row.job, cluster=row.cluster, rules=row.rules, choices=CHOICES)
        seconds.append(time.process_time() - start)
    median = statistics.median(seconds)
    print(f"{row.name}: {found.considered:,} layouts, {found.legal:,} legal, {len(found.fitting):,} fit:")
    print(f"{fmt_seconds(median)} of processor time, median of {ROUNDS}; {fmt_seconds(median * 100_000 / found.considered)} per 100,000")
    for key in published_keys():
        row = published(key)
        own = planned_as_published(row).tokens_per_gpu_s
        best = planner.search(job=row.job, cluster=row.cluster, rules=row.rules, choices=row.choices).best.tokens_per_gpu_s
        error = fmt_percent(own / row.tokens_per_gpu_s - 1)
        print(f"{key}: {row.tokens_per_gpu_s:,.0f} tokens/s/GPU published, {own:,.0f} predicted ({error} too many),", end=" ")
        print(f"{fmt_percent(own / best)} of the best, {best:,.0f}")
