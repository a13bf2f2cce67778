"""Engine lines: what vLLM, SGLang and llama.cpp write about themselves and, every so often, about their requests.

>>> lines = VllmLines()
>>> lines.take(
...     "INFO 10-06 11:23:31 [loggers.py:127] Engine 000: Avg prompt throughput: 474.7 tokens/s, Avg generation"
...     " throughput: 9.8 tokens/s, Running: 7 reqs, Waiting: 2 reqs, GPU KV cache usage: 91.5%,"
...     " Prefix cache hit rate: 40.0%"
... )
True
>>> {name: column[0] for name, column in lines.record.columns.items() if name not in ("at_s", "rank")}
{'running': 7.0, 'waiting': 2.0, 'deferred': 0.0, 'kv_usage': 0.915, 'prompt_per_s': 474.7, 'output_per_s': 9.8}

Source: vllm-project, vLLM, vllm/v1/metrics/loggers.py (LoggingStatLogger.log, of 0.7 to 0.11 and of 2026),
        vllm/engine/metrics.py (V0), v1/core/kv_cache_utils.py, v1/worker/gpu_worker.py; sgl-project, SGLang,
        python/sglang/srt/managers/scheduler_metrics_mixin.py (PoolStats in 2026) and mem_cache/memory_pool.py (its GB
        are GiB); ggml-org, llama.cpp, src/llama-kv-cache.cpp, src/llama-model.cpp, src/llama-context.cpp and
        tools/server (print_timings)
"""

import re

from threeloops.product_loop.logged.engine_record import EngineRecord
from threeloops.training_loop.run.logged.log_lines import LogClock
from threeloops.training_loop.run.logged.step_lines import number_after
from threeloops.units import GiB, MiB, ms

# A line of llama.cpp's that states something has one of these.
_LLAMA_WORDS = (
    *("n_slots", "layers to GPU", "general.name", "model size", "file type", "compute capability", "build:"),
    *("n_ctx_per_seq", "n_ctx_seq", "n_ctx_slot", "cells", "KV self size", "kv_size"),
)
# Pools of SGLang's on the device, of which the fullest limits: all layers' tokens, those of windows, recurrent states.
_SGLANG_POOLS = re.compile(r"(?:(?<!cpu )token|mamba) usage: ([\d.]+)")
_VLLM_BLOCK = 16  # tokens: its default on GPUs; a scrape of its /metrics states it


def _setting(line: str, name: str) -> str:
    """A setting's value in a list of them: name=value, or 'name': value."""
    found = re.search(rf"(?<!\w){name}(?:'|\")?\s*[=:]\s*(?:'([^']*)'|\"([^\"]*)\"|([^\s,)}}]+))", line)
    return next((value for value in found.groups() if value is not None), "") if found else ""


def _whole(line: str, name: str) -> int | None:
    value = _setting(line, name)
    return int(value) if value.isdecimal() else None


