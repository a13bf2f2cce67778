"""The planner against a search without any early cut, its memory against memory.fit, its bubble against a pipeline
on a clock.
"""

import dataclasses
import itertools

import pytest
from test_layouts import CLUSTER, LLAMA, MIXTRAL, RULES, changed

from threeloops.models.catalogue import model
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.training_loop.memory.fit import largest_rank_memory, rank_memory
from threeloops.training_loop.parallelism import layout_reasons, layouts, planner
from threeloops.training_loop.parallelism.layout_rules import refusal
from threeloops.training_loop.parallelism.layout_step import layout_step
from threeloops.training_loop.parallelism.layouts import Layout, stage_layers
from threeloops.training_loop.parallelism.step_time import StepTime

CHOICES = planner.Choices(
    micro_batches=(1, 2, 3),
    zero_stages=(0, 1, 3),
    recomputes=("none", "full"),
    schedules=(("1f1b", 1), ("interleaved", 2), ("zb-h1", 1)),
    context=(1, 2),
)
SMALL = dataclasses.replace(CLUSTER, num_gpus=64)
SMALL_JOBS = [
    dataclasses.replace(LLAMA, model=model("llama-3-8b"), global_batch=64),
    dataclasses.replace(MIXTRAL, global_batch=64),
]


def every_candidate(job: layouts.Job, gpus: int) -> list[Layout]:
    """All of them, one by one, without thinking."""
    divisors = [n for n in range(1, gpus + 1) if gpus % n == 0]
    experts = [n for n in range(1, 9) if 8 % n == 0] if job.experts else [1]
    splits = [
        (tp, pp, cp)
        for tp, pp, cp in itertools.product(divisors, divisors, CHOICES.context)
        if gpus % (tp * pp * cp) == 0
    ]
    rest = itertools.product(
        splits, experts, CHOICES.micro_batches, CHOICES.zero_stages, CHOICES.recomputes, CHOICES.schedules
    )
    return [
        Layout(
            dp=gpus // (tp * pp * cp),
            tp=tp,
            pp=pp,
            cp=cp,
            ep=ep,
            micro_batch=size,
            zero_stage=zero,
            recompute=again,
            schedule=schedule,
            chunks=chunks,
        )
        for (tp, pp, cp), ep, size, zero, again, (schedule, chunks) in rest
    ]


@pytest.mark.parametrize("job", SMALL_JOBS, ids=lambda job: job.model.name)
def test_the_search_finds_what_trying_everything_finds(job: layouts.Job) -> None:
    found = planner.search(job=job, cluster=SMALL, rules=RULES, choices=CHOICES)
    candidates = every_candidate(job, SMALL.num_gpus)
    legal = [layout for layout in candidates if refusal(layout, job=job, cluster=SMALL, rules=RULES) is None]
    assert found.considered == len(candidates)
    assert found.legal == len(legal)
    assert sum(cut.count for cut in found.cuts) == len(candidates) - len(legal)
    fitting = {layout for layout in legal if planner.fullest_rank(layout, job=job).total_bytes <= SMALL.usable_bytes}
    assert {plan.layout for plan in found.fitting} == fitting
    assert 0 < len(fitting) < len(legal)
    fastest = min(layout_step(layout, job=job, cluster=SMALL).total_s for layout in fitting)
    assert found.best.step.total_s == fastest


