"""Engine flags: the line that starts an engine with the limits that a calculation came to.

Source: vLLM, "Engine Arguments"; SGLang, "Server Arguments"; TensorRT-LLM, "trtllm-serve", as of November 2026
"""

from threeloops.commands.serve.fleets import Fleet, Served
from threeloops.simulate.product_loop.sizing.replica_runs import SPREAD

QUANTISED = ("fp8",)  # what an engine makes of 16-bit weights as it loads them; other formats come in their files


def engine_line(served: Served, fleet: Fleet) -> str:
    """The command, to be copied; MODEL stands for the path or name of the weights."""
    limits, layout = fleet.limits, fleet.copy.layout
    longest = round((1 + SPREAD) * served.lengths.longest)
    narrow = served.weights in QUANTISED
    if served.engine == "vLLM":
        words = [
            f"vllm serve MODEL --tensor-parallel-size {layout.tp}",
            f"--gpu-memory-utilization {served.memory_utilisation:g} --max-num-seqs {limits.max_num_seqs}",
            f"--max-num-batched-tokens {limits.max_num_batched_tokens} --max-model-len {longest}",
            *(["--quantization fp8_per_tensor"] if narrow else []),
            *(["--kv-cache-dtype fp8"] if served.cache == "fp8" else []),
            *(["--enable-expert-parallel"] if served.ep > 1 else []),
        ]
    elif served.engine == "SGLang":
        static = (layout.weight_bytes + layout.free_bytes) / served.part.capacity_bytes()
        words = [
            f"python -m sglang.launch_server --model-path MODEL --tp-size {layout.tp}",
            f"--mem-fraction-static {static:.2f} --max-running-requests {limits.max_num_seqs}",
            f"--chunked-prefill-size {limits.max_num_batched_tokens} --context-length {longest}",
            *(["--quantization fp8"] if narrow else []),
            *(["--kv-cache-dtype fp8_e4m3"] if served.cache == "fp8" else []),
            *([f"--ep-size {served.ep}"] if served.ep > 1 else []),
        ]
    else:
        words = [
            f"trtllm-serve MODEL --tp_size {layout.tp} --max_batch_size {limits.max_num_seqs}",
            f"--max_num_tokens {limits.max_num_batched_tokens} --max_seq_len {longest}",
            *([f"--ep_size {served.ep}"] if served.ep > 1 else []),
        ]
    return " ".join(words)
