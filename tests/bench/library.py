"""How quick the library is: imports over bare Python, one formula call, the command from the shell. Prints; fails on
nothing.

python tests/bench/library.py [--smoke]    --smoke is the smallest run
"""

import statistics
import subprocess
import sys
import time
import timeit

from threeloops.models import catalogue
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.operations import kernels, roofline
from threeloops.product_loop import kv_cache
from threeloops.training_loop.memory import rank_states
from threeloops.training_loop.network import collectives

RUNS, CALLS = 15, 2000
IMPORTED = (
    "threeloops",
    "threeloops.operations.roofline",
    "threeloops.models.transformer",
    "threeloops.training_loop.memory.fit",
    "threeloops.training_loop.network.collectives",
    "threeloops.product_loop.kv_cache",
    "threeloops.drills.engine.bank",
    "threeloops.room.session",
    "threeloops.cli",
)


def process_s(*arguments: str, runs: int) -> float:
    """Median wall seconds of a fresh Python with these arguments."""
    samples = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def main(words: list[str]) -> None:
    runs, calls_each = (1, 1) if "--smoke" in words else (RUNS, CALLS)
    bare = process_s("-c", "pass", runs=runs)
    print(f"bare Python: {bare * 1e3:.0f} ms")
    for module in IMPORTED:
        taken = process_s("-c", f"import {module}", runs=runs)
        print(f"import {module}: {(taken - bare) * 1e3:.0f} ms over it, {taken / bare:.1f} times bare Python")
    command = ("-m", "threeloops", "kv", "--model", "llama-3-8b", "--tokens", "8192", "--cache", "bf16")
    print(f"threeloops kv: {process_s(*command, runs=runs) * 1e3:.0f} ms")
    llama = catalogue.model("llama-3-8b")
    buckets = ParameterBuckets.plain(7e9)
    calls = {
        "roofline.ridge_point": lambda: roofline.ridge_point(peak_flops_per_s=989e12, memory_bytes_per_s=3.35e12),
        "kernels.gemm": lambda: kernels.gemm(m=4096, n=4096, k=4096, bytes_per_element=2),
        "kv_cache.bytes_per_token": lambda: kv_cache.bytes_per_token(llama, bytes_per_element=2),
        "collectives.collective_time": lambda: collectives.collective_time(
            op="all_reduce", algorithm="ring", size_bytes=1e9, ranks=8, alpha_s=5e-6, bytes_per_s_one_way=450e9
        ),
        "memory.model_states": lambda: rank_states.model_states(
            parameters=buckets, recipe="megatron", zero_stage=1, dp=8, tp=2, pp=2
        ),
    }
    for name, call in calls.items():
        best = min(timeit.repeat(call, number=calls_each, repeat=7)) / calls_each
        print(f"{name}: {best * 1e6:.1f} µs a call")


if __name__ == "__main__":
    main(sys.argv[1:])
