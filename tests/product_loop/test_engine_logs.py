"""Engines' logs against what made them: simulated servers with known truths, and figures of published logs."""

import functools
import re
from collections.abc import Callable, Iterable

import pytest
from tests.product_loop import engine_logs
from tests.product_loop.engine_logs import EVERY_S, Simulated, load, simulated

from threeloops.facts.hardware import part
from threeloops.models.catalogue import model
from threeloops.product_loop.kv_quantisation import cache_format
from threeloops.product_loop.logged.engine_account import (
    ADMITTED,
    CACHE,
    LIMITED,
    SEATS,
    CacheCheck,
    admission,
    cache_beside_formula,
    logged_s,
    pace,
)
from threeloops.product_loop.logged.engine_lines import LlamaLines, SglangLines, VllmLines
from threeloops.product_loop.logged.engine_record import EngineRecord
from threeloops.product_loop.logged.engine_suspects import (
    ANSWERS,
    CACHE_FULL,
    HELD_BACK,
    NO_DEMAND,
    NO_SEATS,
    OFFLOADED,
    PROMPTS,
    engine_suspects,
)
from threeloops.product_loop.logged.scraped_metrics import ScrapedMetrics
from threeloops.simulate.product_loop.serving_policies import KVBlocks, chunked_prefill, static_batching

WIDE, NARROW = KVBlocks(num_blocks=8000), KVBlocks(num_blocks=420)
ROOMY = chunked_prefill(slots=64, token_budget=2048)
v1, v0, sgl, scraped = engine_logs.vllm_v1, engine_logs.vllm_v0, engine_logs.sglang, engine_logs.scraped


@functools.cache
def crowded() -> Simulated:
    """More requests than the cache holds, and seats enough."""
    return simulated(
        load(number=120, per_s=4, prompt=600, answer=200),
        policy=ROOMY,
        blocks=NARROW,
    )


@functools.cache
def seated(slots: int = 6) -> Simulated:
    """More requests than seats, and a cache that would hold them."""
    return simulated(
        load(number=400, per_s=4, prompt=300, answer=200),
        policy=chunked_prefill(slots=slots, token_budget=2048),
        blocks=WIDE,
    )


@functools.cache
def calm() -> Simulated:
    """Few requests."""
    return simulated(
        load(number=60, per_s=0.5, prompt=300, answer=100),
        policy=ROOMY,
        blocks=WIDE,
    )


@functools.cache
def batches() -> Simulated:
    """Static batches: seats are free while the longest answer is made, and nobody gets them."""
    requests = [
        one for place in range(30) for one in load(number=4, per_s=1e6, prompt=100, answer=40 + 900 * (place % 2))
    ]
    return simulated(requests, policy=static_batching(slots=7), blocks=WIDE)


def read(reader: VllmLines | SglangLines | LlamaLines, lines: Iterable[str]) -> EngineRecord:
    for line in lines:
        reader.take(line)
    return reader.record


def scrape(text: str) -> EngineRecord:
    reader = ScrapedMetrics()
    for line in text.splitlines():
        reader.take(line)
    reader.close()
    return reader.record


def llama(*, layers: int, prompt_ms: float, answer_ms: float) -> list[str]:
    """llama.cpp's server, by tools/server (print_timings), src/llama-model.cpp, src/llama-kv-cache.cpp."""
    return [
        "build: 6500 (0b1bad14) with cc (Ubuntu 13.3.0) for x86_64-linux-gnu",
        "  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes",
        "print_info: file type   = Q4_K - Medium",
        "print_info: general.name     = Meta Llama 3.1 8B Instruct",
        f"load_tensors: offloaded {layers}/33 layers to GPU",
        "llama_kv_cache: size = 1024.00 MiB (  8192 cells,  32 layers,  1/1 seqs), K (f16):  512.00 MiB,"
        " V (f16):  512.00 MiB",
        "srv          init: initializing slots, n_slots = 1",
        f"prompt eval time = {prompt_ms:11.2f} ms /   800 tokens (    2.44 ms per token,   410.25 tokens per second)",
        f"       eval time = {answer_ms:11.2f} ms /   100 tokens (   20.00 ms per token,    50.00 tokens per second)",
        f"      total time = {prompt_ms + answer_ms:11.2f} ms /   900 tokens",
    ]


