"""What a run costs: published budgets, days and bills, and a run that is played step by step."""

import random

import pytest

from threeloops.models.model_flops import six_n_d
from threeloops.training_loop.parallelism import step_time
from threeloops.training_loop.run import cost
from threeloops.units import day, hour

# ---- published figures ----


@pytest.mark.parametrize(
    ("parameters", "tokens", "gpus", "rate", "days"),
    [
        # Narayanan et al., 2021, arXiv:2104.04473, section 5.1, with 8 T P FLOPs (a quarter of them recomputed) at
        # the rate that they reached: GPT-3, 300 billion tokens on 1,024 A100s at 140 teraFLOP/s: "34 days"; 1,008
        # billion parameters, 450 billion tokens on 3,072 at 163: "84 days".
        (175e9, 300e9, 1024, 140e12, 34),
        (1008e9, 450e9, 3072, 163e12, 84),
    ],
)
def test_days_that_megatron_lm_prints(parameters, tokens, gpus, rate, days):
    work_s = cost.gpu_s(flops=six_n_d(num_parameters=parameters, tokens=tokens) * 4 / 3, flops_per_s_per_gpu=rate)
    assert round(cost.wall_s(gpu_s=work_s, num_gpus=gpus) / day) == days


def test_gpt_3_on_one_v100_takes_355_years():
    # Li, "OpenAI's GPT-3 Language Model: A Technical Overview", Lambda, 2020: 3.14e23 FLOPs at 28 TFLOP/s: 355
    # GPU-years, and 4.6 million dollars at 1.50.
    work_s = cost.gpu_s(flops=3.14e23, flops_per_s_per_gpu=28e12)
    assert work_s / (365 * day) == pytest.approx(355, abs=1)
    assert cost.dollars(gpu_s=work_s, dollars_per_gpu_hour=1.5) / 1e6 == pytest.approx(4.6, abs=0.1)


def test_hours_days_and_dollars_of_deepseek_v3():
    # arXiv:2412.19437, section 1 and table 1: 180 thousand H800 hours per trillion tokens, "3.7 days on our cluster
    # with 2048 H800 GPUs"; pre-training "in less than two months", 2,664 thousand hours; in all 2,788 thousand,
    # $5.576M at $2.
    assert cost.wall_s(gpu_s=180e3 * hour, num_gpus=2048) / day == pytest.approx(3.7, abs=0.05)
    assert 50 < cost.wall_s(gpu_s=2664e3 * hour, num_gpus=2048) / day < 60
    parts = [cost.dollars(gpu_s=hours * 1e3 * hour, dollars_per_gpu_hour=2.0) / 1e6 for hours in (2664, 119, 5)]
    assert parts == pytest.approx([5.328, 0.238, 0.01])
    assert sum(parts) == pytest.approx(5.576)


# ---- a run that is played ----


@pytest.mark.parametrize("seed", range(10))
def test_a_run_played_step_by_step_takes_as_long(seed):
    """Steps until the tokens are gone; each rank's meter runs beside the clock."""
    rng = random.Random(seed)
    parameters, gpus, rate = rng.uniform(1e8, 1e9), rng.randint(1, 12), rng.uniform(1e14, 4e14)
    step_tokens, steps = rng.randint(1000, 9000), rng.randint(5, 60)
    clock_s, meters_s, dollars = 0.0, [0.0] * gpus, 0.0
    for _ in range(steps):
        lasts_s = 6 * parameters * step_tokens / gpus / rate  # each GPU its share of the step
        clock_s += lasts_s
        for rank in range(gpus):
            meters_s[rank] += lasts_s
            dollars += 2.5 * lasts_s / 3600
    work_s = cost.gpu_s(flops=six_n_d(num_parameters=parameters, tokens=steps * step_tokens), flops_per_s_per_gpu=rate)
    assert work_s == pytest.approx(sum(meters_s))
    assert cost.wall_s(gpu_s=work_s, num_gpus=gpus) == pytest.approx(clock_s)
    assert cost.dollars(gpu_s=work_s, dollars_per_gpu_hour=2.5) == pytest.approx(dollars)


# ---- identities, scaling, refusals ----


def test_the_way_over_flops_and_the_way_over_tokens_meet():
    flops_per_token, mfu, peak = 6 * 70e9, 0.4, 989.4e12
    rate = mfu * peak / flops_per_token
    assert step_time.mfu_of_tokens(
        flops_per_token=flops_per_token, tokens_per_gpu_s=rate, peak_flops_per_s=peak
    ) == pytest.approx(mfu)
    work_s = cost.gpu_s(flops=flops_per_token * 15e12, flops_per_s_per_gpu=mfu * peak)
    assert cost.wall_s(gpu_s=work_s, num_gpus=4096) == pytest.approx(
        step_time.training_s(tokens=15e12, tokens_per_gpu_s=rate, num_gpus=4096)
    )


def test_twice_the_gpus_halve_the_days_and_leave_the_bill():
    def run(gpus):
        work_s = cost.gpu_s(flops=1e22, flops_per_s_per_gpu=4e14)
        return cost.wall_s(gpu_s=work_s, num_gpus=gpus), cost.dollars(gpu_s=work_s, dollars_per_gpu_hour=2)

    (few_s, bill), (many_s, same) = run(64), run(128)
    assert (few_s, bill) == (2 * many_s, same)
    assert (
        cost.gpu_s(flops=2e22, flops_per_s_per_gpu=8e14)
        == cost.gpu_s(flops=1e22, flops_per_s_per_gpu=4e14)
        == run(1)[0]
    )


@pytest.mark.parametrize(
    ("call", "fine", "wrong", "message"),
    [
        (cost.gpu_s, {"flops": 1e20, "flops_per_s_per_gpu": 1e14}, {"flops": 0}, "flops=0 must be greater than 0"),
        (
            cost.gpu_s,
            {"flops": 1e20, "flops_per_s_per_gpu": 1e14},
            {"flops_per_s_per_gpu": -1},
            "flops_per_s_per_gpu=-1 must be greater than 0",
        ),
        (cost.wall_s, {"gpu_s": 10, "num_gpus": 1}, {"num_gpus": 0}, "num_gpus=0 must be a whole number of at least 1"),
        (cost.wall_s, {"gpu_s": 10, "num_gpus": 1}, {"num_gpus": 1.5}, "num_gpus=1.5 must be a whole number"),
        (
            cost.dollars,
            {"gpu_s": 10, "dollars_per_gpu_hour": 2},
            {"dollars_per_gpu_hour": 0},
            "dollars_per_gpu_hour=0 must be greater than 0",
        ),
    ],
)
def test_refusals(call, fine, wrong, message):
    assert call(**fine) > 0
    with pytest.raises(ValueError, match=message):
        call(**(fine | wrong))
