"""How long the planner takes: 100,000 layouts should be considered in about five seconds. Run it as a script
(`--smoke`: the smallest run).

It also prints how far it is from runs.
"""

import statistics
import sys
import time

from threeloops.training_loop.parallelism import planner
from threeloops.training_loop.parallelism.published_layouts import planned_as_published, published, published_keys
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

SMALL = planner.Choices(
    micro_batches=(1,), zero_stages=(1,), recomputes=("none", "full"), schedules=(("1f1b", 1),), context=(1,)
)


def main(words: list[str]) -> None:
    smoke = "--smoke" in words
    row, seconds = published(LARGE), []
    for _ in range(1 if smoke else ROUNDS):
        start = time.process_time()
        found = planner.search(job=row.job, cluster=row.cluster, rules=row.rules, choices=SMALL if smoke else CHOICES)
        seconds.append(time.process_time() - start)
    median = statistics.median(seconds)
    print(f"{row.name}: {found.considered:,} layouts, {found.legal:,} legal, {len(found.fitting):,} fit:")
    print(
        f"{fmt_seconds(median)} of processor time, median of {len(seconds)};"
        f" {fmt_seconds(median * 100_000 / found.considered)} per 100,000"
    )
    for key in list(published_keys())[: 1 if smoke else None]:
        row = published(key)
        own = planned_as_published(row).tokens_per_gpu_s
        best = planner.search(
            job=row.job, cluster=row.cluster, rules=row.rules, choices=row.choices
        ).best.tokens_per_gpu_s
        error = fmt_percent(own / row.tokens_per_gpu_s - 1)
        print(
            f"{key}: {row.tokens_per_gpu_s:,.0f} tokens/s/GPU published, {own:,.0f} predicted ({error} too many),",
            end=" ",
        )
        print(f"{fmt_percent(own / best)} of the best, {best:,.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