# The truth, the first suspect that has to be named, the log.
TRUTHS: dict[str, tuple[str, Callable[[], EngineRecord]]] = {
    "vLLM 0.10, cache": (CACHE_FULL, lambda: read(VllmLines(), v1(crowded(), seats=64, blocks=420))),
    "vLLM 0.5, cache": (CACHE_FULL, lambda: read(VllmLines(), v0(crowded(), seats=64, blocks=420))),
    "vLLM 0.10, seats": (NO_SEATS, lambda: read(VllmLines(), v1(seated(), seats=6, blocks=8000))),
    "vLLM 0.5, calm": (NO_DEMAND, lambda: read(VllmLines(), v0(calm(), seats=64, blocks=8000))),
    "vLLM 0.10, held back": (HELD_BACK, lambda: read(VllmLines(), v1(batches(), seats=7, blocks=8000))),
    "SGLang 0.5, cache": (CACHE_FULL, lambda: read(SglangLines(), sgl(crowded(), seats=64, tokens=6720))),
    "SGLang 0.4, seats": (
        NO_SEATS, lambda: read(SglangLines(), sgl(seated(), seats=6, tokens=128000, older=True)),
    ),
    "SGLang 0.5, calm": (NO_DEMAND, lambda: read(SglangLines(), sgl(calm(), seats=64, tokens=128000))),
    "vLLM's metrics, cache": (CACHE_FULL, lambda: scrape(scraped(crowded(), at=3, names="vllm"))),
    "older names, cache": (CACHE_FULL, lambda: scrape(scraped(crowded(), at=3, names="vllm-gpu"))),
    "SGLang's metrics, calm": (ANSWERS, lambda: scrape(scraped(calm(), at=3, names="sglang"))),
    "llama.cpp, on the host": (OFFLOADED, lambda: read(LlamaLines(), llama(layers=20, prompt_ms=300, answer_ms=9000))),
    "llama.cpp, long prompts": (PROMPTS, lambda: read(LlamaLines(), llama(layers=33, prompt_ms=9000, answer_ms=2000))),
}  # fmt: skip


@pytest.mark.parametrize("truth", TRUTHS)
def test_the_first_suspect_is_what_the_server_suffers_from(truth: str) -> None:
    wanted, log = TRUTHS[truth][0], TRUTHS[truth][1]()
    assert engine_suspects(log, admission(log), None)[0].illness == wanted


def test_shares_of_admission_are_what_the_simulator_did() -> None:
    """Each of the simulator's samples once more, by hand; the calm server's last arrival ends what is admitted."""
    for run, seats, blocks in ((crowded(), 64, 420), (seated(), 6, 8000), (calm(), 64, 8000)):
        found = admission(read(VllmLines(), v1(run, seats=seats, blocks=blocks)))
        waits = [one for one in run.samples if one.waiting]
        assert sum(found[cause].share for cause in LIMITED if cause in found) == pytest.approx(
            len(waits) / len(run.samples)
        )
        free = sum(one.running > 0 and not one.waiting for one in run.samples)
        assert (found[ADMITTED].share if ADMITTED in found else 0) == pytest.approx(free / len(run.samples))
    log = read(VllmLines(), v1(seated(), seats=6, blocks=8000))
    assert logged_s(log) == pytest.approx(EVERY_S * len(seated().samples))
    assert admission(log)[SEATS].running == 6


def test_the_cache_is_full_for_one_more_like_those_that_run() -> None:
    """Figures of intel/llm-scaler's issue 391: one request holds three quarters of the cache; no second one fits."""
    for running, use, full in ((1, 76.7, True), (1, 40.0, False), (4, 81.0, True), (4, 79.0, False), (0, 60.0, False)):
        lines = VllmLines()
        for second in (32, 42):
            assert lines.take(
                f"(APIServer pid=1) INFO 04-28 22:54:{second} [loggers.py:257] Engine 000: Avg prompt throughput: 0.0"
                f" tokens/s, Avg generation throughput: 5.4 tokens/s, Running: {running} reqs, Waiting: 14 reqs, GPU KV"
                f" cache usage: {use}%, Prefix cache hit rate: 92.0%"
            )
        (cause,) = admission(lines.record)
        assert (cause == CACHE) == full


def test_a_repaired_server_gains_no_more_than_was_said() -> None:
    """Ten times the seats, or of the blocks: the same requests are done sooner, and not by more than the limit."""
    for log, before, after in (
        (read(VllmLines(), v1(seated(), seats=6, blocks=8000)), seated(), seated(60)),
        (
            read(VllmLines(), v1(crowded(), seats=64, blocks=420)), crowded(),
            simulated([one.request for one in crowded().moments], policy=ROOMY, blocks=WIDE),
        ),
    ):  # fmt: skip
        first = engine_suspects(log, admission(log), None)[0]
        gain = after.output_per_s / before.output_per_s
        assert first.at_most is not None
        assert 1.2 < gain < first.at_most


