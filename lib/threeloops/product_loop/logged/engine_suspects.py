"""Engine suspects: what an engine's log shows its requests' time to have gone to, the first to look at in front."""

from dataclasses import replace

from threeloops.inner_loop.scaling import amdahl_limit, amdahl_speedup
from threeloops.product_loop.logged.engine_account import ADMITTED, CACHE, DEFERRED, IDLE, OTHER, SEATS, Admission, Pace
from threeloops.product_loop.logged.engine_record import EngineRecord
from threeloops.training_loop.run.logged.log_suspect import LogSuspect, worst_first
from threeloops.units import counted, fmt_percent, fmt_seconds

CACHE_FULL, NO_SEATS, HELD_BACK, NO_DEMAND = "cache full", "no seat free", "held back with room", "no demand"
PROMPTS, ANSWERS, OFFLOADED = "reading prompts", "making tokens", "layers on the host"
OF_CAUSE = {CACHE: CACHE_FULL, SEATS: NO_SEATS, OTHER: HELD_BACK}
TRY = {
    CACHE_FULL: "more room: a larger share of the memory, an fp8 cache, narrower weights, more GPUs",
    NO_SEATS: "raise max_num_seqs (--max-running-requests, --parallel), as long as the time between tokens allows it",
    HELD_BACK: "more tokens a step (max_num_batched_tokens, --chunked-prefill-size), less --schedule-conservativeness",
    NO_DEMAND: "nothing at the engine: fewer GPUs carry this load, or more load fits; look at clients and the router",
    PROMPTS: "keep prompts that come again (prefix cache, a router that knows it), larger chunks, more FLOP/s",
    ANSWERS: "fewer bytes a step: narrower weights and cache, more GPUs (TP), drafts; less on the host between steps",
    OFFLOADED: "more layers on the GPU (-ngl), in a narrower format or with a shorter context if they do not fit",
}
TRY_DEFERRED = "what they wait for: a place among adapters (--max-loras), or a cache that another engine sends"
CAUSE_NEXT = "periodic lines or scrapes while it happens: running, waiting, use of the cache"


def engine_suspects(log: EngineRecord, limits: dict[str, Admission], paced: Pace | None) -> tuple[LogSuspect, ...]:
    """Suspects, the one to look at first in front.

    Formula:  of requests' stages: at most 1 / (1 - share), Amdahl's limit; of admission: Amdahl's law with the share
              of time in which some waited and (running + waiting) / running as the factor; of the time between tokens:
              its ratio to the floor
    Assumes:  tokens per second grow with the requests that run, at best as much as they do; the log is long beside
              a request, so that few ran later because of the queue and are counted where nobody waits
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560
    Counted:  tests.product_loop.test_engine_logs.test_a_repaired_server_gains_no_more_than_was_said
    """
    found = _offloaded(log)
    found += _of_stages(log, limits, paced) if log.stages else _of_admission(log, limits)
    if not log.stages and paced and paced.floor_s is not None and paced.floor_s < paced.step_s:
        ratio = paced.step_s / paced.floor_s
        because = f"{fmt_seconds(paced.step_s)} from token to token with {paced.running:,.1f} running"
        because += f", {ratio:.2f} times the {fmt_seconds(paced.floor_s)} that reading weights and caches takes"
        undecided = "how much of it is the prompts of others: prompts and steps of one interval"
        found.append(
            LogSuspect(
                illness=ANSWERS, share=None, because=because, at_most=ratio, first_try=TRY[ANSWERS],
                record_next=undecided,
            )
        )  # fmt: skip
    return worst_first(found)


def _offloaded(log: EngineRecord) -> list[LogSuspect]:
    if not log.layers_on_gpu or log.layers_on_gpu[0] >= log.layers_on_gpu[1]:
        return []
    on, of = log.layers_on_gpu
    because = f"{counted(of - on, 'layer')} of {of} in the host's memory, which is read more slowly for every token"
    record = "the same with all layers on a GPU that holds them: a log has no times of layers"
    return [
        LogSuspect(
            illness=OFFLOADED, share=(of - on) / of, because=because, at_most=None, first_try=TRY[OFFLOADED],
            record_next=record, first=True,
        )
    ]  # fmt: skip


