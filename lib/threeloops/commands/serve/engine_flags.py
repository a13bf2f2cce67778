"""Engine flags: the line that starts an engine with the limits that a calculation came to.

Source: vLLM, "Engine Arguments", "Data Parallel Deployment", "Context Parallel Deployment", "EAGLE Draft Models" and
        "Online Quantization", "LoRA Adapters"; SGLang, "Server Arguments", "Speculative Decoding", "LoRA Serving",
        "Decode Context Parallelism" and
        srt/server_args.py (with data-parallel attention the limits are divided by dp_size); TensorRT-LLM,
        "trtllm-serve" and its deployment guide of DeepSeek-R1 (enable_attention_dp), as of November 2026
"""

import json
import math

from threeloops.commands.serve.copies import Served, longest_request
from threeloops.commands.serve.fleets import Fleet


def engine_line(served: Served, fleet: Fleet) -> str:
    """The command, to be copied; MODEL stands for the path or name of a checkpoint in the format of the weights."""
    limits, layout, drafted = fleet.limits, fleet.copy.layout, served.drafts.drafted if served.drafts else 0
    tokens = limits.max_num_batched_tokens + drafted * limits.max_num_seqs  # a check computes drafts, too
    ep, dp, pp = served.experts_over(layout), layout.dp, layout.pp
    longest, lora = min(longest_request(served), served.model.max_context), served.adapters
    if served.engine == "vLLM":  # its limits are those of each group
        words = [
            f"vllm serve MODEL --tensor-parallel-size {layout.tp}",
            *([f"--pipeline-parallel-size {pp}"] if pp > 1 else []),
            *([f"--data-parallel-size {dp}"] if dp > 1 else []),
            *([f"--decode-context-parallel-size {layout.dcp}"] if layout.dcp > 1 else []),
            f"--gpu-memory-utilization {served.memory_utilisation:g} --max-num-seqs {_each(limits.max_num_seqs, dp)}",
            f"--max-num-batched-tokens {_each(tokens, layout.lanes)} --max-model-len {longest}",
            *([f"--watermark {served.watermark:g}"] if served.watermark else []),
            *(["--kv-cache-dtype fp8"] if served.cache == "fp8" else []),
            *(["--enable-expert-parallel"] if ep > 1 else []),
            *([f"--speculative-config '{json.dumps(_drafter(drafted))}'"] if drafted else []),
            *([f"--enable-lora --max-loras {lora.number} --max-lora-rank {lora.rank}"] if lora else []),
        ]
    elif served.engine == "SGLang":  # its limits are those of all groups, and it divides them
        static = (layout.weights_bytes + layout.free_bytes) / served.part.capacity_bytes()
        words = [
            f"python -m sglang.launch_server --model-path MODEL --tp-size {layout.stage_gpus}",
            *([f"--pp-size {pp} --nnodes {pp}"] if pp > 1 else []),
            *([f"--dp-size {dp} --enable-dp-attention"] if dp > 1 else []),
            *([f"--dcp-size {layout.dcp}"] if layout.dcp > 1 else []),
            f"--mem-fraction-static {static:.2f} --max-running-requests {limits.max_num_seqs}",
            f"--chunked-prefill-size {_each(tokens, pp)} --context-length {longest}",
            *(["--kv-cache-dtype fp8_e4m3"] if served.cache == "fp8" else []),
            *([f"--ep-size {ep}"] if ep > 1 else []),
            *([_chain(drafted)] if drafted else []),
            *([f"--enable-lora --max-loras-per-batch {lora.number} --max-lora-rank {lora.rank}"] if lora else []),
            *(["--lora-target-modules all"] if lora else []),
        ]
    else:
        share = layout.free_bytes / (served.part.capacity_bytes() - layout.weights_bytes)
        words = [
            f"trtllm-serve MODEL --tp_size {layout.gpus} --max_batch_size {_each(limits.max_num_seqs, dp)}",
            f"--max_num_tokens {_each(tokens, dp)} --max_seq_len {longest}",
            f"--enable_chunked_prefill --kv_cache_free_gpu_memory_fraction {share:.2f}",
            *([f"--ep_size {ep}"] if ep > 1 else []),
        ]
    return " ".join(words)


def _drafter(drafted: int) -> dict[str, str | int]:
    return {"method": "eagle3", "model": "DRAFTER", "num_speculative_tokens": drafted}


def _chain(drafted: int) -> str:
    """A chain, and no tree."""
    chain = "--speculative-algorithm EAGLE3 --speculative-draft-model-path DRAFTER"
    chain += f" --speculative-num-steps {drafted} --speculative-eagle-topk 1"
    return f"{chain} --speculative-num-draft-tokens {drafted + 1}"


def _each(limit: int, groups: int) -> int:
    return math.ceil(limit / groups)


def pool_flags(engine: str) -> tuple[str, str]:
    """What is added to the lines of a server that reads prompts, and of one that decodes.

    Source:   vLLM, "NixlConnector Usage Guide"; SGLang, "PD Disaggregation"; TensorRT-LLM, "Disaggregated Serving", as
              of November 2026
    """
    if engine == "vLLM":
        config = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
        return (f" --kv-transfer-config '{json.dumps(config)}'",) * 2
    if engine == "SGLang":
        return " --disaggregation-mode prefill", " --disaggregation-mode decode"
    return (", with a cache_transceiver_config in the file of --config",) * 2


def engine_remarks(served: Served) -> list[str]:
    """What the line cannot say."""
    found = []
    if served.weights == "fp8" and served.engine == "vLLM":
        found.append(
            "MODEL is a checkpoint in FP8; of one in 16 bits vLLM makes it with --quantization fp8_per_tensor."
        )
    if served.cache == "fp8" and served.engine == "TensorRT-LLM":
        found.append("the cache's format stands in the file of --config: kv_cache_config, dtype fp8.")
    if served.pp > 1:
        found.append(
            "the engine is started on every node: vLLM with --nnodes and --node-rank, or over Ray; SGLang with"
            " --node-rank and --dist-init-addr."
        )
    if served.dp > 1 and served.engine == "TensorRT-LLM":
        found.append("each GPU has requests of its own where the file of --config says enable_attention_dp: true.")
    if served.dp > 1 and served.engine == "SGLang":
        found.append("what is not experts is whole on every group here; SGLang cuts dense layers and the head, too.")
    if served.drafts and served.engine == "TensorRT-LLM":
        found.append("drafts stand in the file of --config: speculative_config, decoding_type and max_draft_len.")
    elif served.drafts:
        found.append("DRAFTER is an EAGLE 3 head; a model's own MTP layers need another method and no path.")
    return found + _adapter_remarks(served)


def _adapter_remarks(served: Served) -> list[str]:
    lora = served.adapters
    if lora is None:
        return []
    if served.engine == "TensorRT-LLM":
        limits = f"max_loras: {lora.number} and max_lora_rank: {lora.rank}"
        return [f"adapters stand in the file of --config: lora_config with lora_dir, {limits}."]
    flag = "--lora-modules" if served.engine == "vLLM" else "--lora-paths"
    return [f"each adapter is named with {flag} NAME=PATH; all of one alone are better merged into the weights."]
