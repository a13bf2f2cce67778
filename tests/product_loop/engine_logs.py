"""Logs of the book's own serving simulator, in the forms of real engines: each is written by that engine's own strings,
with figures that the simulator counted.

Source of the strings: vLLM, vllm/v1/metrics/loggers.py of 0.10, and vllm/engine/metrics.py of 0.5 (V0); SGLang,
srt/managers/scheduler_metrics_mixin.py of 0.5 and the decode lines of 0.4; vLLM's and SGLang's /metrics by the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from threeloops.simulate.product_loop.serving_play import in_order
from threeloops.simulate.product_loop.serving_policies import KVBlocks, Policy
from threeloops.simulate.product_loop.serving_requests import Moments, Request
from threeloops.simulate.product_loop.serving_server import Server
from threeloops.simulate.product_loop.serving_steps import AffineStep

EVERY_S = 10.0
STEP = AffineStep(base_s=0.02, per_prefill_token_s=20e-6, per_decode_s=50e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the simulator says of itself at a moment, and of the seconds before it."""

    at_s: float
    running: int
    waiting: int
    usage: float
    prompt_tokens: int
    output_tokens: int
    preempted: int  # since the start

    @property
    def stamp(self) -> str:
        hours, rest = divmod(int(self.at_s), 3600)
        return f"{hours:02}:{rest // 60:02}:{rest % 60:02}"


@dataclass(slots=True)
class Simulated:
    """A run: samples every ten seconds, and the requests once they have ended."""

    samples: list[Sample] = field(default_factory=list)
    moments: list[Moments] = field(default_factory=list)
    end_s: float = 0.0

    @property
    def output_per_s(self) -> float:
        return sum(one.request.output_tokens for one in self.moments) / self.end_s


def load(*, number: int, per_s: float, prompt: int, answer: int) -> list[Request]:
    """Requests at equal distances, of three lengths."""
    return [Request(place / per_s, prompt + 37 * (place % 3), answer + 11 * (place % 5)) for place in range(number)]


def simulated(
    requests: list[Request], *, policy: Policy, blocks: KVBlocks | None = None, step_s: AffineStep = STEP
) -> Simulated:
    """Play them, looking every ten seconds."""
    server = Server(step_s=step_s, policy=policy, blocks=blocks, each_token=True)
    given, arriving = in_order(requests)
    run, queue, told = Simulated(moments=given), list(arriving), (0, 0)
    while queue or server.in_flight:
        until = EVERY_S * (len(run.samples) + 1)
        while queue and queue[0].request.arrival_s < until:
            moments = queue.pop(0)
            server.advance(moments.request.arrival_s)
            server.add(moments)
        server.advance(until)
        read = sum(one.request.prompt_tokens for one in given if one.token_s and one.token_s[0] <= until)
        made = sum(sum(moment <= until for moment in one.token_s) for one in given)
        usage = 1 - server.blocks.available / blocks.num_blocks if blocks else 0.0
        run.samples.append(
            Sample(
                at_s=until,
                running=len(server.reading) + len(server.decoding),
                waiting=len(server.waiting),
                usage=usage,
                prompt_tokens=read - told[0],
                output_tokens=made - told[1],
                preempted=sum(one.preempted for one in given),
            )
        )
        told = read, made
    run.end_s = max(one.finished_s for one in given)
    return run


def vllm_v1(
    run: Simulated, *, seats: int, blocks: int, model: str = "meta-llama/Llama-3.1-8B-Instruct"
) -> Iterator[str]:
    """vLLM 0.10."""
    yield "(APIServer pid=1) INFO 10-06 00:00:01 [api_server.py:1896] vLLM API server version 0.10.2"
    yield (
        "(APIServer pid=1) INFO 10-06 00:00:01 [utils.py:328] non-default args: {'model_tag': '" + model + "',"
        f" 'max_model_len': 8192, 'max_num_seqs': {seats}}}"
    )
    yield (
        f"INFO 10-06 00:00:02 [core.py:76] Initializing a V1 LLM engine (v0.10.2) with config: model='{model}',"
        f" speculative_config=None, tokenizer='{model}', dtype=torch.bfloat16, max_seq_len=8192,"
        " tensor_parallel_size=1, quantization=None, kv_cache_dtype=auto, device_config=cuda"
    )
    yield "INFO 10-06 00:00:09 [gpu_model_runner.py:2338] Model loading took 14.9889 GiB and 5.1 seconds"
    yield f"INFO 10-06 00:00:10 [gpu_worker.py:276] Available KV cache memory: {blocks * 16 * 131072 / 2**30:.2f} GiB"
    yield f"INFO 10-06 00:00:10 [kv_cache_utils.py:849] GPU KV cache size: {blocks * 16:,} tokens"
    for one in run.samples:
        yield (
            f"(APIServer pid=1) INFO 10-06 {one.stamp} [loggers.py:123] Engine 000: Avg prompt throughput:"
            f" {one.prompt_tokens / EVERY_S:.1f} tokens/s, Avg generation throughput: {one.output_tokens / EVERY_S:.1f}"
            f" tokens/s, Running: {one.running} reqs, Waiting: {one.waiting} reqs, GPU KV cache usage:"
            f" {one.usage * 100:.1f}%, Prefix cache hit rate: 0.0%"
        )
        yield '(APIServer pid=1) INFO:     127.0.0.1:58422 - "POST /v1/completions HTTP/1.1" 200 OK'