def test_memory_is_that_of_training_fit_on_its_fullest_stage() -> None:
    found = planner.search(job=SMALL_JOBS[0], cluster=SMALL, rules=RULES, choices=CHOICES)
    for plan in found.fitting[:: len(found.fitting) // 40]:
        setup = layouts.training(plan.layout, job=SMALL_JOBS[0], zero_stage=plan.layout.zero_stage)
        sequence = SMALL_JOBS[0].sequence // plan.layout.cp
        stages = [
            rank_memory(setup, stage=stage, micro_batch=plan.layout.micro_batch, sequence=sequence)
            for stage in range(plan.layout.pp)
        ]
        assert plan.memory_bytes == max(memory.total_bytes for memory in stages)
        assert plan.fits


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zb-h1", "zb-h2", "dualpipe"])
@pytest.mark.parametrize("tables_as_layers", [False, True])
def test_no_stage_between_the_decisive_ones_is_fuller(schedule: str, tables_as_layers: bool) -> None:
    job = dataclasses.replace(LLAMA, model=model("llama-3-405b"), tables_as_layers=tables_as_layers, global_batch=1024)
    for pp, recompute in itertools.product((2, 4, 6, 16), ("none", "full")):
        layout = changed(pp=pp, dp=16, schedule=schedule, recompute=recompute)
        setup = layouts.training(layout, job=job, zero_stage=1)
        every = max(rank_memory(setup, stage=stage, micro_batch=1, sequence=8192).total_bytes for stage in range(pp))
        assert largest_rank_memory(setup, micro_batch=1, sequence=8192).total_bytes == every


def test_dualpipe_holds_two_stages_and_shards_over_both_of_their_ranks() -> None:
    """Table 2 of the DeepSeek-V3 report: parameters twice. The optimiser's state, sharded over twice the ranks, stays
    what it was.
    """
    job = dataclasses.replace(LLAMA, global_batch=1024)
    one, two = (
        rank_memory(
            layouts.training(changed(schedule=schedule), job=job, zero_stage=1), stage=1, micro_batch=1, sequence=8192
        ).states
        for schedule in ("1f1b", "dualpipe")
    )
    assert two.weights_bytes == 2 * one.weights_bytes
    assert two.optimiser_bytes == pytest.approx(one.optimiser_bytes, rel=1e-6)


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zb-h1"])
def test_passes_and_bubble_are_those_of_a_pipeline_on_a_clock(schedule: str) -> None:
    """Without communication, the step is what the simulated schedule takes with the same passes."""
    # a head too small to slow the last stage
    job = dataclasses.replace(LLAMA, model=dataclasses.replace(LLAMA.model, vocab=8, tied_head=True))
    layout = changed(tp=1, dp=1, pp=4, schedule=schedule, chunks=2 if schedule == "interleaved" else 1, micro_batch=16)
    silent = dataclasses.replace(
        CLUSTER, num_gpus=4, slow_bytes_per_s_one_way=1e30, fast_bytes_per_s_one_way=1e30, alpha_s=0.0
    )
    step = layout_step(layout, job=job, cluster=silent)
    each = step.forward_backward_s / step.micro_batches / 3
    clocked = run(
        schedule=schedule,
        pp=4,
        micro_batches=step.micro_batches,
        chunks=layout.chunks,
        work=Work(forward_s=each, input_gradient_s=each, weight_gradient_s=each),
        send_s=0,
    )
    assert step.compute_s + step.bubble_s == pytest.approx(clocked.step_s, rel=1e-6)


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@pytest.mark.parametrize("slow", [1e8, 1e13])
def test_the_parts_are_the_step_and_the_step_is_a_step_time(zero_stage: int, slow: float) -> None:
    cluster = dataclasses.replace(CLUSTER, slow_bytes_per_s_one_way=slow)
    step = layout_step(changed(zero_stage=zero_stage, recompute="full"), job=LLAMA, cluster=cluster)
    assert isinstance(step.time, StepTime)
    assert step.time.total_s == pytest.approx(step.total_s)
    assert (step.data_s > 0) == (slow == 1e8), "on slow links the exchange of replicas sticks out"


def test_twice_everything_takes_the_same_time() -> None:
    """Twice all rates halve the step, latency aside: our dimensional analysis."""
    calm = dataclasses.replace(CLUSTER, alpha_s=0.0)
    rates = (
        "gemm_flops_per_s",
        "attention_flops_per_s",
        "memory_bytes_per_s",
        "fast_bytes_per_s_one_way",
        "slow_bytes_per_s_one_way",
    )
    double = dataclasses.replace(calm, **{name: 2 * getattr(calm, name) for name in rates})
    layout = changed(cp=2, dp=8, ep=4, schedule="interleaved", chunks=2)
    job = dataclasses.replace(MIXTRAL, global_batch=128)
    slower, faster = (layout_step(layout, job=job, cluster=cluster).total_s for cluster in (calm, double))
    assert slower == pytest.approx(2 * faster)


def test_one_gpu_only_computes() -> None:
    alone = layout_step(changed(dp=1, tp=1, pp=1), job=LLAMA, cluster=dataclasses.replace(CLUSTER, num_gpus=1))
    assert {name for name, seconds in alone.parts.items() if seconds} == {"forward and backward passes", "optimiser"}


def test_a_smaller_layout_shares_the_kernels_out() -> None:
    """With sequence parallelism, tensor ranks and replicas divide the same kernels: their product takes the same time
    however it is split.
    """
    job = dataclasses.replace(LLAMA, global_batch=512)
    seconds = [
        layout_step(changed(tp=tp, dp=64 // tp, pp=1), job=job, cluster=CLUSTER).forward_backward_s
        for tp in (1, 2, 4, 8)
    ]
    assert seconds == pytest.approx([seconds[0]] * 4, rel=0.01)


def test_node_limited_routing_crosses_once_per_node() -> None:
    free = dataclasses.replace(LLAMA, model=model("deepseek-v3"), sequence=4096, global_batch=512)
    limited = dataclasses.replace(free, nodes_per_token=4)
    layout = changed(tp=1, dp=128, ep=64)
    freely, thriftily = (layout_step(layout, job=job, cluster=CLUSTER).expert_s for job in (free, limited))
    assert freely == pytest.approx(2 * thriftily)  # eight copies or four


def test_the_slowest_rank_has_whole_chunks() -> None:
    # 61 layers: 4 or 3
    assert stage_layers(changed(pp=16), job=dataclasses.replace(LLAMA, model=model("deepseek-v3"))) == 4
    assert (
        stage_layers(
            changed(pp=16, schedule="interleaved", chunks=2), job=dataclasses.replace(LLAMA, model=model("deepseek-v3"))
        )
        == 4
    )
    job = dataclasses.replace(LLAMA, tables_as_layers=True)
    assert [stage_layers(changed(pp=pp), job=job) for pp in (1, 2, 4)] == [80, 40, 21]


def test_the_reasons_add_up_and_name_the_largest() -> None:
    found = planner.search(job=SMALL_JOBS[0], cluster=SMALL, rules=RULES, choices=CHOICES)
    best, second, last = found.best, found.runner_up, found.fitting[-1]
    for loser in (second, last):
        differences = layout_reasons.differences(loser, best)
        assert sum(differences.values()) == pytest.approx(loser.step.total_s - best.step.total_s)
    told = layout_reasons.why_slower(last, best)
    assert str(last.layout) in told
    assert next(iter(layout_reasons.differences(last, best))) in told
    with pytest.raises(ValueError, match="is not slower"):
        layout_reasons.why_slower(best, last)


def test_what_is_cut_is_told_why() -> None:
    why = [
        layout_reasons.why_not(layout, job=LLAMA, cluster=CLUSTER, rules=RULES)
        for layout in (changed(), changed(tp=16, dp=8), changed(tp=1, pp=4, dp=128))
    ]
    assert why[0] == ""
    assert "is not legal: tp=16 must not exceed" in why[1]
    assert "does not fit: stage 0 needs" in why[2]
    assert "most of it" in why[2]


def test_nothing_fits_is_said_so() -> None:
    found = planner.search(
        job=SMALL_JOBS[0], cluster=dataclasses.replace(SMALL, usable_bytes=1e9), rules=RULES, choices=CHOICES
    )
    assert found.nearest_bytes is not None
    assert found.nearest_bytes > 1e9
    with pytest.raises(ValueError, match="none of .* candidates fits"):
        _ = found.best
