"""Expected token: against an independent count, a recorded decode loop, and servers that others measured."""

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from threeloops.cli import main
from threeloops.facts import hardware
from threeloops.facts.recorded import Measured, find
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters
from threeloops.operations.expected_times import errors_of
from threeloops.product_loop.expected.expected_token import ExpectedToken, expected_token, first_token_s
from threeloops.product_loop.expected.judged_points import judged_apart_points, judged_points, worth

LLAMA_8B, MINIMAX = catalogue.model("llama-3-8b"), catalogue.model("minimax-m2.5")
SERVED: dict[str, Any] = {"part": "h100-sxm5", "format": "bf16", "cache": "bf16", "tp": 1}
SERVED |= {"requests": 16, "prompt": 1024, "answer": 512, "engine": "vLLM"}


def token(**other: Any) -> ExpectedToken:
    return expected_token(LLAMA_8B, **SERVED | other)


def test_the_floor_is_weights_and_caches_read_once() -> None:
    """Counted from the parameters of the model: all but the table that is looked up, and the norms."""
    read = 2 * (model_parameters(LLAMA_8B).total - LLAMA_8B.vocab * LLAMA_8B.hidden)
    cached = 16 * (1024 + 256) * 131_072  # bytes of a token's keys and values: 2 * 32 layers * 8 heads * 128 * 2
    floor_s = (read + cached) / hardware.part("h100-sxm5")["memory_bytes_per_s"]
    assert token().floor_s == pytest.approx(floor_s, rel=1e-3)


@pytest.mark.parametrize("batch", [1, 4, 16, 64])
@pytest.mark.parametrize("part", ["h100-sxm5", "h200-sxm"])
def test_a_recorded_decode_loop_takes_about_what_is_expected(part: str, batch: int) -> None:
    """Random weights of an 8B model, plain torch in a CUDA graph; nobody else's prompts."""
    shape = "layers32-hidden4096-heads32-kv_heads8-head_dim128-intermediate14336"
    took = find(f"decode_graph-bf16-{shape}-batch{batch}-context1024", part)
    assert isinstance(took, Measured)
    expected = token(part=part, requests=batch, prompt=1023, answer=2)
    expected_s = expected.total_s - expected.parts["prompts of others"]
    assert expected_s == pytest.approx(took.median, rel=0.2)
    assert expected.floor_s < took.median


def test_alone_nobody_waits_for_prompts_and_a_longer_answer_spreads_them() -> None:
    assert token(requests=1).parts["prompts of others"] == 0
    short, long = (token(prompt=1024, answer=answer).parts["prompts of others"] for answer in (128, 2048))
    assert short > 8 * long


def test_an_engine_that_mixes_prompts_with_tokens_waits_less() -> None:
    """On one GPU the engines here differ in nothing else."""
    assert token(engine="vLLM").total_s < token(engine="SGLang").total_s
    assert token(engine="vLLM", requests=1).total_s == token(engine="SGLang", requests=1).total_s


def test_every_cause_takes_time_and_all_reduces_only_between_gpus() -> None:
    assert token().parts["all-reduces"] == 0
    split = token(tp=4)
    assert all(seconds > 0 for seconds in split.parts.values()), split.parts
    assert sum(split.parts.values()) == split.total_s
    assert split.floor_s == pytest.approx(token().floor_s / 4)


def experts(**other: Any) -> ExpectedToken:
    return expected_token(MINIMAX, **SERVED | {"format": "fp8", "tp": 4} | other)


def test_blocks_of_fp8_are_read_as_fp8_and_multiplied_by_their_own_kernels() -> None:
    """Experts in fp8 were timed in blocks in any case; other matmuls of a B200 are quicker so where rows are many."""
    plain, blocks = (experts(part="b200-hgx", format=one) for one in ("fp8", "fp8-block"))
    assert blocks.floor_s == pytest.approx(plain.floor_s, rel=0.001)
    assert 0.5 < blocks.parts["prompts of others"] / plain.parts["prompts of others"] < 0.98
    with pytest.raises(ValueError, match="format='fp8-block' is not known"):
        token(part="a100-sxm4-80gb", format="fp8-block")


def test_a_step_reads_what_its_tokens_touch_of_the_experts() -> None:
    """One token the active parameters, thousands all: counted apart, by the model's own parameters."""
    counted, bandwidth = model_parameters(MINIMAX), hardware.part("h100-sxm5")["memory_bytes_per_s"]
    table, head = MINIMAX.vocab * MINIMAX.hidden, 2 * MINIMAX.vocab * MINIMAX.hidden / 4
    for requests, used in ((1, counted.active), (4096, counted.total)):
        read_s = ((used - 2 * table) / 4 + head) / bandwidth
        assert experts(requests=requests).parts["weights over bandwidth"] == pytest.approx(read_s, rel=0.01)


