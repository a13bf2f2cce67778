"""How long the ring simulator takes: 64 ranks and 1 MiB should stay under a second. Run it as a script (`--smoke`:
the smallest run).
"""

import sys
import time

from threeloops.simulate.training_loop.collectives import simulated
from threeloops.units import MiB, fmt_bytes, fmt_seconds


def main(words: list[str]) -> None:
    for ranks in (8,) if "--smoke" in words else (8, 64, 256):
        start = time.perf_counter()
        run = simulated(op="all_reduce", algorithm="ring", ranks=ranks, elements=MiB // 8)
        taken = time.perf_counter() - start
        print(
            f"ring all-reduce, {ranks} ranks, 1 MiB: {fmt_seconds(taken)}, {run.steps} steps,"
            f" {fmt_bytes(max(run.sent_bytes), base=2)} sent per rank"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