class VllmLines:
    """vLLM: V0 and V1."""

    def __init__(self) -> None:
        self.record = EngineRecord(engine="vLLM", preempted=None)
        self.taken, self._clock = 0, LogClock()

    def take(self, line: str) -> bool:
        """Whether the line tells of requests."""
        if "Avg generation throughput:" in line:
            self._moment(line)
            self.taken += 1
            return True
        if "with config: model=" in line or "with config: VllmConfig" in line:
            self._config(line)
        elif "args: " in line or "Namespace(" in line:
            self._arguments(line)
        elif "is preempted by" in line:
            counted = number_after(line, "total_num_cumulative_preemption")
            self.record.preempted = int(counted) if counted else (self.record.preempted or 0) + 1
        elif any(word in line for word in ("KV cache", "blocks", " took ", "max_num_batched_tokens", "version")):
            self._memory(line)
        return False

    def _moment(self, line: str) -> None:
        rank = re.search(r"Engine (\d+):", line)
        running, waiting = (
            number_after(line, "Running"), number_after(line, "Waiting", "Pending")
        )  # fmt: skip
        if preempted := number_after(line, "Preemptions"):  # since the line before; none are not told
            self.record.preempted = (self.record.preempted or 0) + int(preempted)
        deferred = number_after(line, "Deferred") or 0.0  # among those that wait, and not for seats or the cache
        swapped, usage = number_after(line, "Swapped"), number_after(line, "GPU KV cache usage")
        hits = re.search(r"(?<!External )Prefix cache hit rate: (?:GPU: )?([\d.]+)%", line)
        if hits:
            self.record.hit_rate = float(hits[1]) / 100
        if usage is None and running is None:
            return
        self.record.enter(
            at_s=self._clock.seconds(line),
            running=running,
            waiting=max(0.0, waiting - deferred) + (swapped or 0.0) if waiting is not None else None,
            deferred=deferred,
            kv_usage=usage / 100 if usage is not None else None,
            prompt_per_s=number_after(line, "Avg prompt throughput"),
            output_per_s=number_after(line, "Avg generation throughput"),
            rank=float(rank[1]) if rank else 0.0,
        )

    def _config(self, line: str) -> None:
        record = self.record
        version = re.search(r"engine \(v([^)\s]+)\)", line)
        record.version = version[1] if version else record.version
        record.model = _setting(line, "model") or record.model
        record.dtype = _setting(line, "dtype").removeprefix("torch.") or record.dtype
        record.max_model_len = _whole(line, "max_seq_len") or record.max_model_len
        record.tp = _whole(line, "tensor_parallel_size") or record.tp
        record.cache = _setting(line, "kv_cache_dtype") or record.cache
        quantised = _setting(line, "quantization")
        record.weights = quantised if quantised not in ("", "None") else record.weights

    def _arguments(self, line: str) -> None:
        record = self.record
        record.seats = _whole(line, "max_num_seqs") or record.seats
        record.step_tokens = _whole(line, "max_num_batched_tokens") or record.step_tokens
        record.block_tokens = _whole(line, "block_size") or record.block_tokens
        record.tp = _whole(line, "tensor_parallel_size") or record.tp
        record.model = record.model or _setting(line, "model")

    def _memory(self, line: str) -> None:
        record = self.record
        if "Available KV cache memory:" in line:
            record.least("kv_bytes", (number_after(line, "Available KV cache memory") or 0.0) * GiB)
        elif "GPU KV cache size:" in line:
            record.least("kv_tokens", int(number_after(line, "GPU KV cache size") or 0))
        elif blocks := re.search(r"# (?:GPU|cuda) blocks: (\d+)", line):
            record.least("num_blocks", int(blocks[1]))
            record.least("kv_tokens", int(blocks[1]) * (record.block_tokens or _VLLM_BLOCK))
        elif "after num_gpu_blocks is:" in line:
            record.least("num_blocks", int(number_after(line, "after num_gpu_blocks is") or 0))
        elif loaded := re.search(r"(?:Model loading took|Loading model weights took) ([\d.]+) (?:GiB|GB)", line):
            record.weights_bytes = float(loaded[1]) * GiB
        elif "enabled with max_num_batched_tokens=" in line:
            record.step_tokens = _whole(line, "max_num_batched_tokens")
        elif version := re.search(r"vLLM API server version (\S+)", line):
            record.version = version[1]


class SglangLines:
    """SGLang: decode lines every so many steps, a line for every step that reads prompts."""

    def __init__(self) -> None:
        self.record = EngineRecord(engine="SGLang", preempted=0)
        self.taken, self._clock = 0, LogClock()

    def take(self, line: str) -> bool:
        """Whether the line tells of requests."""
        if "#running-req:" in line and ("Decode batch" in line or "Prefill batch" in line):
            self._moment(line)
            self.taken += 1
            return True
        record = self.record
        if "#retracted_reqs:" in line:
            record.preempted = (record.preempted or 0) + int(number_after(line, "#retracted_reqs") or 0)
        elif "server_args=" in line:
            record.model = _setting(line, "model_path") or record.model
            record.tp = _whole(line, "tp_size") or record.tp
            record.cache = _setting(line, "kv_cache_dtype") or record.cache
            quantised = _setting(line, "quantization")
            record.weights = quantised if quantised not in ("", "None") else record.weights
        elif "max_total_num_tokens=" in line:
            record.kv_tokens = _whole(line, "max_total_num_tokens")
            record.seats = _whole(line, "max_running_requests")
            record.step_tokens = _whole(line, "chunked_prefill_size") or _whole(line, "max_prefill_tokens")
            record.max_model_len = _whole(line, "context_len")
        elif "KV Cache is allocated." in line:
            sizes = re.findall(r"(?:KV|K|V) size: ([\d.]+) GB", line)
            record.kv_bytes = sum(map(float, sizes)) * GiB if sizes else record.kv_bytes
        elif "Load weight end." in line:
            used = re.search(r"mem usage=([\d.]+) GB", line)
            record.weights_bytes = float(used[1]) * GiB if used else record.weights_bytes
            record.dtype = _setting(line, "dtype").removeprefix("torch.") or record.dtype
        return False

    def _moment(self, line: str) -> None:
        new, cached = number_after(line, "#new-token"), number_after(line, "#cached-token")
        if new is not None and cached is not None:
            self.record.asked_tokens += new + cached
            self.record.found_tokens += cached
        rank = re.search(r"\bDP(\d+)\b", line)
        self.record.enter(
            at_s=self._clock.seconds(line),
            running=number_after(line, "#running-req"),
            waiting=number_after(line, "#queue-req"),
            kv_usage=max((float(share) for share in _SGLANG_POOLS.findall(line)), default=None),
            output_per_s=number_after(line, "gen throughput (token/s)"),
            rank=float(rank[1]) if rank else 0.0,
        )


