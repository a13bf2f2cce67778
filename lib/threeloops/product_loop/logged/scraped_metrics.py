"""Scraped metrics: what vLLM, SGLang, llama.cpp and the server of chapter 3 answer at /metrics, by the names of today
and older ones; one scrape, or several one after the other in a file.

>>> scrape = ScrapedMetrics()
>>> for line in (
...     'vllm:num_requests_running{engine="0"} 8.0',
...     'vllm:num_requests_waiting{engine="0"} 3.0',
...     'vllm:gpu_cache_usage_perc{engine="0"} 0.97',
...     'vllm:num_preemptions_total{engine="0"} 12.0',
... ):
...     taken = scrape.take(line)
>>> scrape.close()
>>> scrape.record.engine, scrape.record.columns["kv_usage"].tolist(), scrape.record.preempted
('vLLM', [0.97], 12)

Source: vllm-project, vLLM, vllm/v1/metrics/loggers.py (PrometheusStatLogger; names with gpu_ until 0.9) and
        vllm/engine/metrics.py (V0); sgl-project, SGLang, python/sglang/srt/metrics/collector.py; ggml-org, llama.cpp,
        tools/server/README.md; Prometheus, text exposition format
"""

import re

from threeloops.product_loop.logged.engine_record import EngineRecord