def test_preemptions_are_counted_as_each_engine_tells_them() -> None:
    true = crowded().samples[-1].preempted
    assert true > 0
    assert read(VllmLines(), v0(crowded(), seats=64, blocks=420)).preempted == true
    assert read(SglangLines(), sgl(crowded(), seats=64, tokens=6720)).preempted == true
    assert read(VllmLines(), v1(crowded(), seats=64, blocks=420)).preempted is None  # V1 is silent
    assert scrape(scraped(crowded(), at=-1, names="vllm")).preempted == true


def test_vllm_of_2026_tells_preemptions_and_who_is_deferred_in_its_line() -> None:
    """Names as in vllm/v1/metrics/loggers.py: preemptions since the line before, deferred among those that wait."""
    line = (
        "(APIServer pid=7) INFO 03-17 15:38:{at} [loggers.py:259] Engine 000: Avg prompt throughput: 900.0 tokens/s,"
        " Avg generation throughput: 80.5 tokens/s, Running: 9 reqs, Waiting: {waiting} reqs, {more}GPU KV cache usage:"
        " 97.5%, Prefix cache hit rate: 12.5%, External prefix cache hit rate: 40.0%, MM cache hit rate: 90.0%"
    )
    lines = VllmLines()
    assert lines.take(line.format(at=10, waiting=5, more=""))
    assert lines.record.preempted is None  # none is told where there was none, and by older versions never
    lines.take(line.format(at=20, waiting=12, more="Deferred: 4 reqs, Preemptions: 3, "))
    lines.take(line.format(at=30, waiting=6, more="Preemptions: 2, "))
    record = lines.record
    assert (record.preempted, record.hit_rate) == (5, 0.125)
    assert record.columns["waiting"].tolist() == [5, 8, 6]
    assert record.columns["kv_usage"].tolist() == [0.975] * 3


def test_requests_that_are_all_deferred_are_no_want_of_demand() -> None:
    line = "Avg generation throughput: 80.5 tokens/s, Running: 9 reqs, Waiting: {}GPU KV cache usage: 30.0%"
    lines = VllmLines()
    for waiting in ("4 reqs, Deferred: 4 reqs, ", "8 reqs, Deferred: 8 reqs, ", "0 reqs, ", "0 reqs, "):
        lines.take(f"INFO 03-17 15:38:10 [loggers.py:259] Engine 000: {line.format(waiting)}")
    limits = admission(lines.record)
    assert {cause: (one.share, one.waiting, one.factor) for cause, one in limits.items()} == {
        "all that wait are deferred": (0.5, 6.0, None), "all that came were admitted": (0.5, 0.0, None)
    }  # fmt: skip
    told = {one.illness: (one.share, one.because) for one in engine_suspects(lines.record, limits, None)}
    share, because = told["held back with room"]
    assert share == 0.5
    assert because.startswith("50.0 % of the time 6.0 are deferred beside 9.0 that run")
    assert told["no demand"][0] == 0.5


@pytest.mark.parametrize(
    ("engine", "waits", "preempted", "illness", "further"),
    [
        ("vLLM", {"waits": 6.0}, None, HELD_BACK, True),  # why they wait, the figures do not say
        ("vLLM", {"waits": 6.0}, 3, CACHE_FULL, False),
        ("vLLM", {}, None, PROMPTS, True),  # the queue is in the time to the first token
        ("vLLM", {}, 3, CACHE_FULL, False),
        ("llama.cpp", {}, None, PROMPTS, False),  # it times the prompt alone
    ],
)
def test_more_is_asked_for_where_figures_leave_a_cause_open(
    engine: str, waits: dict[str, float], preempted: int | None, illness: str, further: bool
) -> None:
    log = EngineRecord(engine=engine, preempted=preempted, stages=waits | {"prompt": 3.0, "answer": 1.0})
    first = engine_suspects(log, {}, None)[0]
    assert (first.illness, bool(first.record_next)) == (illness, further)


def test_what_is_all_of_the_time_has_no_limit() -> None:
    suspects = engine_suspects(EngineRecord(engine="llama.cpp", stages={"prompt": 2.0, "answer": 0.0}), {}, None)
    assert {one.illness: (one.share, one.at_most) for one in suspects} == {PROMPTS: (1.0, None)}


