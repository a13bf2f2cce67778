"""Published steps: the rows against what else their pages print, and expected steps against the rows."""

import re
from dataclasses import replace
from statistics import fmean

import pytest

from threeloops.cli import main
from threeloops.commands.measured.steps import FAR_OFF
from threeloops.models import catalogue
from threeloops.models.model_flops import training_flops
from threeloops.operations.expected_times import errors_of
from threeloops.training_loop.parallelism.expected_step import ExpectedStep, expected_step
from threeloops.training_loop.parallelism.layouts import stage_layers
from threeloops.training_loop.parallelism.published_steps import (
    PublishedStep,
    error_without,
    judged_steps,
    one_a_configuration,
    published_steps,
    release_spread,
)
from threeloops.training_loop.parallelism.software import Software

ROWS = published_steps()


def model_flops_per_s(row: PublishedStep, causal: str = "half") -> float:
    """Of one GPU, nothing computed twice."""
    flops = training_flops(row.model, batch=1, sequence=row.job.sequence, causal=causal, recompute="none")
    return flops.model / flops.tokens * row.job.tokens / (row.measured_s * row.cluster.num_gpus)


def test_every_row_is_a_layout_of_its_gpus_and_beats_no_peak() -> None:
    assert len({row.key for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row.layout.num_gpus == row.cluster.num_gpus, row.key
        assert row.job.global_batch % (row.layout.dp * row.layout.micro_batch) == 0, row.key
        assert 0.02 < model_flops_per_s(row) / row.cluster.peak_flops_per_s < 0.95, row.key


@pytest.mark.parametrize(
    ("key", "causal", "printed"),
    [
        # MFU as the page prints it, with the whole attention square
        ("mosaicml-h100-sxm5-bf16-large-003", "full", 0.4336 * 989.4e12),
        ("mosaicml-h100-sxm5-bf16-039", "full", 0.4644 * 989.4e12),
        ("mosaicml-h100-sxm5-bf16-041", "full", 0.2681 * 989.4e12),
        # TFLOP/s as the pages print them
        ("megatron-bridge-25-11-227", "half", 1622e12),
        ("megatron-bridge-26-08-001", "half", 1635e12),
        ("nemo-24-07-007", "full", 759e12),
        # a hybrid, its scans among them
        ("megatron-bridge-26-06-01-022", "full", 905e12),
        ("megatron-bridge-26-06-01-023", "full", 776e12),
    ],
)
def test_what_a_page_prints_beside_tokens_is_what_they_come_to(key: str, causal: str, printed: float) -> None:
    (row,) = [one for one in ROWS if one.key == key]
    assert model_flops_per_s(row, causal) == pytest.approx(printed, rel=0.04)


def test_a_recipe_that_predicts_two_tokens_more_has_the_flops_that_its_page_prints() -> None:
    """NVIDIA prints 600 TFLOP/s for 7,040 tokens/s of Nemotron 3 Super: within 3 % with a layer of attention, one of
    experts and a head for each of two tokens; a tenth more than without.
    """
    (row,) = [one for one in ROWS if one.key == "megatron-bridge-26-08-012"]
    assert row.software.more_heads == 2
    printed = 600e12 / 7040
    without = training_flops(
        catalogue.model("nemotron-3-super-120b-a12b"), batch=1, sequence=8192, causal="full", recompute="none"
    )
    within = training_flops(row.model, batch=1, sequence=8192, causal="full", recompute="none")
    head = 3 * 2 * row.model.hidden * row.model.vocab
    assert within.model / within.tokens + 2 * head == pytest.approx(printed, rel=0.03)
    assert printed > 1.09 * without.model / without.tokens


def test_a_slip_of_a_page_is_mended() -> None:
    """BigScience prints eight replicas of 80 GPUs for 40 nodes of eight; 135.92 TFLOP/s with one forward pass more, the
    whole square, fit half as many.
    """
    (row,) = [one for one in ROWS if one.key == "bigscience-036"]
    assert row.cluster.num_gpus == 40 * 8
    assert model_flops_per_s(row, "full") * 4 / 3 == pytest.approx(135.92e12, rel=0.06)


def test_the_planner_at_best_rates_is_never_too_slow_where_nobody_is_waited_for() -> None:
    """Experts' exchanges apart, which newer dispatchers hide or shrink."""
    assert min(one.planned_error for one in judged_steps() if one.row.dense) > 0


def test_expected_steps_are_as_near_as_was_aimed_at() -> None:
    """One error for each configuration. What is held are the aims, with room for a mended row; what comes out is
    printed, and stands in chapter 2.
    """
    judged = judged_steps()
    every = errors_of(one_a_configuration(judged, lambda one: one.error))
    assert every.median <= 0.13
    dense = [one for one in judged if one.row.dense and one.row.software.attention != "unfused"]
    known = errors_of(one_a_configuration(dense, lambda one: one.error))
    assert known.median <= 0.08
    assert known.ninth_decile <= 0.25
    planned = errors_of(one_a_configuration(dense, lambda one: one.planned_error))
    assert known.median < planned.median / 5
    late = errors_of([one.error for one in judged if one.row.unseen])
    assert late.rows == 4
    assert late.median <= 0.10


def test_every_cause_left_out_makes_the_prediction_faster() -> None:
    worth = error_without(judged_steps())
    assert all(error >= worth["nothing"] - 1e-12 for error in worth.values())
    assert worth["attention"] > worth["vector work"] > worth["optimiser"]


def test_releases_differ_by_more_than_a_prediction_can_know() -> None:
    spread = release_spread()
    assert len(spread) > 20
    assert max(spread) > 1.5


def test_layers_of_bigscience_are_dealt_as_its_page_says() -> None:
    """Layers alone; where 78 of them are dealt to 12 stages, 7 to each and one to the last; tables count on one day."""
    dealt = {row.key[-3:]: stage_layers(row.layout, job=row.job) for row in ROWS if row.publisher == "BigScience"}
    assert dealt["030"] == 72 / 6
    assert dealt["022"] == 80 / 10
    assert dealt["079"] == 7
    assert dealt["101"] == (106 + 2) / 12


def test_what_gpt_oss_lacks_in_bf16_goes_with_memory_and_tokens() -> None:
    """Bytes that the card could move in the time that is lacking, by layer and sequence: alike from an H100 to a GB300,
    with one sequence in a micro-batch or four, eight ranks of experts or 64; more in the first runs on B200 and B300.
    """
    lacking = {
        (one.row.part, one.row.release): (one.row.measured_s - one.expected.total_s)
        * one.row.cluster.memory_bytes_per_s
        / (one.row.job.global_batch / one.row.layout.dp * stage_layers(one.row.layout, job=one.row.job))
        for one in judged_steps()
        if one.row.model.name == "gpt-oss-120b" and one.row.format == "bf16"
    }
    more = [lacking.pop(run) for run in (("b200-hgx", "25.11"), ("b300-hgx", "26.02"))]
    assert len(lacking) == 14
    assert max(lacking.values()) < 1.5 * min(lacking.values())
    assert min(more) > 1.5 * max(lacking.values())


def test_what_recipes_say_brings_their_rows_nearer() -> None:
    """In the mean over configurations, with everything that a recipe adds against nothing of it; every recipe has its
    rows.
    """
    told = [one for one in judged_steps() if one.row.software != bare(one.row.software)]
    assert {one.row.model.name for one in told} >= {"deepseek-v3", "gpt-oss-120b", "kimi-k2"}
    assert {one.row.software.recomputes for one in told} >= {("mla_up_proj",), ("mlp",), ("layernorm", "moe_act")}
    assert {one.row.software.wide_layers for one in told} == {0, 16}
    assert {one.row.software.bias_weight_bytes for one in told} == {0, 2, 4}
    without = [replace(one, expected=at(one.row, bare(one.row.software))) for one in told]
    near, far = (fmean(map(abs, one_a_configuration(some, lambda one: one.error))) for some in (told, without))
    assert near < 0.8 * far


def bare(software: Software) -> Software:
    """What a row's page says of it, without its recipe."""
    return replace(software, recomputes=(), formats=(), wide_layers=0, bias_weight_bytes=0, more_heads=0)


def at(row: PublishedStep, software: Software) -> ExpectedStep:
    return expected_step(
        row.layout, job=row.job, cluster=row.cluster, part=row.part, format=row.format, software=software
    )


def test_what_is_far_off_is_counted_once_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measured", "steps"]) == 0
    lines = capsys.readouterr().out.split("more than 20 % off")[1].splitlines()[1:]
    rows = [re.findall(r"(\d+) +(\d+) +[+-][\d.]+ %$", line) for line in lines]
    far, of = (sum(int(row[0][place]) for row in rows if row) for place in (0, 1))
    errors = one_a_configuration(judged_steps(), lambda one: one.error)
    assert far == sum(abs(error) > 0.2 for error in errors)
    assert of <= len(errors)
    assert sum("unknown" in line for line in lines) == len(FAR_OFF)


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measured", "steps"]) == 0
    said = capsys.readouterr().out
    for words in ("at best rates", "mixtures of experts", "entered once", "rows not judged: heads whose width"):
        assert words in said