def test_groups_read_their_own_caches_and_share_the_experts() -> None:
    """Four groups of one GPU beside a group of four: experts alike, everything else four times, a quarter of the
    requests, and two exchanges a layer that NCCL makes in place of two all-reduces.
    """
    one, four = experts(requests=64), experts(requests=64, tp=1, ep=4, dp=4)
    counted, bandwidth = model_parameters(MINIMAX), hardware.part("h100-sxm5")["memory_bytes_per_s"]
    table = MINIMAX.vocab * MINIMAX.hidden
    beside = counted.total - counted.routed_experts - 2 * table
    more_s = 0.75 * (beside + 2 * table) / bandwidth  # fp8, and a head of 16 bits
    grown_s = four.parts["weights over bandwidth"] - one.parts["weights over bandwidth"]
    assert grown_s == pytest.approx(more_s, rel=0.02)
    assert four.parts["KV cache over bandwidth"] == pytest.approx(one.parts["KV cache over bandwidth"])  # 8 KV heads
    assert "all-reduces" not in four.parts
    assert experts(requests=65, tp=1, ep=4, dp=4).parts["KV cache over bandwidth"] == pytest.approx(
        17 / 16 * four.parts["KV cache over bandwidth"]
    )


def test_groups_wait_for_the_one_that_reads_a_prompt() -> None:
    """Played by steps: of 4 groups each gets a prompt with a chance of its own; the slowest ends the step."""
    one = experts(requests=64, tp=1, ep=4, dp=4, engine="SGLang", answer=4096)
    own_s = one.prompt_s - one.shared_prompt_s
    rng, prompts = random.Random(5), 63 / 4096
    played = []
    for _ in range(200_000):
        of_groups = [rng.random() < prompts / 4 for _ in range(4)]
        played.append(sum(of_groups) * one.shared_prompt_s + any(of_groups) * own_s)
    assert one.parts["prompts of others"] == pytest.approx(sum(played) / len(played), rel=0.05)


def test_windows_keep_and_read_no_more_than_they_let_through() -> None:
    """gpt-oss: every other of 36 layers sees 128 tokens. Of two contexts the longer costs the whole layers alone."""
    model, shape = catalogue.model("gpt-oss-120b"), {"format": "mxfp4", "tp": 1, "answer": 2}
    short, long = (expected_token(model, **SERVED | shape | {"prompt": prompt}) for prompt in (1000, 9000))
    more = (long.parts["KV cache over bandwidth"] - short.parts["KV cache over bandwidth"]) * 3.35e12
    assert more == pytest.approx(16 * 8000 * 18 * 2 * 8 * 64 * 2)  # requests, tokens, layers, K and V, heads, width


def test_what_a_prefix_cache_keeps_is_not_computed_again() -> None:
    """Read in two halves, the second with the first one kept, a prompt takes as long as whole: the products twice half
    their rows, the attention in two pieces of one area.
    """
    whole = token(prompt=16_384).prompt_s
    halves = token(prompt=8192).prompt_s + token(prompt=16_384, kept=8192).prompt_s
    assert halves == pytest.approx(whole, rel=0.03)
    assert token(prompt=16_384, kept=8192).prompt_s > token(prompt=8192).prompt_s  # it attends to both
    with pytest.raises(ValueError, match="kept=512 must be less than prompt=512"):
        token(prompt=512, kept=512)


def test_a_windowed_prompt_leaves_no_token_out() -> None:
    """Between two whole numbers of pairs of windows the time of a prompt grows with each token."""
    model, shape = catalogue.model("gpt-oss-120b"), {"format": "mxfp4", "tp": 1}
    took = [expected_token(model, **SERVED | shape | {"prompt": 4096 + more}).prompt_s for more in (0, 85, 170, 255)]
    grown = [after - before for before, after in itertools.pairwise(took)]
    assert min(grown) > 0.5 * max(grown) > 0


def test_cut_by_experts_or_by_width_a_gpu_reads_the_same() -> None:
    wide, whole = experts(), experts(ep=4)
    assert wide.floor_s == whole.floor_s
    assert 0.7 < whole.total_s / wide.total_s < 1.3


def test_latents_lie_whole_on_every_gpu() -> None:
    """DeepSeek-V3: 576 numbers of 2 bytes a token and layer on each of eight GPUs, and 61 layers."""
    deepseek, shape = catalogue.model("deepseek-v3"), {"part": "h200-sxm", "format": "fp8", "requests": 16}
    one = expected_token(deepseek, **SERVED | shape | {"tp": 8, "prompt": 4000, "answer": 2})
    assert one.parts["KV cache over bandwidth"] == pytest.approx(16 * 4001 * 61 * 576 * 2 / 4.8e12)
    assert all(seconds > 0 for seconds in one.parts.values()), one.parts
    less = expected_token(deepseek, **SERVED | shape | {"tp": 4, "prompt": 4000, "answer": 2})
    assert less.parts["KV cache over bandwidth"] == one.parts["KV cache over bandwidth"]
    assert less.parts["weights over bandwidth"] > 1.9 * one.parts["weights over bandwidth"]