def test_the_fullest_of_sglangs_pools_is_what_limits() -> None:
    """A model with windows or recurrent states has a pool for each; what lies on the host does not limit admission."""
    head = "[2026-07-04 04:31:24 TP0] Decode batch, #running-req: 40, "
    tail = "cuda graph: True, gen throughput (token/s): 900.1, #queue-req: 97"
    pools = {
        "#token: 20800, token usage: 0.29, ": 0.29,
        "#full token: 166144, full token usage: 0.02, #swa token: 512, swa token usage: 0.96, accept len: 3.55, ": 0.96,
        "#full token: 90, full token usage: 0.40, mamba num: 60, mamba usage: 0.98, ": 0.98,
        "#gpu token: 9, gpu token usage: 0.31, #cpu token: 9, cpu token usage: 0.99, ": 0.31,
    }
    lines = SglangLines()
    assert all(lines.take(head + pool + tail) for pool in pools)
    assert lines.record.columns["kv_usage"].tolist() == list(pools.values())
    assert lines.record.columns["running"].tolist() == [40] * 4


def test_stamps_without_a_date_count_on_across_midnight() -> None:
    """The same log, begun a minute before midnight by a logger that writes the time of day alone."""
    dated = list(sgl(crowded(), seats=64, tokens=6720))

    def undated(line: str) -> str:
        hours, minutes, seconds = map(int, re.findall(r"2025-07-18 (\d\d):(\d\d):(\d\d)", line)[0])
        since, rest = divmod((hours * 3600 + minutes * 60 + seconds + 86_340) % 86_400, 3600)
        return re.sub(r"2025-07-18 [\d:]+", f"{since:02}:{rest // 60:02}:{rest % 60:02}", line)

    plain = [undated(line) for line in dated]
    assert any(line.startswith("[23:59:") for line in plain)
    assert any(line.startswith("[00:0") for line in plain)
    with_date, without = read(SglangLines(), dated), read(SglangLines(), plain)
    assert logged_s(without) == pytest.approx(logged_s(with_date))
    assert admission(without) == admission(with_date)
    shifted = [one - two for one, two in zip(without.columns["at_s"], with_date.columns["at_s"], strict=True)]
    assert max(shifted) - min(shifted) == 0


def test_llama_cpp_of_today_writes_the_context_of_a_sequence_by_another_name() -> None:
    for said in ("llama_context: n_ctx_per_seq = 8192", "0.08.462.474 I llama_context: n_ctx_seq     = 8192"):
        lines = LlamaLines()
        lines.take(said)
        lines.take("llama_context: n_ctx_seq (8192) < n_ctx_train (262144) -- the full capacity is not used")
        assert lines.record.max_model_len == 8192


def test_the_pace_is_that_of_the_simulated_steps() -> None:
    """Six that decode take a step of the model's seconds each; prompts lie in between and make it longer."""
    log = read(VllmLines(), v1(seated(), seats=6, blocks=8000))
    found = pace(
        log, model=model("llama-3.1-8b"), part=part("h100-sxm5"), weights_bytes=16.06e9,
        cache=cache_format(model("llama-3.1-8b"), cache="bf16"), dtype="bf16", tp=1,
    )  # fmt: skip
    assert found is not None
    prompts = sum(one.prompt_tokens for one in seated().samples)
    alone_s = engine_logs.STEP.base_s + 6 * engine_logs.STEP.per_decode_s
    reading = prompts * engine_logs.STEP.per_prefill_token_s / seated().end_s  # share of the time
    assert found.step_s == pytest.approx(alone_s / (1 - reading), rel=0.03)
    assert found.floor_s == pytest.approx(16.06e9 / 3.35e12, rel=0.2)
    assert found.floor_s > 16.06e9 / 3.35e12
    assert engine_suspects(log, admission(log), found)[-1].at_most == pytest.approx(found.step_s / found.floor_s)


def test_the_cache_of_published_logs() -> None:
    """Tokens and bytes as three engines printed them: vllm-project/vllm, issue 21348 (Qwen3 235B on four GPUs, in vLLM
    and in SGLang, whose GB are GiB); llama.cpp with Mistral 7B, whose layers cache as much as those of Llama 3 8B.
    """
    qwen, llama_3 = model("qwen3-235b-a22b"), model("llama-3-8b")
    for log, of, tp in (
        (read(VllmLines(), ["Available KV cache memory: 8.11 GiB", "GPU KV cache size: 178,880 tokens"]), qwen, 4),
        (
            read(SglangLines(), [
                "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB",
                "max_total_num_tokens=367404, max_running_requests=2049, context_len=40960",
            ]), qwen, 4,
        ),
    ):  # fmt: skip
        found = cache_beside_formula(log, of, cache=cache_format(of, cache="bf16"), tp=tp)
        assert isinstance(found, CacheCheck)
        assert found.formula_bytes == pytest.approx(found.stated_bytes, rel=0.015)
    line = (
        "llama_kv_cache: size = 512.00 MiB (4096 cells, 32 layers, 1/1 seqs), K (f16): 256.00 MiB, V (f16): 256.00 MiB"
    )
    log = read(LlamaLines(), [line])
    found = cache_beside_formula(log, llama_3, cache=cache_format(llama_3, cache="fp16"), tp=1)
    assert isinstance(found, CacheCheck)
    assert found.formula_bytes == found.stated_bytes