class LlamaLines:
    """llama.cpp: what it loads, and the two times of every request that its server has answered."""

    def __init__(self) -> None:
        self.record = EngineRecord(engine="llama.cpp")
        self.taken = 0

    def take(self, line: str) -> bool:
        """Whether the line tells of requests."""
        timed = "eval time" in line and re.search(
            r"(prompt |generation |)eval time\s*=\s*([\d.]+) ms /\s*(\d+) (?:tokens|runs)", line
        )
        if timed:
            stage, kind = ("prompt", "prompt") if timed[1] == "prompt " else ("answer", "output")
            record = self.record
            record.stages[stage] = record.stages.get(stage, 0.0) + float(timed[2]) * ms
            record.tokens[kind] += int(timed[3])
            record.requests = (record.requests or 0.0) + (kind == "output")
            self.taken += 1
            return True
        if any(word in line for word in _LLAMA_WORDS):
            self._stated(line)
        return False

    def _stated(self, line: str) -> None:
        record = self.record
        if "n_slots = " in line:
            record.seats = int(number_after(line, "n_slots") or 0) or None
        elif found := re.search(r"offloaded (\d+)/(\d+) layers to GPU", line):
            record.layers_on_gpu = int(found[1]), int(found[2])
        elif found := re.search(r"general\.name\s*(?:str)?\s*=\s*(.+)", line):
            record.model = found[1].strip()
        elif found := re.search(r"model size\s*=\s*([\d.]+) (GiB|MiB)", line):
            record.weights_bytes = float(found[1]) * (GiB if found[2] == "GiB" else MiB)
        elif found := re.search(r"file type\s*=\s*(\w+)(?: - (Small|Medium|Large))?", line):
            record.weights = found[1] + (f"_{found[2][0]}" if found[2] else "")
        elif found := re.search(r"Device \d+: ([^,]+), compute capability", line):
            record.hardware = found[1]
        elif found := re.search(r"\bbuild: (\d+ \(\w+\))", line):
            record.version = found[1]
        elif found := re.search(r"\bn_ctx_(?:per_)?seq\s*=\s*(\d+)|\bn_ctx_slot = (\d+)", line):
            record.max_model_len = int(found[1] or found[2])
        else:
            self._cache(line)

    def _cache(self, line: str) -> None:
        record = self.record
        size = re.search(r"\bsize =\s*([\d.]+) MiB \(\s*(\d+) cells,.*K \((\w+)\).*V \((\w+)\)", line)
        older = re.search(r"KV self size\s*=\s*([\d.]+) MiB, K \((\w+)\)", line)
        if size:  # one line a cache: layers with windows have one of their own
            record.kv_bytes = (record.kv_bytes or 0.0) + float(size[1]) * MiB
            record.kv_tokens = max(record.kv_tokens or 0, int(size[2]))
            record.cache = size[3] if size[3] == size[4] else ""
        elif older:
            record.kv_bytes, record.cache = float(older[1]) * MiB, older[2]
        elif cells := re.search(r"\bkv_size = (\d+)", line):
            record.kv_tokens = int(cells[1])
