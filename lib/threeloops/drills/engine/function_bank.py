"""The drills that also ask for a function, each with a limit case that a formula learnt by heart gets wrong."""

import random
from collections.abc import Callable

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.functions import FunctionDrill


def _changed(p: Draw, **numbers: object) -> Draw:
    """A draw with some of its numbers replaced."""
    return drawn(**vars(p) | numbers)


def _full_blocks(rng: random.Random) -> Draw:
    p = DRILLS["kv-paged-blocks"].draw(rng)
    return _changed(p, tokens=3 * p.block)


def _short_context(rng: random.Random) -> Draw:
    p = DRILLS["kv-sliding-window"].draw(rng)
    return _changed(p, tokens=p.window // 3)


def _mixed_layers(rng: random.Random) -> Draw:
    """Any model with windows, not only the one that the question names."""
    kv_heads, full = rng.choice((3, 4, 6)), rng.choice((6, 7, 9))
    heads = {
        "kv_heads": kv_heads,
        "query_heads": kv_heads * rng.choice((5, 6, 7)),
        "head_dim": rng.choice((80, 96, 112)),
        "bytes_per_element": 2,
    }
    window = rng.choice((512, 1024, 2048))
    return drawn(
        windowed_layers=4 * full, full_layers=full, window=window, tokens=window * rng.choice((11, 13, 17)), **heads
    )


def _enough_heads(rng: random.Random) -> Draw:
    p = DRILLS["kv-more-gpus-than-heads"].draw(rng)
    return _changed(p, tp=rng.choice((2, 4)))


def _any_heads(rng: random.Random) -> Draw:
    p = DRILLS["kv-more-gpus-than-heads"].draw(rng)
    kv_heads = rng.choice((2, 4))
    return _changed(
        p,
        layers=rng.choice((22, 28, 46)),
        head_dim=rng.choice((80, 96, 112)),
        kv_heads=kv_heads,
        query_heads=48,
        tp=rng.choice((12, 16, 24)),
    )


def _every_gpu_other_experts(rng: random.Random) -> Draw:
    p = DRILLS["memory-expert-parallel"].draw(rng)
    return _changed(p, ep=p.dp)


def _whole_waves(rng: random.Random) -> Draw:
    p = DRILLS["gpu-waves"].draw(rng)
    return _changed(p, blocks=3 * p.sms * p.resident)


def _even_tiles(rng: random.Random) -> Draw:
    p = DRILLS["gemm-quantised-share"].draw(rng)
    return _changed(p, m=p.tile_m, n=2 * p.tile_n * p.sms)


def _one_query_block(rng: random.Random) -> Draw:
    p = DRILLS["attention-fused-traffic"].draw(rng)
    return _changed(p, tokens=p.block)


def _exact_fit(rng: random.Random) -> Draw:
    p = DRILLS["zero-ranks-to-fit"].draw(rng)
    return _changed(p, budget=4 * p.parameters)


def _fewer_rows_than_ranks(rng: random.Random) -> Draw:
    p = DRILLS["zero-uneven-rows"].draw(rng)
    return _changed(p, rows=p.ranks - 2)


def _even_stages(rng: random.Random) -> Draw:
    p = DRILLS["pipeline-slow-stage"].draw(rng)
    return _changed(p, slow_s=p.fast_s)


def _equal_micro_batches(rng: random.Random) -> Draw:
    p = DRILLS["stack-token-weight"].draw(rng)
    return _changed(p, tokens=[p.tokens[0]] * len(p.tokens))


def _nobody_writes_longer(rng: random.Random) -> Draw:
    p = DRILLS["stack-rollout-share"].draw(rng)
    return _changed(p, longest=p.usual)


def _any_slots(rng: random.Random) -> Draw:
    """Any number of slots, not only the two that the question names."""
    return drawn(outputs=[rng.randrange(2, 60) for _ in range(rng.randrange(8, 14))], slots=rng.choice((2, 3, 5)))


def _slots_for_all(rng: random.Random) -> Draw:
    return drawn(outputs=[rng.randrange(2, 60) for _ in range(6)], slots=9)


def _whole_chunks(rng: random.Random) -> Draw:
    p = DRILLS["batching-budget-ttft"].draw(rng)
    return _changed(p, prompt=11 * (p.budget - p.running))


def _with(key: str, **numbers: object) -> Callable[[random.Random], Draw]:
    """A drill's own draw with some of its numbers set."""
    return lambda rng: _changed(DRILLS[key].draw(rng), **numbers)


KV_CACHE = (
    FunctionDrill(
        drill=DRILLS["kv-paged-blocks"],
        takes=("block", "tokens", "per_token", "requests"),
        limit=_full_blocks,
        limit_case="a context that fills its last block exactly",
    ),
    FunctionDrill(
        drill=DRILLS["kv-sliding-window"],
        takes=(
            "windowed_layers",
            "full_layers",
            "window",
            "query_heads",
            "kv_heads",
            "head_dim",
            "bytes_per_element",
            "tokens",
        ),
        draw=_mixed_layers,
        limit=_short_context,
        limit_case="a context shorter than the window",
    ),
    FunctionDrill(
        drill=DRILLS["kv-more-gpus-than-heads"],
        takes=("tp", "layers", "query_heads", "kv_heads", "head_dim", "bytes_per_element", "requests", "tokens"),
        draw=_any_heads,
        limit=_enough_heads,
        limit_case="fewer GPUs than KV heads",
    ),
)

DECODE_SPEED = (
    FunctionDrill(
        drill=DRILLS["serving-tokens-before-deadline"],
        takes=("deadline_ms", "ttft_ms", "itl_ms"),
        limit=_with("serving-tokens-before-deadline", deadline_ms=900, ttft_ms=900),
        limit_case="a deadline at which the first token just comes",
    ),
    FunctionDrill(
        drill=DRILLS["decode-tensor-parallel-step"],
        takes=("billions", "layers", "tp", "bandwidth", "cache", "latency_us"),
        limit=_with("decode-tensor-parallel-step", tp=1),
        limit_case="a single GPU, which has nobody to add up with",
    ),
    FunctionDrill(
        drill=DRILLS["decode-experts-read"],
        takes=("experts", "top_k", "batch", "layers", "expert_mb"),
        limit=_with("decode-experts-read", batch=1),
        limit_case="a single request",
    ),
)

COMPRESSION = (
    FunctionDrill(
        drill=DRILLS["compression-zero-point"],
        takes=("lowest", "highest", "bits"),
        limit=_with("compression-zero-point", lowest=0.0),
        limit_case="values that are never negative",
    ),
    FunctionDrill(
        drill=DRILLS["compression-mean-error"],
        takes=("bits", "largest"),
        limit=_with("compression-mean-error", bits=2),
        limit_case="two bits",
    ),
    FunctionDrill(
        drill=DRILLS["compression-compensation"],
        takes=("exact", "rounded", "second", "own", "together", "other"),
        limit=_with("compression-compensation", together=0),
        limit_case="inputs that have nothing to do with each other",
    ),
)


def _nothing_drafted(rng: random.Random) -> Draw:
    p = DRILLS["spec-in-a-batch"].draw(rng)
    return _changed(p, drafted=0, check_ms=p.plain_ms)


SPECULATIVE = (
    FunctionDrill(
        drill=DRILLS["serving-tokens-per-check"],
        takes=("accepted", "drafted"),
        limit=_with("serving-tokens-per-check", accepted=0.0),
        limit_case="a draft that is never right",
    ),
    FunctionDrill(
        drill=DRILLS["spec-in-a-batch"],
        takes=("plain_ms", "check_ms", "draft_ms", "accepted", "drafted"),
        limit=_nothing_drafted,
        limit_case="nothing drafted at all",
    ),
    FunctionDrill(
        drill=DRILLS["spec-extra-work"],
        takes=("accepted", "drafted", "operations"),
        limit=_with("spec-extra-work", drafted=1),
        limit_case="a single drafted token",
    ),
)

ALL_REDUCE = (
    FunctionDrill(
        drill=DRILLS["ring-small-message"],
        takes=("ranks", "size", "alpha", "rate"),
        limit=_with("ring-small-message", ranks=1),
        limit_case="a single GPU, which has nobody to add up with",
    ),
    FunctionDrill(
        drill=DRILLS["two-level-all-reduce"],
        takes=("size", "nodes", "per_node", "inside", "between"),
        limit=_with("two-level-all-reduce", nodes=1),
        limit_case="a single node",
    ),
    FunctionDrill(
        drill=DRILLS["busbw"],
        takes=("ranks", "size", "seconds"),
        limit=_with("busbw", ranks=2),
        limit_case="two ranks",
    ),
)

BATCHING = (
    FunctionDrill(
        drill=DRILLS["serving-refilled-steps"],
        takes=("outputs", "slots"),
        draw=_any_slots,
        limit=_slots_for_all,
        limit_case="more slots than requests",
    ),
    FunctionDrill(
        drill=DRILLS["batching-gain"],
        takes=("short", "long", "share", "slots"),
        limit=_with("batching-gain", slots=1),
        limit_case="a single slot, in which nobody waits for anybody else's answer",
    ),
    FunctionDrill(
        drill=DRILLS["batching-budget-ttft"],
        takes=("budget", "running", "prompt", "step_ms"),
        limit=_whole_chunks,
        limit_case="a prompt that fills its last step exactly",
    ),
)

ROOFLINE = (
    FunctionDrill(
        drill=DRILLS["roofline-time-bound"],
        takes=("m", "k", "n", "bytes_per_element", "peak", "memory"),
        limit=_with("roofline-time-bound", m=16_000, k=8_000, n=8_000),
        limit_case="a product so large that arithmetic takes longer than memory",
    ),
    FunctionDrill(
        drill=DRILLS["roofline-grouped-convolution"],
        takes=("cameras", "groups", "in_channels", "out_channels", "height", "width", "kernel", "stride"),
        limit=_with("roofline-grouped-convolution", height=135, width=241),
        limit_case="a map whose height and width are odd",
    ),
    FunctionDrill(
        drill=DRILLS["roofline-launch-bound"],
        takes=("layers", "launches", "launch_s", "parameters", "memory"),
        limit=_with("roofline-launch-bound", launches=1),
        limit_case="one fused kernel per layer",
    ),
)

TRAINING_MEMORY = (
    FunctionDrill(
        drill=DRILLS["memory-zero-in-a-grid"],
        takes=("parameters", "tp", "pp", "dp"),
        limit=_with("memory-zero-in-a-grid", dp=1),
        limit_case="one data-parallel rank, with nobody to shard over",
    ),
    FunctionDrill(
        drill=DRILLS["memory-expert-parallel"],
        takes=("dense", "experts", "dp", "ep"),
        limit=_every_gpu_other_experts,
        limit_case="experts dealt out over all GPUs, so that each is held once",
    ),
    FunctionDrill(
        drill=DRILLS["memory-in-flight"],
        takes=("pp", "stage", "micro_batches", "layers", "layer_bytes"),
        limit=_with("memory-in-flight", stage=0, micro_batches=3),
        limit_case="fewer micro-batches than stages",
    ),
)

AMDAHL = (
    FunctionDrill(
        drill=DRILLS["amdahl-loader-must-follow"],
        takes=("loader_ms", "passes_ms", "optimiser_ms", "passes_factor"),
        limit=_with("amdahl-loader-must-follow", loader_ms=100),
        limit_case="a loader that is quick enough as it is",
    ),
    FunctionDrill(
        drill=DRILLS["amdahl-pace-setter"],
        takes=("loader_ms", "passes_ms", "optimiser_ms", "loader_factor", "passes_factor"),
        limit=_with("amdahl-pace-setter", loader_factor=4),
        limit_case="a loader that gets ahead of the accelerator",
    ),
    FunctionDrill(
        drill=DRILLS["amdahl-fixed-batch"],
        takes=("compute_s", "gpus", "size", "rate"),
        limit=_with("amdahl-fixed-batch", gpus=1),
        limit_case="a single GPU, which has nobody to tell",
    ),
)

GPU_KERNELS = (
    FunctionDrill(
        drill=DRILLS["gpu-strided-read"],
        takes=("stride", "warps"),
        limit=_with("gpu-strided-read", stride=11),
        limit_case="a stride so long that every lane has a sector of its own",
    ),
    FunctionDrill(
        drill=DRILLS["gpu-waves"],
        takes=("sms", "resident", "blocks", "block_us"),
        limit=_whole_waves,
        limit_case="a grid that fills its last wave exactly",
    ),
    FunctionDrill(
        drill=DRILLS["gemm-quantised-share"],
        takes=("m", "n", "tile_m", "tile_n", "sms"),
        limit=_even_tiles,
        limit_case="tiles and waves that come out even",
    ),
)

ATTENTION_IO = (
    FunctionDrill(
        drill=DRILLS["attention-fused-traffic"],
        takes=("heads", "head_dim", "tokens", "block", "bytes_per_element"),
        limit=_one_query_block,
        limit_case="a sequence that is one block of queries",
    ),
    FunctionDrill(
        drill=DRILLS["attention-causal-blocks"],
        takes=("block", "blocks", "head_dim", "heads"),
        limit=_with("attention-causal-blocks", blocks=1),
        limit_case="a sequence of a single block",
    ),
    FunctionDrill(
        drill=DRILLS["attention-fused-chain"],
        takes=("unary", "binary", "rows", "width", "bytes_per_element"),
        limit=_with("attention-fused-chain", unary=1, binary=0),
        limit_case="a single kernel, with which nothing can be fused",
    ),
)

NUMBER_FORMATS = (
    FunctionDrill(
        drill=DRILLS["format-largest"],
        takes=("exponent_bits", "mantissa_bits"),
        limit=_with("format-largest", exponent_bits=2),
        limit_case="the fewest exponent bits that leave room for infinity",
    ),
    FunctionDrill(
        drill=DRILLS["format-gap"],
        takes=("value", "exponent_bits", "mantissa_bits"),
        limit=_with("format-gap", exponent_bits=5, mantissa_bits=10, value=2**-17 * 1.375, power=-17),
        limit_case="a value below the smallest normal number",
    ),
    FunctionDrill(
        drill=DRILLS["format-sum-chain"],
        takes=("parts", "each"),
        limit=_with("format-sum-chain", parts=1),
        limit_case="one thread for all the terms",
    ),
)

ZERO_FSDP = (
    FunctionDrill(
        drill=DRILLS["zero-ranks-to-fit"],
        takes=("parameters", "budget"),
        limit=_exact_fit,
        limit_case="states that fill the budget to the last byte",
    ),
    FunctionDrill(
        drill=DRILLS["zero-uneven-rows"],
        takes=("rows", "width", "ranks", "rank", "bytes_per_element"),
        limit=_fewer_rows_than_ranks,
        limit_case="fewer rows than ranks",
    ),
    FunctionDrill(
        drill=DRILLS["zero-fetch-shards"],
        takes=("size", "ranks", "link", "exchange"),
        limit=_with("zero-fetch-shards", ranks=1),
        limit_case="a single GPU, which has nobody to gather from",
    ),
)

PIPELINE = (
    FunctionDrill(
        drill=DRILLS["pipeline-bytes-between-stages"],
        takes=("pp", "chunks", "m", "sequence", "hidden"),
        limit=_with("pipeline-bytes-between-stages", chunks=1),
        limit_case="one chunk per GPU, the plain pipeline",
    ),
    FunctionDrill(
        drill=DRILLS["pipeline-slow-stage"],
        takes=("pp", "m", "fast_s", "slow_s"),
        limit=_even_stages,
        limit_case="a last stage that is no slower than the others",
    ),
    FunctionDrill(
        drill=DRILLS["pipeline-late-links"],
        takes=("pp", "total_s", "send_s"),
        limit=_with("pipeline-late-links", pp=1),
        limit_case="a single stage, with no hop to make",
    ),
)

RELIABILITY = (
    FunctionDrill(
        drill=DRILLS["failure-rare-stalls"],
        takes=("ranks", "every", "step_s", "stall_s"),
        limit=_with("failure-rare-stalls", ranks=1),
        limit_case="a single rank",
    ),
    FunctionDrill(
        drill=DRILLS["failure-slowest-rank"],
        takes=("ranks", "base_s", "delay_s"),
        limit=_with("failure-slowest-rank", ranks=1),
        limit_case="a single rank, which waits for nobody",
    ),
    FunctionDrill(
        drill=DRILLS["failure-two-levels"],
        takes=("percent", "memory_s", "memory_restart_s", "disk_s", "disk_restart_s", "detect_s"),
        limit=_with("failure-two-levels", percent=100),
        limit_case="copies in memory that survive every failure",
    ),
)

PARALLEL_LAYOUT = (
    FunctionDrill(
        drill=DRILLS["layout-largest-tensor-group"],
        takes=("parameters", "pp", "heads", "kv_heads", "domain"),
        limit=_with("layout-largest-tensor-group", domain=1),
        limit_case="a GPU without fast links to any other",
    ),
    FunctionDrill(
        drill=DRILLS["layout-last-of-the-group"],
        takes=("rank", "tp", "cp", "dp", "pp"),
        limit=_with("layout-last-of-the-group", dp=1, rank=7),
        limit_case="a single replica, whose ranks add up with nobody",
    ),
    FunctionDrill(
        drill=DRILLS["layout-runner-up"],
        takes=("work_s", "few", "few_runs", "dear_s", "many", "many_runs", "cheap_s"),
        limit=_with("layout-runner-up", few=1),
        limit_case="a first layout without a pipeline",
    ),
)

STEP_TIME = (
    FunctionDrill(
        drill=DRILLS["step-overlapped-buckets"],
        takes=("forward_ms", "backward_ms", "update_ms", "buckets", "bucket_ms"),
        limit=_with("step-overlapped-buckets", buckets=1),
        limit_case="a single bucket, which is complete when the backward pass is",
    ),
    FunctionDrill(
        drill=DRILLS["stack-token-weight"],
        takes=("tokens",),
        limit=_equal_micro_batches,
        limit_case="micro-batches of equal length",
    ),
    FunctionDrill(
        drill=DRILLS["stack-rollout-share"],
        takes=("responses", "usual", "longest", "weights_ms", "response_us", "reward_s", "update_s"),
        limit=_nobody_writes_longer,
        limit_case="responses that are all of one length",
    ),
)


def _even_stream(rng: random.Random) -> Draw:
    p = DRILLS["capacity-streamed-weights"].draw(rng)
    return _changed(p, link=rng.choice((10, 20, 25)), tflops=rng.choice((100, 200, 300)))


def _impatient(rng: random.Random) -> Draw:
    p = DRILLS["queue-rate-for-a-p99"].draw(rng)
    return _changed(p, p99_ms=3 * p.service_ms)


def _enough_servers(rng: random.Random) -> Draw:
    p = DRILLS["queue-shed-share"].draw(rng)
    return _changed(p, arrive=round(p.arrive / 3))


CAPACITY = (
    FunctionDrill(
        drill=DRILLS["capacity-full-slots"],
        takes=("rate", "output", "slots", "prefill_ms", "cache_ms", "weights_us"),
        limit=_with("capacity-full-slots", slots=1),
        limit_case="GPUs with room for one request each",
    ),
    FunctionDrill(
        drill=DRILLS["capacity-streamed-weights"],
        takes=("bytes_per_parameter", "link", "tflops"),
        limit=_even_stream,
        limit_case="a number of tokens that comes out even",
    ),
    FunctionDrill(
        drill=DRILLS["capacity-adapter-batch"],
        takes=("weights", "cache", "adapter", "batch", "distinct", "memory"),
        limit=_with("capacity-adapter-batch", distinct=0),
        limit_case="a batch that wants the base alone",
    ),
)

QUEUES = (
    FunctionDrill(
        drill=DRILLS["queue-rate-for-a-p99"],
        takes=("service_ms", "p99_ms"),
        limit=_impatient,
        limit_case="a promise that even an empty server cannot keep",
    ),
    FunctionDrill(
        drill=DRILLS["queue-long-among-short"],
        takes=("short_ms", "long_ms", "percent", "per_minute"),
        limit=_with("queue-long-among-short", percent=0),
        limit_case="no long requests at all",
    ),
    FunctionDrill(
        drill=DRILLS["queue-shed-share"],
        takes=("servers", "service_ms", "arrive"),
        limit=_enough_servers,
        limit_case="servers that keep up",
    ),
)

FUNCTIONS: dict[str, FunctionDrill] = {
    one.key: one
    for one in (
        *AMDAHL,
        *DECODE_SPEED,
        *ROOFLINE,
        *GPU_KERNELS,
        *ATTENTION_IO,
        *CAPACITY,
        *NUMBER_FORMATS,
        *TRAINING_MEMORY,
        *ALL_REDUCE,
        *KV_CACHE,
        *BATCHING,
        *COMPRESSION,
        *SPECULATIVE,
        *PARALLEL_LAYOUT,
        *PIPELINE,
        *QUEUES,
        *RELIABILITY,
        *STEP_TIME,
        *ZERO_FSDP,
    )
}
