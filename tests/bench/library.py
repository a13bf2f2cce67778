"""How quick the library is: imports over bare Python, one formula call, the command from the shell. Prints; fails on nothing.

python tests/bench/library.py
"""

import statistics
import subprocess
import sys
import time
import timeit

from threeloops import collectives, kernels, kv_cache, memory, model_catalogue, roofline

RUNS = 15


def process_s(*arguments: str) -> float:
    """Median wall seconds of a fresh Python with these arguments."""
    samples = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def main() -> None:
    bare = process_s("-c", "pass")
    print(f"bare Python: {bare * 1e3:.0f} ms")
    for module in ("threeloops", "threeloops.roofline", "threeloops.transformer", "threeloops.training_fit", "threeloops.collectives", "threeloops.kv_cache"):
        print(f"import {module}: {(process_s('-c', f'import {module}') - bare) * 1e3:.0f} ms over it")
    command = ("-m", "threeloops.cli", "kv", "--model", "llama-3-8b", "--tokens", "8192", "--dtype", "bf16")
    print(f"threeloops kv: {process_s(*command) * 1e3:.0f} ms")
    llama = model_catalogue.model("llama-3-8b")
    buckets = memory.ParameterBuckets(split_matrices=7e9)
    calls = {
        "roofline.ridge_point": lambda: roofline.ridge_point(peak_flops_per_s=989e12, memory_bytes_per_s=3.35e12),
        "kernels.gemm": lambda: kernels.gemm(m=4096, n=4096, k=4096, bytes_per_element=2),
        "kv_cache.bytes_per_token": lambda: kv_cache.bytes_per_token(llama, bytes_per_element=2),
        "collectives.collective_time": lambda: collectives.collective_time(
            op="all-reduce", algorithm="ring", size_bytes=1e9, ranks=8, alpha_s=5e-6, bytes_per_s_one_way=450e9
        ),
        "memory.model_states": lambda: memory.model_states(parameters=buckets, recipe="megatron", zero_stage=1, dp=8, tp=2, pp=2),
    }
    for name, call in calls.items():
        best = min(timeit.repeat(call, number=2000, repeat=7)) / 2000
        print(f"{name}: {best * 1e6:.1f} µs a call")


if __name__ == "__main__":
    main()
