"""Engine flags: the line that starts an engine with the limits that a calculation came to.

Source: vLLM, "Engine Arguments" and "Online Quantization"; SGLang, "Server Arguments"; TensorRT-LLM, "trtllm-serve",
        as of November 2026
"""

from threeloops.commands.serve.fleets import Fleet, Served, longest_request


def engine_line(served: Served, fleet: Fleet) -> str:
    """The command, to be copied; MODEL stands for the path or name of a checkpoint in the format of the weights."""
    limits, layout = fleet.limits, fleet.copy.layout
    longest = min(longest_request(served), served.model.max_context)
    if served.engine == "vLLM":
        words = [
            f"vllm serve MODEL --tensor-parallel-size {layout.tp}",
            f"--gpu-memory-utilization {served.memory_utilisation:g} --max-num-seqs {limits.max_num_seqs}",
            f"--max-num-batched-tokens {limits.max_num_batched_tokens} --max-model-len {longest}",
            *(["--kv-cache-dtype fp8"] if served.cache == "fp8" else []),
            *(["--enable-expert-parallel"] if served.ep > 1 else []),
        ]
    elif served.engine == "SGLang":
        static = (layout.weight_bytes + layout.free_bytes) / served.part.capacity_bytes()
        words = [
            f"python -m sglang.launch_server --model-path MODEL --tp-size {layout.tp}",
            f"--mem-fraction-static {static:.2f} --max-running-requests {limits.max_num_seqs}",
            f"--chunked-prefill-size {limits.max_num_batched_tokens} --context-length {longest}",
            *(["--kv-cache-dtype fp8_e4m3"] if served.cache == "fp8" else []),
            *([f"--ep-size {served.ep}"] if served.ep > 1 else []),
        ]
    else:
        share = layout.free_bytes / (served.part.capacity_bytes() - layout.weight_bytes)
        words = [
            f"trtllm-serve MODEL --tp_size {layout.tp} --max_batch_size {limits.max_num_seqs}",
            f"--max_num_tokens {limits.max_num_batched_tokens} --max_seq_len {longest} --enable_chunked_prefill",
            f"--kv_cache_free_gpu_memory_fraction {share:.2f}",
            *([f"--ep_size {served.ep}"] if served.ep > 1 else []),
        ]
    return " ".join(words)


def engine_remarks(served: Served) -> list[str]:
    """What the line cannot say."""
    found = []
    if served.weights == "fp8" and served.engine == "vLLM":
        found.append(
            "MODEL is a checkpoint in FP8; of one in 16 bits vLLM makes it with --quantization fp8_per_tensor."
        )
    if served.cache == "fp8" and served.engine == "TensorRT-LLM":
        found.append("the cache's format stands in the file of --config: kv_cache_config, dtype fp8.")
    return found