def test_a_cache_of_windows_is_not_held_against_one_formula() -> None:
    log = read(VllmLines(), ["GPU KV cache size: 178,880 tokens"])
    gemma = model("gemma-3-27b")
    assert "windows or states" in cache_beside_formula(log, gemma, cache=cache_format(gemma, cache="bf16"), tp=1)
    assert "no size" in cache_beside_formula(
        EngineRecord(engine="vLLM"), gemma, cache=cache_format(gemma, cache="bf16"), tp=1
    )


def test_what_an_engine_states_is_read() -> None:
    log = read(VllmLines(), v1(calm(), seats=64, blocks=8000))
    assert (log.version, log.model, log.dtype) == ("0.10.2", "meta-llama/Llama-3.1-8B-Instruct", "bfloat16")
    assert (log.tp, log.seats, log.max_model_len, log.kv_tokens) == (1, 64, 8192, 128_000)
    log = read(VllmLines(), v0(calm(), seats=64, blocks=8000))
    assert (log.version, log.seats, log.num_blocks, log.kv_tokens) == ("0.5.4", 64, 8000, 128_000)
    log = read(SglangLines(), sgl(calm(), seats=64, tokens=128_000))
    assert (log.model, log.tp, log.seats, log.kv_tokens) == ("Qwen/Qwen3-32B-FP8", 1, 64, 128_000)
    log = read(LlamaLines(), llama(layers=20, prompt_ms=300, answer_ms=600))
    assert (log.hardware, log.layers_on_gpu, log.seats) == ("NVIDIA GeForce RTX 4090", (20, 33), 1)
    assert log.stages == pytest.approx({"prompt": 0.3, "answer": 0.6})


def test_silence_is_not_time_and_ranks_are_apart() -> None:
    line = (
        "INFO 10-06 {} [loggers.py:1] Engine 00{}: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 9.0"
        " tokens/s, Running: 1 reqs, Waiting: {} reqs, GPU KV cache usage: 95.0%"
    )
    stamps = [("00:00:10", 0, 0), ("00:00:20", 0, 0), ("00:00:30", 0, 2), ("09:00:00", 0, 0)]
    log = read(VllmLines(), (line.format(*one) for one in stamps))
    assert admission(log)[CACHE].share == pytest.approx(0.25)
    both = read(VllmLines(), (line.format(at, rank, 2 * rank) for at, _, _ in stamps[:3] for rank in (0, 1)))
    assert admission(both)[CACHE].share == pytest.approx(0.5)


def test_a_torn_log_is_read_as_far_as_it_goes() -> None:
    """A timing without its second half, a histogram without its sum, a number that is none."""
    log = read(LlamaLines(), llama(layers=33, prompt_ms=300, answer_ms=9000)[:8])
    assert engine_suspects(log, admission(log), None)[0].illness == PROMPTS
    text = "\n".join(
        line for line in scraped(calm(), at=3, names="vllm").splitlines() if "first_token_seconds_sum" not in line
    )
    assert scrape(text).stages == {}
    assert not ScrapedMetrics().take("vllm:num_requests_running 12-.0")


def test_ranks_of_a_scrape_are_moments_of_their_own() -> None:
    rows = [
        f'sglang:{name}{{dp_rank="{rank}",tp_rank="0"}} {value}'
        for rank, told in enumerate(((4, 0, 0.5), (7, 3, 0.95)))
        for name, value in zip(("num_running_reqs", "num_queue_reqs", "token_usage"), told, strict=True)
    ]
    log = scrape("\n".join(rows))
    assert (log.columns["running"].tolist(), log.columns["waiting"].tolist()) == ([4, 7], [0, 3])
    assert admission(log)[CACHE].share == 0.5


def test_several_scrapes_are_what_happened_between_them() -> None:
    text = scraped(seated(), at=3, names="vllm")
    later = text.replace(
        'queries_total{engine="0",model_name="m"} 1000.0', 'queries_total{engine="0",model_name="m"} 3000.0'
    )
    later = later.replace('hits_total{engine="0",model_name="m"} 250.0', 'hits_total{engine="0",model_name="m"} 1250.0')
    log = scrape(text + later)
    assert log.entries == 2
    assert log.prefix_hits == 0.5
    assert scrape(text).prefix_hits == 0.25