def _of_stages(log: EngineRecord, limits: dict[str, Admission], paced: Pace | None) -> list[LogSuspect]:
    """Shares of requests' time, as histograms or timings have it."""
    total = sum(log.stages.values())
    if not total:
        return []
    share = {"prompt": 0.0, "answer": 0.0} | {stage: seconds / total for stage, seconds in log.stages.items()}
    found = []
    if "waits" in share:
        illness, why = _why_they_wait(log, limits)
        because = f"{fmt_percent(share['waits'])} of requests' time is spent in the queue{why}"
        undecided = CAUSE_NEXT if illness == HELD_BACK else ""
        found.append(_limit(illness, share["waits"], because, undecided))
    own = "the queue included, which is not stated apart" if "waits" not in share and log.engine != "llama.cpp" else ""
    because = f"{fmt_percent(share['prompt'])} of requests' time until their first token"
    if log.prefix_hits is not None:
        because += f"; the prefix cache had {fmt_percent(log.prefix_hits)} of their prompts"
    illness = PROMPTS
    if own:  # a cause that shows itself is looked at first: without it the first token would come as prompts are read
        cause, why = _why_they_wait(log, limits)
        illness, because = (PROMPTS, f"{because}; {own}") if cause == HELD_BACK else (cause, f"{because}; {own}{why}")
    found.append(_limit(illness, share["prompt"], because, CAUSE_NEXT if own and illness == PROMPTS else ""))
    because = f"{fmt_percent(share['answer'])} of requests' time is between their first token and their last"
    found.append(_limit(ANSWERS, share["answer"], because, "--model and --hardware for the floor of a step"))
    if paced and paced.floor_s is not None and paced.floor_s < paced.step_s:
        ratio = paced.step_s / paced.floor_s
        because += f": {fmt_seconds(paced.step_s)} a token, {ratio:.2f} times what reading weights and caches takes"
        faster = amdahl_speedup(accelerated_share=share["answer"], factor=ratio)
        found[-1] = replace(found[-1], because=because, at_most=faster, record_next="")
    return found


def _why_they_wait(log: EngineRecord, limits: dict[str, Admission]) -> tuple[str, str]:
    waiting = [(found.share, cause) for cause, found in limits.items() if cause in OF_CAUSE]
    if log.preempted:
        return CACHE_FULL, f"; {counted(log.preempted, 'preemption')} for want of blocks"
    if waiting and (cause := max(waiting)[1]) != OTHER:
        return OF_CAUSE[cause], f"; when it was asked, {cause}"
    return HELD_BACK, "; what they wait for the figures do not say"


def _limit(illness: str, share: float, because: str, undecided: str = "") -> LogSuspect:
    at_most = amdahl_limit(accelerated_share=share) if 0 < share < 1 else None
    return LogSuspect(
        illness=illness, share=share, because=because, at_most=at_most, first_try=TRY[illness], record_next=undecided
    )


def _silent(log: EngineRecord, cause: str) -> bool:
    """Whether the cache is full, and the log would not say that somebody had to go."""
    return cause == CACHE and log.preempted is None and log.engine == "vLLM"


def _of_admission(log: EngineRecord, limits: dict[str, Admission]) -> list[LogSuspect]:
    """Shares of the logged time."""
    found = []
    for cause, illness in OF_CAUSE.items():
        if cause in limits:
            one = limits[cause]
            because = f"{fmt_percent(one.share)} of the time {one.waiting:,.1f} wait beside {one.running:,.1f} that run"
            because += f", and {cause}" if cause != OTHER else ", while the log shows room"
            if log.preempted and cause == CACHE:
                because += f"; {counted(log.preempted, 'preemption')}"
            at_most = amdahl_speedup(accelerated_share=one.share, factor=one.factor) if one.factor else None
            undecided = "preemptions: vllm:num_preemptions_total of its /metrics" if _silent(log, cause) else ""
            if cause == OTHER:
                missing = [] if log.seats else ["the seats: start-up lines, or --max-num-seqs"]
                undecided = "; ".join([*missing, "tokens of a step, and how long prompts are"])
            found.append(
                LogSuspect(
                    illness=illness, share=one.share, because=because, at_most=at_most, first_try=TRY[illness],
                    record_next=undecided,
                )
            )  # fmt: skip
    if DEFERRED in limits:
        one = limits[DEFERRED]
        because = f"{fmt_percent(one.share)} of the time {one.waiting:,.1f} are deferred beside {one.running:,.1f} that"
        because += " run: they wait, and neither for a seat nor for the cache"
        found.append(
            LogSuspect(
                illness=HELD_BACK, share=one.share, because=because, at_most=None, first_try=TRY_DEFERRED,
                record_next="the adapters that requests name, and what the other engine's log says meanwhile",
            )
        )  # fmt: skip
    free = sum(limits[cause].share for cause in (ADMITTED, IDLE) if cause in limits)
    if free:
        because = f"{fmt_percent(free)} of the time nobody waits: all that came were admitted"
        record = "arrivals, and what users see: TTFT and the time between tokens, of a /metrics scrape"
        found.append(
            LogSuspect(
                illness=NO_DEMAND, share=free, because=because, at_most=None, first_try=TRY[NO_DEMAND],
                record_next=record,
            )
        )  # fmt: skip
    return found