# A gauge of a moment -> its names, the newest first.
GAUGES = {
    "running": (
        *("vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing"),
        "threeloops_requests_running",
    ),
    "waiting": (
        *("vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"),
        "threeloops_requests_waiting",
    ),
    "kv_usage": (
        *("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
        "llamacpp:kv_cache_usage_ratio",
    ),
    "output_per_s": ("sglang:gen_throughput", "vllm:avg_generation_throughput_toks_per_s"),
    "prompt_per_s": ("vllm:avg_prompt_throughput_toks_per_s",),
}
# A counter since the start, or over the scrapes of the file.
COUNTERS = {
    "preempted": (
        *("vllm:num_preemptions_total", "sglang:num_retracted_requests_total", "sglang:num_retracted_reqs_total"),
        *("threeloops_preemptions_total",),
    ),
    "asked": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "found": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total"),
    "prompt": (
        *("vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "llamacpp:prompt_tokens_total"),
        "threeloops_prompt_tokens_total",
    ),
    "output": (
        *("vllm:generation_tokens_total", "sglang:generation_tokens_total", "llamacpp:tokens_predicted_total"),
        "threeloops_generation_tokens_total",
    ),
    "ended": ("vllm:request_success_total", "sglang:num_requests_total", "threeloops_requests_total"),
    "prompt_s": ("llamacpp:prompt_seconds_total",),
    "answer_s": ("llamacpp:tokens_predicted_seconds_total",),
}
# A histogram, by its sum and its count.
HISTOGRAMS = {
    "whole": (
        *("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds", "threeloops_request_seconds"),
    ),
    "first": (
        *("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
        "threeloops_time_to_first_token_seconds",
    ),
    "queue": ("vllm:request_queue_time_seconds", "vllm:time_in_queue_requests", "sglang:queue_time_seconds"),
}
ENGINES = {"vllm:": "vLLM", "sglang:": "SGLang", "llamacpp:": "llama.cpp", "threeloops_": "the server of chapter 3"}
_SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+([-+.\deE]+|[-+]?Inf|NaN)\b')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def _rank(labels: str) -> str:
    """Which of several engines, or of SGLang's data-parallel ranks, a sample is of."""
    told = dict(_LABEL.findall(labels))
    return told.get("engine") or told.get("dp_rank") or "0"


class ScrapedMetrics:
    """Lines in, a record out; `close` once the file is over."""

    def __init__(self) -> None:
        self.record = EngineRecord(engine="", scraped=True)
        self.taken = 0
        self._now: dict[tuple[str, str], float] = {}  # of this scrape: name and labels -> value
        self._before: dict[str, float] | None = None  # counters of the first scrape, where there are several
        self._sums: dict[str, float] = {}

    def take(self, line: str) -> bool:
        """Whether the line is a sample of an engine that is known here."""
        prefix = next((prefix for prefix in ENGINES if line.startswith(prefix)), "")
        sample = _SAMPLE.match(line) if prefix else None
        if not sample:
            return False
        name, labels = sample[1], sample[2] or ""
        try:
            value = float(sample[3])
        except ValueError:  # a line that was torn
            return False
        self.record.engine = self.record.engine or ENGINES[prefix]
        self.taken += 1
        told = dict(_LABEL.findall(labels))
        self.record.model = self.record.model or told.get("model_name", "")
        if name.endswith("cache_config_info"):
            self._cache(told)
        if name.endswith("_bucket") or told.get("tp_rank", "0") != "0" or told.get("priority"):
            return True
        if (name, labels) in self._now:  # again: another scrape begins
            self._end()
        self._now[name, labels] = value
        return True

    def _cache(self, told: dict[str, str]) -> None:
        record = self.record
        for name, label in (("block_tokens", "block_size"), ("num_blocks", "num_gpu_blocks")):
            if told.get(label, "").isdecimal():
                setattr(record, name, int(told[label]))
        record.cache = told.get("cache_dtype", record.cache)
        if record.block_tokens and record.num_blocks:
            record.kv_tokens = record.block_tokens * record.num_blocks

    def close(self) -> None:
        """The file is over: counters become what they grew by, or what they are since the start."""
        if self._now:
            self._end()
        before = self._before if self._before != self._sums else None
        self._tell({name: value - (before or {}).get(name, 0.0) for name, value in self._sums.items()})

    def _end(self) -> None:
        """One scrape is over: its gauges are a moment."""
        engines = {_rank(labels) for _, labels in self._now}
        for engine in sorted(engines):
            gauges = {gauge: self._gauge(names, engine) for gauge, names in GAUGES.items()}
            if (total := self._sum("threeloops_kv_blocks_total")) and self.record.engine == ENGINES["threeloops_"]:
                gauges["kv_usage"] = 1 - (self._sum("threeloops_kv_blocks_free") or 0.0) / total
                self.record.num_blocks = int(total)
            if gauges["running"] is not None:
                self.record.enter(rank=float(engine) if engine.isdecimal() else 0.0, **gauges)
        tokens = self._sum("sglang:max_total_num_tokens")
        self.record.kv_tokens = int(tokens) if tokens else self.record.kv_tokens
        self.record.hit_rate = self._sum("sglang:cache_hit_rate", "vllm:gpu_prefix_cache_hit_rate")
        self._sums = {key: value for key, names in COUNTERS.items() if (value := self._sum(*names)) is not None}
        for key, names in HISTOGRAMS.items():
            for what in ("sum", "count"):
                if (value := self._sum(*(f"{name}_{what}" for name in names))) is not None:
                    self._sums[f"{key}_{what}"] = value
        self._before = dict(self._sums) if self._before is None else self._before
        self._now = {}

    def _gauge(self, names: tuple[str, ...], engine: str) -> float | None:
        own = {key: value for key, value in self._now.items() if _rank(key[1]) == engine}
        return next((value for name in names for (held, _), value in own.items() if held == name), None)

    def _sum(self, *names: str) -> float | None:
        """Over all labels, under the newest of the names that is there."""
        for name in names:
            found = [value for (held, _), value in self._now.items() if held == name]
            if found:
                return sum(found)
        return None

    def _tell(self, grown: dict[str, float]) -> None:
        record = self.record
        record.preempted = int(grown["preempted"]) if "preempted" in grown else None
        record.requests = grown.get("whole_count") or grown.get("ended")
        record.tokens.update({kind: int(grown[kind]) for kind in ("prompt", "output") if kind in grown})
        if "found" in grown:
            record.asked_tokens = grown.get("asked", grown.get("prompt", 0.0))
            record.found_tokens = grown["found"]
        if "prompt_s" in grown and "answer_s" in grown:
            record.stages = {"prompt": grown["prompt_s"], "answer": grown["answer_s"]}
        if all(grown.get(f"{key}_{what}") for key in ("whole", "first") for what in ("sum", "count")):
            whole, first = (grown[f"{key}_sum"] / grown[f"{key}_count"] for key in ("whole", "first"))
            queue = (
                grown["queue_sum"] / grown["queue_count"] if grown.get("queue_count") and "queue_sum" in grown else None
            )
            told = {"waits": queue, "prompt": first - (queue or 0.0), "answer": whole - first}
            record.stages = {
                stage: max(0.0, value) * grown["whole_count"] for stage, value in told.items() if value is not None
            }
