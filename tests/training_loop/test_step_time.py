"""Step time: the one formula against a step that is played on a clock, and against what NVIDIA published for Llama 3
70B.
"""

import random

import pytest

from threeloops.facts import hardware
from threeloops.inner_loop import scaling
from threeloops.models import catalogue, model_flops, parameters, utilisation
from threeloops.simulate.training_loop import overlapped_step, pipeline_schedules
from threeloops.training_loop.parallelism import pipelines, step_time

DRAWS = [random.Random(seed) for seed in range(40)]
# NeMo 24.12 performance summary: Llama 3 70B, 64 H100, sequence 8,192
PUBLISHED = {"tokens_per_gpu_s": 1524, "flops_per_s": 734e12, "days": 74}


@pytest.mark.parametrize("rng", DRAWS, ids=range(40))
def test_equal_buckets_take_what_the_formula_says(rng):
    buckets, forward, backward = rng.randrange(1, 30), rng.uniform(0.1, 2), rng.uniform(0.1, 4)
    send, update = rng.uniform(0, 6), rng.uniform(0, 0.3)
    played = overlapped_step.play(
        forward_s=forward, slices_s=[backward / buckets] * buckets, sends_s=[send / buckets] * buckets, update_s=update
    )
    step = step_time.data_parallel_step(
        forward_s=forward, backward_s=backward, send_s=send, buckets=buckets, overhead_s=update
    )
    assert played.finished_s == pytest.approx(step.total_s, rel=1e-12)
    assert played.device_waits_s == pytest.approx(step.total_s * step.shares["communication"], abs=1e-12)


@pytest.mark.parametrize("rng", DRAWS, ids=range(40))
def test_unequal_buckets_too(rng):
    slices = [rng.choice((0, rng.uniform(0, 2))) for _ in range(rng.randrange(1, 20))]
    sends = [rng.uniform(0, 3) for _ in slices]
    played = overlapped_step.play(forward_s=0.5, slices_s=slices, sends_s=sends, update_s=0.0)
    assert played.finished_s - 0.5 == pytest.approx(step_time.bucketed_s(slices_s=slices, sends_s=sends), rel=1e-12)


@pytest.mark.parametrize("rng", DRAWS[:10], ids=range(10))
def test_overlap_never_beats_the_longer_of_the_two_and_never_loses_to_taking_turns(rng):
    slices, sends = ([rng.uniform(0, 2) for _ in range(8)] for _ in range(2))
    beside, in_turn = (
        overlapped_step.play(forward_s=1, slices_s=slices, sends_s=sends, update_s=0, overlap=overlap).finished_s
        for overlap in (True, False)
    )
    assert in_turn == pytest.approx(1 + sum(slices) + sum(sends))
    assert max(1 + sum(slices), sum(sends)) < beside <= in_turn


def test_the_bubble_term_is_what_a_played_pipeline_adds():
    pp, m = 4, 12
    bubble = pipelines.bubble(
        schedule="1f1b", pp=pp, micro_batches=m, forward_s=1.0, input_gradient_s=1.0, weight_gradient_s=1.0
    )
    step = step_time.StepTime(compute_s=3.0 * m, overlappable_s=0, exposed_s=0, bubble_s=bubble.idle_s, overhead_s=0)
    work = pipeline_schedules.Work(forward_s=1.0, input_gradient_s=1.0, weight_gradient_s=1.0)
    played = pipeline_schedules.run(schedule="1f1b", pp=pp, micro_batches=m, work=work, send_s=0.0)
    assert step.total_s == pytest.approx(played.step_s)


def test_nvidias_published_flops_are_six_n_with_full_attention_and_no_input_table():
    # 734 TFLOP/s at 1,524 tokens/s: 4.816e11 per token.
    model = catalogue.model("llama-3-70b")
    total = parameters.model_parameters(model).total
    counted = {
        causal: model_flops.six_n_corrections(model, num_parameters=total, sequence=8192, causal=causal).total
        for causal in ("full", "exact")
    }
    published = PUBLISHED["flops_per_s"] / PUBLISHED["tokens_per_gpu_s"]
    assert counted["full"] == pytest.approx(published, rel=1e-3)
    assert counted["exact"] < 0.94 * published
    assert 6 * total < 0.89 * published


def test_nvidias_days_and_its_mfu():
    days = step_time.training_s(tokens=1e13, tokens_per_gpu_s=PUBLISHED["tokens_per_gpu_s"], num_gpus=1024) / 86400
    assert round(days) == PUBLISHED["days"]
    peak = hardware.part("h100-sxm5").peak_flops_per_s("fp8")
    share = step_time.mfu_of_tokens(
        flops_per_token=PUBLISHED["flops_per_s"] / 1524, tokens_per_gpu_s=1524, peak_flops_per_s=peak
    )
    assert share == pytest.approx(734 / 1979, rel=1e-3)


def test_mfu_agrees_with_the_utilisation_of_a_whole_step():
    model = catalogue.model("llama-3-8b")
    step = model_flops.training_flops(model, batch=4, sequence=2048, causal="exact", recompute="none")
    whole = utilisation.utilisation(step, step_s=2.0, num_gpus=8, peak_flops_per_s=1e15)
    rate = step_time.tokens_per_gpu_s(tokens=4 * 2048, step_s=2.0, num_gpus=8)
    assert step_time.mfu_of_tokens(
        flops_per_token=step.model / step.tokens, tokens_per_gpu_s=rate, peak_flops_per_s=1e15
    ) == pytest.approx(whole.mfu)


def test_efficiency_is_speed_up_per_processor():
    # E.g. 840 minutes on one and 25 on 256: 33.6 times as fast, 13 %.
    share = step_time.relative_efficiency(few=1, few_s=840, many=256, many_s=25)
    assert share == pytest.approx(scaling.efficiency(speedup=840 / 25, num_processors=256))
    assert step_time.relative_efficiency(few=8, few_s=64, many=512, many_s=1) == 1


def test_shares_add_up_and_times_scale():
    once = step_time.StepTime(compute_s=3, overlappable_s=4, exposed_s=0.5, bubble_s=0.25, overhead_s=0.125)
    twice = step_time.StepTime(compute_s=6, overlappable_s=8, exposed_s=1, bubble_s=0.5, overhead_s=0.25)
    assert sum(once.shares.values()) == pytest.approx(1)
    assert twice.total_s == 2 * once.total_s == 9.75
    assert once.shares == twice.shares


@pytest.mark.parametrize(
    "wrong", [{"compute_s": 0}, {"overlappable_s": -1}, {"exposed_s": -1}, {"bubble_s": -1}, {"overhead_s": -1}]
)
def test_refusals(wrong):
    fine = {"compute_s": 1, "overlappable_s": 0, "exposed_s": 0, "bubble_s": 0, "overhead_s": 0}
    step_time.StepTime(**fine)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        step_time.StepTime(**(fine | wrong))
    with pytest.raises(ValueError, match="one send per slice"):
        step_time.bucketed_s(slices_s=[1, 2], sends_s=[1])
    with pytest.raises(ValueError, match="at least one"):
        overlapped_step.play(forward_s=1, slices_s=[], sends_s=[], update_s=0)