def vllm_v0(run: Simulated, *, seats: int, blocks: int) -> Iterator[str]:
    """vLLM 0.5: another line, and preemptions as warnings."""
    yield f"INFO 08-20 00:00:01 api_server.py:340] args: Namespace(host=None, max_num_seqs={seats}, port=8000)"
    yield (
        "INFO 08-20 00:00:02 llm_engine.py:174] Initializing an LLM engine (v0.5.4) with config:"
        " model='/models/models--meta-llama--Meta-Llama-3-8B-Instruct', speculative_config=None, dtype=torch.float16,"
        " max_seq_len=8192, tensor_parallel_size=1, kv_cache_dtype=auto"
    )
    yield "INFO 08-20 00:00:09 model_runner.py:732] Loading model weights took 14.9595 GB"
    yield f"INFO 08-20 00:00:10 gpu_executor.py:102] # GPU blocks: {blocks}, # CPU blocks: 2048"
    before = 0
    for one in run.samples:
        if one.preempted > before:
            yield (
                f"WARNING 08-20 {one.stamp} scheduler.py:1141] Sequence group 14 is preempted by"
                " PreemptionMode.RECOMPUTE mode because there is not enough KV cache space."
                f" total_num_cumulative_preemption={one.preempted}"
            )
            before = one.preempted
        yield (
            f"INFO 08-20 {one.stamp} metrics.py:406] Avg prompt throughput: {one.prompt_tokens / EVERY_S:.1f} tokens/s,"
            f" Avg generation throughput: {one.output_tokens / EVERY_S:.1f} tokens/s, Running: {one.running} reqs,"
            f" Swapped: 0 reqs, Pending: {one.waiting} reqs, GPU KV cache usage: {one.usage * 100:.1f}%, CPU KV cache"
            " usage: 0.0%."
        )


def sglang(run: Simulated, *, seats: int, tokens: int, older: bool = False) -> Iterator[str]:
    """SGLang 0.5, or 0.4."""
    comma = "." if older else ","
    yield (
        "[2025-07-18 00:00:01] server_args=ServerArgs(model_path='Qwen/Qwen3-32B-FP8', tokenizer_path='x', tp_size=1,"
        " kv_cache_dtype='auto', quantization=None)"
    )
    yield "[2025-07-18 00:00:02 TP0] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, mem usage=31.70 GB."
    yield (
        f"[2025-07-18 00:00:03 TP0] max_total_num_tokens={tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384,"
        f" max_running_requests={seats}, context_len=40960"
    )
    before = 0
    for one in run.samples:
        if one.preempted > before:
            yield (
                f"[2025-07-18 {one.stamp} TP0] KV cache pool is full. Retract requests. #retracted_reqs:"
                f" {one.preempted - before}, #new_token_ratio: 0.5863 -> 0.7012"
            )
            before = one.preempted
        yield (
            f"[2025-07-18 {one.stamp} TP0] Prefill batch{comma} #new-seq: 1, #new-token: {one.prompt_tokens},"
            f" #cached-token: 0, token usage: {one.usage:.2f}, #running-req: {one.running}, #queue-req: {one.waiting}, "
        )
        yield (
            f"[2025-07-18 {one.stamp} TP0] Decode batch{comma} #running-req: {one.running}, #token: 4096, token usage:"
            f" {one.usage:.2f}, cuda graph: True, gen throughput (token/s): {one.output_tokens / EVERY_S:.2f},"
            f" #queue-req: {one.waiting}, "
        )


def scraped(run: Simulated, *, at: int, names: str, more: str = "") -> str:
    """A scrape by the names of vLLM of today, of vLLM before 0.9 ("vllm-gpu"), or of SGLang."""
    one, ended = run.samples[at], run.moments
    sums = {
        "queue": sum(each.waited_s for each in ended),
        "first": sum(each.ttft_s for each in ended),
        "whole": sum(each.request_s for each in ended),
    }
    vllm, gpu = names.startswith("vllm"), "gpu_" if names == "vllm-gpu" else ""
    prefix, labels = ("vllm", '{engine="0",model_name="m"}') if vllm else ("sglang", '{model_name="m",tp_rank="0"}')
    words = {
        "running": "num_requests_running" if vllm else "num_running_reqs",
        "waiting": "num_requests_waiting" if vllm else "num_queue_reqs",
        "usage": ("gpu_cache_usage_perc" if gpu else "kv_cache_usage_perc") if vllm else "token_usage",
        "queue": "request_queue_time_seconds" if vllm else "queue_time_seconds",
        "preempted": "num_preemptions_total" if vllm else "num_retracted_requests_total",
    }
    gauges = {"running": one.running, "waiting": one.waiting, "usage": one.usage, "preempted": one.preempted}
    rows = [f"# TYPE {prefix}:{words['running']} gauge"]
    rows += [f"{prefix}:{words[key]}{labels} {float(value)}" for key, value in gauges.items()]
    for key, name in (
        ("queue", words["queue"]), ("first", "time_to_first_token_seconds"), ("whole", "e2e_request_latency_seconds")
    ):  # fmt: skip
        rows.append(f'{prefix}:{name}_bucket{{le="+Inf",model_name="m"}} {float(len(ended))}')
        rows += [f"{prefix}:{name}_sum{labels} {sums[key]}", f"{prefix}:{name}_count{labels} {float(len(ended))}"]
    if vllm:
        rows += [
            f"vllm:{gpu}prefix_cache_queries_total{labels} 1000.0",
            f"vllm:{gpu}prefix_cache_hits_total{labels} 250.0",
        ]
        rows.append('vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="1953"} 1.0')
    return "\n".join(rows) + "\n" + more