def test_a_norm_over_the_heads_of_all_gpus_costs_an_exchange_more() -> None:
    """Of MiniMax's three all-reduces a layer the third is of 8 bytes a token."""
    attention = replace(MINIMAX.groups[0][0].attending, qk_norm_spans_heads=False)
    layer = replace(MINIMAX.groups[0][0], attention=attention)
    plain = replace(MINIMAX, groups=((layer, MINIMAX.num_layers),))
    each = expected_token(plain, **SERVED | {"format": "fp8", "tp": 4}).parts["all-reduces"]
    assert 1.2 < experts().parts["all-reduces"] / each < 1.5


@pytest.mark.parametrize(
    ("model", "other", "says"),
    [
        ("qwen3-next-80b-a3b", {}, "qwen3-next-80b-a3b has recurrent layers: .* one new token stands in no table"),
        ("deepseek-v2", {}, "only blocks of DeepSeek-V3's width"),
        ("deepseek-v3", {"cache": "fp8", "format": "fp8"}, "cache='fp8'"),
        ("kimi-k2", {"format": "mxfp4"}, "format='mxfp4'"),
        ("minimax-m2.5", {"tp": 4, "ep": 3, "format": "fp8"}, "ep=3"),
        ("llama-3-8b", {"tp": 3}, "tp=3 does not divide the 32 heads"),
        ("llama-3-8b", {"format": "nvfp4"}, "format='nvfp4'"),
        ("llama-3-8b", {"requests": 0}, "requests"),
        ("llama-3-8b", {"dp": 2}, "dp=2 groups share experts, and llama-3-8b has none"),
        ("minimax-m2.5", {"tp": 2, "dp": 2, "ep": 3, "format": "fp8"}, "ep=3"),
        ("llama-3-8b", {"engine": "TGI"}, "engine='TGI'"),
    ],
)
def test_what_was_not_measured_is_refused(model: str, other: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        expected_token(catalogue.model(model), **SERVED | other)


# --- servers ------------------------------------------------------------------------------------


def test_no_server_is_quicker_than_its_floor() -> None:
    for one in judged_points():
        assert one.over_floor > 1, one.point


def test_served_tokens_are_met_within_the_aim() -> None:
    """A fifth in the median, over more than 500 points, on none of which anything was fitted; not to one side."""
    judged = judged_points()
    assert len(judged) > 2000
    assert errors_of([one.error for one in judged]).median < 0.2
    slow = sum(one.error > 0 for one in judged) / len(judged)
    assert 0.35 < slow < 0.65


@pytest.mark.parametrize("model", ["minimax-m2.5", "qwen3-235b-a22b", "gpt-oss-120b", "deepseek-v3", "kimi-k2"])
def test_served_experts_are_met_within_the_aim(model: str) -> None:
    errors = [one.error for one in judged_points() if one.point.model == model]
    assert len(errors) > 60
    assert errors_of(errors).median < 0.2


def test_groups_with_requests_of_their_own_are_met_within_the_aim() -> None:
    """Ninety runs in which every GPU has its own requests, of DeepSeek, Kimi, MiniMax and gpt-oss."""
    judged = judged_apart_points()
    assert len(judged) == 90
    assert all(one.over_floor > 1 for one in judged)
    assert errors_of([one.error for one in judged]).median < 0.15
    assert abs(errors_of([one.error for one in judged]).signed_median) < 0.05


def test_first_tokens_are_met_within_the_aim() -> None:
    """Three tenths in the median, where a run says how many requests it had."""
    errors = [one.first_error for one in judged_points() if one.first_error is not None]
    assert len(errors) > 400
    assert errors_of(errors).median < 0.3


def test_who_begins_with_others_waits_for_half_of_them() -> None:
    """Played: all prompts of the first round in a row, one at a time."""
    alone = first_token_s(token(), requests=1, rounds=1)
    assert alone == token().step_s / 2 + token().prompt_s
    ends = [(place + 1) * token().prompt_s for place in range(9)]
    assert first_token_s(token(), requests=9, rounds=1) == pytest.approx(token().step_s / 2 + sum(ends) / 9)
    assert alone < first_token_s(token(), requests=9, rounds=10) < first_token_s(token(), requests=9, rounds=1)


def test_rungs_lead_from_the_floor_to_about_the_measured_time() -> None:
    rungs = list(worth(judged_points()))
    reached = [up for _, _, up in rungs]
    assert reached == sorted(reached)
    assert 0.9 < reached[-1] < 1.1
    assert [name for name, _, _ in rungs] == list(token().parts)


def test_the_command_prints_both_tables(capsys: pytest.CaptureFixture[str]) -> None:
    main(["measured", "served"])
    told = capsys.readouterr().out
    for words in (
        "served points",
        "llama-3-70b",
        "on 8 GPUs",
        "prompts of others",
        "InferenceX",
        "each GPU has its own requests",
    ):
        assert words in told
