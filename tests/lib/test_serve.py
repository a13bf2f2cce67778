"""`threeloops serve`: against servers that others measured, against a pocket calculator, and asked wrongly."""

import json
import math
from pathlib import Path
from statistics import median

import pytest

from threeloops.cli import main
from threeloops.commands.calculations import EXAMPLES
from threeloops.commands.serve.copies import Served
from threeloops.commands.serve.fleets import Fleet, for_users
from threeloops.facts import hardware
from threeloops.facts.served_points import ServedPoint, apart_points, served_points
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.sizing.engine_limits import Promises
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.request_times import expected_times
from threeloops.product_loop.sizing.served_layout import ServedLayout
from threeloops.simulate.product_loop.sizing.replica_runs import Replica, ReplicaStep, SpreadSizes, at_rate

CHAT = "serve --model llama3-8b --hardware h100-sxm --prompt 1500 --answer 300 --price 2.5"
LOAD = f"{CHAT} --rate 60/s --ttft 500ms --tpot 30ms"


def answer(command: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert main([*command.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def spoken(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(command.split()) == 0
    return capsys.readouterr().out


def served_as(point: ServedPoint) -> Fleet:
    """What the command works out for a server that somebody measured."""
    served = Served(
        model=catalogue.model(point.model),
        part=hardware.part(point.part),
        weights=point.format,
        cache=point.cache,
        engine=point.engine,
        ep=point.ep,
        dp=point.dp,
        dcp=1,
        drafts=None,
        adapters=None,
        stages=None,
        lengths=RequestLengths(prompt=point.mean_prompt, kept=0, answer=point.mean_answer),
        traced="",
        promised=Promises(),
        memory_utilisation=0.92,
        other_bytes=3e9,
    )
    return for_users(served, point.tp, gpus=point.tp * point.dp, users=point.requests)


def test_fifty_servers_are_answered_as_they_were_measured() -> None:
    """Every so-manieth of the published points with up to 128 requests: none is below its bound, and the time between
    two tokens, simulated with measured kernels, is met within a fifth in the median.
    """
    small = [point for point in served_points() if point.requests <= 128]
    some = small[:: len(small) // 50][:50]
    assert len(some) == 50
    assert len({point.model for point in some}) >= 5
    errors = []
    for point in some:
        fleet = served_as(point)
        assert fleet.copy.bound.step_s(fleet.limits.max_num_seqs) < point.tpot_s, point
        errors.append(abs(fleet.seen.tpot_s[0] / point.tpot_s - 1))
    assert median(errors) < 0.2


def test_servers_whose_gpus_have_requests_of_their_own_are_answered_too() -> None:
    """Every third of the published runs with up to 256 requests, of four models on two GPUs."""
    some = [point for point in apart_points() if point.requests <= 256][::3]
    assert len(some) >= 25
    assert len({point.model for point in some}) == 4
    errors = []
    for point in some:
        fleet = served_as(point)
        assert fleet.copy.bound.step_s(fleet.limits.max_num_seqs) < point.tpot_s, point
        errors.append(abs(fleet.seen.tpot_s[0] / point.tpot_s - 1))
    assert median(errors) < 0.2


def test_groups_of_their_own_seat_more_and_say_their_flags(capsys: pytest.CaptureFixture[str]) -> None:
    """DeepSeek on eight H200s: eight groups keep each latent once, where one tensor group has eight copies."""
    asked = "serve --model deepseek-v3 --weights fp8 --hardware h200 --gpus 8 --users 256 --prompt 4k --answer 1k"
    one, eight = answer(asked, capsys), answer(f"{asked} --dp 8", capsys)
    assert eight["seats"] > 5 * one["seats"]
    assert eight["times_are"] == "expected"
    assert (eight["tp"], eight["dp"], eight["num_gpus"], eight["waiting_s"]) == (1, 8, 8, 0)
    line = eight["reasons"]["in vLLM's flags"]
    for words in ("--data-parallel-size 8", "--enable-expert-parallel", "--max-num-seqs 32 "):
        assert words in line
    said = spoken(f"{asked} --dp 8 --engine sglang", capsys)
    assert "--tp-size 8 --dp-size 8 --enable-dp-attention" in said
    assert "--max-running-requests 256 " in said  # SGLang divides it
    assert "experts / all GPUs of the copy + everything else / tp" in said
    assert "enable_attention_dp: true" in spoken(f"{asked} --dp 8 --engine tensorrt-llm", capsys)
    few = answer(asked.replace("--users 256", "--users 8"), capsys)
    assert "own requests for each GPU (--tp 1 --dp 8)" not in few["reasons"]["what would help"]


def test_copies_of_a_cache_are_named_and_shared(capsys: pytest.CaptureFixture[str]) -> None:
    """Kimi K2 on eight H200s, whose latents tensor parallelism copies: eight times the requests fit with --dcp 8."""
    asked = "serve --model kimi-k2 --weights nvfp4 --hardware h200 --gpus 8 --tp 8 --users 64 --prompt 8k --answer 4k"
    copied, shared = answer(asked, capsys), answer(f"{asked} --dcp 8", capsys)
    assert shared["seats"] == pytest.approx(8 * copied["seats"], abs=8)
    assert shared["times_are"] == "bounds"
    assert shared["bound_step_s"] < copied["bound_step_s"]
    assert f"with --dcp 8 {shared['seats']} requests fit instead of {copied['seats']}" in str(copied["reasons"])
    assert "--decode-context-parallel-size 8" in shared["reasons"]["in vLLM's flags"]
    assert "--dcp-size 8" in spoken(f"{asked} --dcp 8 --engine sglang", capsys)
    assert "queries and partial answers" in (alone := spoken(f"{asked} --dcp 8", capsys))
    beside = spoken(f"{asked} --dcp 8 --draft-tokens 3 --acceptance 0.7 --draft-cost 0.05", capsys)
    assert "issue 50391" in beside
    assert "issue 50391" not in alone


@pytest.mark.parametrize("model", ["qwen3-next-80b-a3b", "nemotron-3-nano-30b-a3b", "gemma-3-27b", "deepseek-v2"])
def test_models_of_every_kind_of_layer_are_answered(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """States beside caches, windows, latents of other widths: at least a bound."""
    asked = f"serve --model {model} --weights fp8 --hardware h200 --gpus 8 --users 32 --prompt 4k --answer 1k"
    found = answer(asked, capsys)
    assert found["seats"] >= 32
    assert found["bound_step_s"] > 0
    assert found["tpot_p50_s"] >= found["bound_step_s"]


def test_drafts_bring_tokens_sooner_and_less_so_with_many_users(capsys: pytest.CaptureFixture[str]) -> None:
    """Three drafts, seven of ten accepted: 2.533 tokens a check. With many users a check has more to compute."""
    gains = []
    for users in (4, 256):
        asked = f"serve --model llama3-8b --hardware h100-sxm --gpus 1 --users {users} --prompt 500 --answer 500"
        plain = answer(asked, capsys)
        drafted = answer(f"{asked} --draft-tokens 3 --acceptance 0.7 --draft-cost 0.05", capsys)
        assert drafted["results"]["tokens_of_a_check"]["value"] == pytest.approx(1 + 0.7 + 0.49 + 0.343)
        gains.append(drafted["tokens_per_s"] / plain["tokens_per_s"])
        assert plain["tpot_p50_s"] / drafted["tpot_p50_s"] == pytest.approx(gains[-1], rel=0.15)
        assert drafted["itl_p50_s"] > drafted["tpot_p50_s"]  # an output has several tokens
    assert 1 < gains[1] < gains[0] < 2.533
    line = drafted["reasons"]["in vLLM's flags"]
    assert '--speculative-config \'{"method": "eagle3"' in line
    assert f"--max-num-batched-tokens {drafted['max_num_batched_tokens'] + 3 * 256} " in line
    said = spoken(f"{asked} --draft-tokens 3 --acceptance 70% --draft-cost 0.05 --engine sglang", capsys)
    assert said.count("--speculative-algorithm") == said.count("--speculative-draft-model-path") == 1
    assert "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4" in said
    assert "3 tokens drafted before each check, 70 % of each place accepted" in said


def test_drafts_keep_a_promise_with_fewer_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    load = "serve --model llama3-8b --hardware h100-sxm --tp 1 --rate 60/s --ttft 1s --tpot 9ms"
    load += " --prompt 500 --answer 300"
    plain = answer(load, capsys)
    drafted = answer(f"{load} --draft-tokens 2 --acceptance 0.8 --draft-cost 0.05", capsys)
    assert drafted["num_gpus"] < plain["num_gpus"]
    assert drafted["tpot_p99_s"] <= 0.009
    assert drafted["tokens_per_s"] == pytest.approx(60 * 300, rel=0.1)


def test_gpus_tokens_and_dollars_are_those_of_a_pocket_calculator(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(f"{LOAD} --gpus 3", capsys)  # of one and of two
    for layout in found["layouts"]:
        assert layout["copies"] == math.ceil(60 / layout["copy_carries_requests_per_s"])
        assert layout["num_gpus"] == layout["copies"] * layout["tp"] >= layout["num_gpus_at_least"]
        assert layout["tokens_per_s"] == pytest.approx(60 * 300, rel=0.1)  # what comes in goes out
    assert found["num_gpus"] == min(layout["num_gpus"] for layout in found["layouts"])
    dollars = found["num_gpus"] * 2.5 / 3600 / found["tokens_per_s"] * 1e6
    assert found["results"]["a_million_tokens_of_answers"]["value"] == pytest.approx(dollars)
    joules = found["num_gpus"] * 700 / found["tokens_per_s"] * 1e6
    assert found["results"]["energy_of_a_million_tokens_of_the_gpus_alone"]["value"] == pytest.approx(joules)


def test_promises_are_kept_and_cost_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(f"{LOAD} --tp 1", capsys)
    assert found["ttft_p99_s"] <= 0.5
    assert found["tpot_p99_s"] <= 0.03
    hard = answer(f"{CHAT} --rate 60/s --ttft 500ms --tpot 12ms --tp 1", capsys)
    assert hard["num_gpus"] > found["num_gpus"]
    kept = answer(f"{LOAD} --tp 1 --hit 70%", capsys)
    assert kept["num_gpus"] < found["num_gpus"]


def test_users_share_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    few, many = (answer(f"{CHAT} --gpus 1 --users {users}", capsys) for users in (8, 64))
    assert few["tokens_per_s_per_user"] > many["tokens_per_s_per_user"]
    assert few["tokens_per_s"] < many["tokens_per_s"]
    halves = answer(f"{CHAT} --gpus 2 --tp 1 --users 16", capsys)
    assert halves["copies"] == 2
    assert halves["tokens_per_s"] == pytest.approx(2 * few["tokens_per_s"])


def test_users_are_dealt_out_and_none_twice(capsys: pytest.CaptureFixture[str]) -> None:
    """One user of four GPUs is on one of them; of five on four copies one copy has two."""
    alone, one = (answer(f"{CHAT} --tp 1 --gpus {gpus} --users 1", capsys) for gpus in (1, 4))
    assert one["tokens_per_s"] == pytest.approx(alone["tokens_per_s"])
    two = answer(f"{CHAT} --tp 1 --gpus 1 --users 2", capsys)
    five = answer(f"{CHAT} --tp 1 --gpus 4 --users 5", capsys)
    assert five["tokens_per_s"] == pytest.approx(two["tokens_per_s"] + 3 * alone["tokens_per_s"])


def test_a_promise_is_kept_on_draws_that_were_not_searched(capsys: pytest.CaptureFixture[str]) -> None:
    """The fleet that is recommended, under other arrivals: 99 of 100 first tokens are at most a fifth late."""
    found = answer(f"{LOAD} --tp 1", capsys)
    one = served_by(found)
    late = [
        at_rate(*one, requests_per_s=60 / found["copies"], requests=3000, seed=seed).ttft_s[1] for seed in (7, 8, 9)
    ]
    assert max(late) < 1.2 * 0.5


def served_by(found: dict) -> tuple[Replica, SpreadSizes]:
    """The replica of an answer, its steps computed again."""
    layout = ServedLayout(
        model=catalogue.model("llama-3-8b"),
        part=hardware.part("h100-sxm5"),
        weights="bf16",
        cache="bf16",
        tp=1,
        memory_utilisation=0.92,
        other_bytes=3e9,
    )
    lengths, most = RequestLengths(prompt=1500, kept=0, answer=300), found["max_num_seqs"]
    times = expected_times(layout, lengths, most=found["seats"], engine="vLLM", ep=1)
    step = ReplicaStep(
        decode_s=(0.0, *(times.step_s(requests) for requests in range(1, most + 1))),
        per_new_token_s=times.per_new_token_s,
    )
    tokens = found["max_num_batched_tokens"]
    return Replica(step=step, max_num_seqs=most, max_num_batched_tokens=tokens, mixed=True), SpreadSizes(
        new=1500, answer=300
    )


def test_lengths_of_a_trace_cost_more_than_their_means(capsys: pytest.CaptureFixture[str]) -> None:
    """Azure's conversations: the same tokens a second, and promises that the long prompts and short answers break."""
    load = "serve --model llama3-8b --hardware h100-sxm --tp 1 --rate 40/s --ttft 500ms --tpot 30ms"
    drawn = answer(f"{load} --lengths azure-conversations", capsys)
    means = answer(f"{load} --prompt 1153 --answer 211", capsys)
    assert drawn["copy_carries_requests_per_s"] < means["copy_carries_requests_per_s"]
    assert drawn["tokens_per_s"] == pytest.approx(means["tokens_per_s"], rel=0.1)
    assert drawn["seats"] < means["seats"]  # whoever gets a long answer sits longer
    users = "serve --model llama3-8b --hardware h100-sxm --gpus 1 --users 8"
    said = spoken(f"{users} --lengths azure-conversations", capsys)
    assert "of the longest, 6,528 tokens, there is room for" in said
    assert "the requests of a minute vary 16.1 times as much" in said
    assert "--max-model-len 6528" in said


def test_requests_that_a_model_was_not_made_for_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    said = spoken("serve --model llama3-8b --hardware h100-sxm --lengths mooncake --users 4 --gpus 1", capsys)
    assert "are longer than the model was made for" in said
    assert "--max-model-len 81" in said


def test_longer_requests_than_the_model_was_made_for_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = spoken(f"{CHAT} --gpus 1 --users 2 --prompt 8k", capsys)
    assert "llama-3-8b was made for 8,192" in said
    assert "--max-model-len 8192" in said


def test_goodput_counts_the_requests_that_keep_both_promises(capsys: pytest.CaptureFixture[str]) -> None:
    """A promise as long as half of them need is kept by half; one that nobody breaks leaves what is answered."""
    asked = "serve --model llama3-8b --hardware h100-sxm --prompt 1500 --answer 300 --gpus 1 --users 40"
    plain = answer(asked, capsys)
    assert "goodput_requests_in_a_second" not in plain["results"]
    answered = plain["tokens_per_s"] / 300
    for promise, share in {f"--tpot {1000 * plain['tpot_p50_s']}ms": 0.5, "--tpot 1s --ttft 9s": 1.0}.items():
        found = answer(f"{asked} {promise}", capsys)["results"]["goodput_requests_in_a_second"]["value"]
        assert found == pytest.approx(share * answered, rel=0.02)
    rated = answer(LOAD, capsys)["results"]["goodput_requests_in_a_second"]["value"]
    assert 0.98 * 60 <= rated <= 60


def test_a_watermark_takes_seats_and_is_vllms(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (
        "serve --model llama3-70b --weights fp8 --hardware h100-sxm --tp 2 --gpus 2 --users 8 --prompt 8k --answer 1k"
    )
    plain, kept = answer(asked, capsys), answer(f"{asked} --watermark 0.2", capsys)
    assert kept["seats"] == pytest.approx(0.8 * plain["seats"], abs=1)
    assert kept["longest_context_by_memory"] == plain["longest_context_by_memory"]
    assert "--watermark 0.2\n" in spoken(f"{asked} --watermark 20%", capsys)
    assert main([*asked.split(), "--watermark", "0.2", "--engine", "sglang"]) == 2
    assert "is vLLM's" in capsys.readouterr().err


def test_users_without_a_seat_wait(capsys: pytest.CaptureFixture[str]) -> None:
    """Little's law: those who wait, over the answers that end in a second."""
    found = answer(f"{CHAT} --gpus 1 --users 900 --prompt 32k", capsys)
    ends_per_s = found["tokens_per_s"] / 300
    assert found["waiting_s"] == pytest.approx((900 - found["seats"]) / ends_per_s)
    assert found["ttft_p50_s"] > found["waiting_s"]
    assert "have a seat: other requests wait" in spoken(f"{CHAT} --gpus 1 --users 900 --prompt 32k", capsys)


def test_where_nothing_is_expected_bounds_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    command = "serve --model deepseek-v3 --weights fp8 --hardware mi300x --gpus 8 --users 64 --prompt 4k --answer 1k"
    assert answer(command, capsys)["times_are"] == "bounds"
    said = spoken(command, capsys)
    assert "by bounds alone, which no engine reaches" in said
    assert "TTFT at least" in said
    assert "tokens/s per GPU" in said.partition("at most ")[2]
    kept, broken = (spoken(f"{command} --tpot {promised}", capsys) for promised in ("900ms", "9ms"))
    assert "The bounds keep the promises; that says of no engine that it does." in kept
    assert "Not even the bounds keep the promises, so no engine does." in broken
    assert "nothing is expected because no timed kernels of AMD Instinct MI300X 192GB OAM are known for it" in said
    assert "tp 2: weights, activations and buffers take" in said


def test_a_bound_is_not_held_against_what_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    """Of DeepSeek nothing is expected with a cache in fp8: that change is not among those that would help."""
    command = (
        "serve --model deepseek-v3 --weights fp8 --hardware h200 --gpus 8 --tp 8 --users 64 --prompt 4k --answer 1k"
    )
    helps = answer(command, capsys)["reasons"]["what would help"]
    assert "prefix cache" in helps
    assert "fp8 cache" not in helps


def test_the_engines_own_flags_stand_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(f"{LOAD} --itl 30ms --tp 1 --weights fp8", capsys)
    limits = f"--max-num-seqs {found['max_num_seqs']} --max-num-batched-tokens {found['max_num_batched_tokens']}"
    assert limits in found["reasons"]["in vLLM's flags"]
    assert "--quantization fp8_per_tensor" in found["reasons"]["besides"]
    assert "takes" in found["reasons"]["chunks"]
    for engine, flag in {"sglang": "--chunked-prefill-size", "tensorrt-llm": "--max_num_tokens"}.items():
        assert flag in spoken(f"{CHAT} --gpus 1 --users 8 --engine {engine}", capsys)


def test_stages_hold_a_model_that_one_node_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    """Llama 3 405B in 16 bits: 811 GB of weights on eight GPUs are too many, on two nodes half of them fit."""
    users = "serve --model llama-3-405b --hardware h100-sxm --prompt 4k --answer 500 --users 64 --tp 8"
    assert main(f"{users} --gpus 8".split()) == 2
    assert "weights, activations and buffers take" in capsys.readouterr().err
    two = f"{users} --gpus 16 --pp 2 --network infiniband-ndr"
    found = answer(two, capsys)
    assert (found["pp"], found["copies"], found["num_gpus"]) == (2, 1, 16)
    table = 2 * 128_256 * 16_384
    layers = 2 * model_parameters(catalogue.model("llama-3-405b")).total - 2 * table
    assert found["weights_bytes"] == pytest.approx((layers / 2 + table) / 8)
    assert found["bound_step_s"] < found["expected_step_s"]
    said = spoken(two, capsys)
    assert "handovers between stages" in said
    assert "with tp 8 in 2 stages" in said
    assert "--tensor-parallel-size 8 --pipeline-parallel-size 2" in said
    assert "an upper estimate" in said
    assert "--tp-size 8 --pp-size 2 --nnodes 2" in spoken(f"{two} --engine sglang --users 2", capsys)


def test_stages_keep_promises_and_wait_for_their_network(capsys: pytest.CaptureFixture[str]) -> None:
    two = f"{CHAT} --tp 1 --pp 2 --network"
    quick, slow = (answer(f"{two} {rate} --gpus 2 --users 8", capsys) for rate in ("50GB/s", "100MB/s"))
    sent_s = 2 * 4 * 4096 * 2 / 0.8  # bytes of four requests, what a layer made and the residual
    assert slow["expected_step_s"] - quick["expected_step_s"] == pytest.approx(
        sent_s * (1 / 100e6 - 1 / 50e9), rel=0.01
    )
    assert slow["ttft_p50_s"] > quick["ttft_p50_s"]
    held = answer(f"{two} 50GB/s --rate 5/s --ttft 2s --itl 40ms", capsys)
    assert held["itl_p99_s"] <= 0.040
    assert held["num_gpus"] >= held["num_gpus_at_least"]
    assert held["num_gpus"] % 2 == 0


def test_groups_keep_a_promise_on_every_gap_by_chunks_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Each group's engine has a budget of its own: what the flags say is one's share of what all do in a step."""
    users = "serve --model qwen3-235b-a22b --weights fp8 --hardware h200 --gpus 8 --tp 1 --dp 8 --users 128"
    users += " --prompt 4k --answer 200"
    free, held = (answer(users + more, capsys) for more in ("", " --itl 60ms"))
    assert held["itl_p99_s"] <= 0.060 < free["itl_p99_s"]
    assert held["ttft_p50_s"] > free["ttft_p50_s"]
    assert (held["max_num_batched_tokens"] - held["max_num_seqs"]) % 8 == 0
    each = held["max_num_batched_tokens"] // 8
    assert f"--max-num-seqs 16 --max-num-batched-tokens {each} " in held["reasons"]["in vLLM's flags"]
    assert "tokens of prompts in a step of each group" in held["reasons"]["chunks"]
    rate = answer(users.replace("--users 128", "--rate 4/s") + " --ttft 3s --itl 60ms", capsys)
    assert rate["itl_p99_s"] <= 0.060


def test_adapters_take_memory_and_time_and_have_flags(capsys: pytest.CaptureFixture[str]) -> None:
    """83,886,080 bytes each: Llama 3 8B at rank 16, for which vLLM reserves where 12 is asked for."""
    users = f"{CHAT} --gpus 1 --users 16"
    without, found = (answer(users + more, capsys) for more in ("", " --adapters 8 --adapter-rank 12"))
    assert found["adapters_bytes"] == 8 * 83_886_080
    assert without["seats"] - found["seats"] in (2, 3)  # 2 x 32 x 8 x 128 x 2 bytes of 1,808 tokens each
    for name in ("bound_step_s", "expected_step_s", "expected_prompt_s", "ttft_p50_s"):
        assert found[name] > without[name]
    assert found["tokens_per_s"] < without["tokens_per_s"]
    for engine, flags in {
        "vllm": "--enable-lora --max-loras 8 --max-lora-rank 16",
        "sglang": "--enable-lora --max-loras-per-batch 8 --max-lora-rank 12 --lora-target-modules all",
        "tensorrt-llm": "lora_config with lora_dir, max_loras: 8 and max_lora_rank: 12",
    }.items():
        assert flags in spoken(f"{users} --adapters 8 --adapter-rank 12 --engine {engine}", capsys)


def test_adapters_beside_experts_are_smaller_where_gpus_hold_different_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """gpt-oss-120b on four GPUs: of every expert's adapters one half is whole on each, or its experts are spread."""
    asked = "serve --model gpt-oss-120b --weights mxfp4 --hardware h200 --gpus 4 --tp 4 --users 64 --prompt 4k"
    asked += " --answer 500 --adapters 4 --adapter-rank 16"
    cut, spread = (answer(asked + more, capsys) for more in ("", " --ep 4"))
    assert cut["times_are"] == spread["times_are"] == "bounds"
    assert spread["adapters_bytes"] < 0.5 * cut["adapters_bytes"]
    plain = answer(asked.partition(" --adapters")[0], capsys)
    line = cut["results"]["adapters_in_that_step_at_least"]["value"]
    assert cut["bound_step_s"] == pytest.approx(plain["bound_step_s"] + line)
    assert "Activated LoRA is the exception" in spoken(f"{asked} --hit 0.5", capsys)
    assert "Activated LoRA is" not in spoken(asked, capsys)


def test_the_example_of_the_help_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert "without drafts at least" in spoken(f"serve {EXAMPLES['serve']} --tp 4", capsys)


def test_chapter_3_says_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    """The load of its part on capacity: 40 requests a second, TTFT 0.5 s, 30 ms a token."""
    chapter = (Path(__file__).parents[2] / "chapters/3_product_loop.ipynb").read_text(encoding="utf-8")
    assert "For the chat above it says four H100s" in chapter
    assert answer(f"{CHAT} --rate 40/s --ttft 500ms --itl 30ms --tp 1", capsys)["num_gpus"] == 4


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("", "say the load"),
        ("--rate 5/s --users 5", "not both"),
        ("--rate 5/s", "a rate needs a promise"),
        ("--users 5", "--users needs the GPUs"),
        ("--users 5 --gpus 3 --tp 2", "--tp 2 must divide --gpus 3"),
        ("--users 5 --gpus 1 --ep 2 --tp 1", "--ep 2 must divide --tp 1"),
        ("--users 5 --gpus 2 --ep 2 --tp 2", "llama-3-8b has none"),
        ("--users 5 --gpus 2 --dp 2", "dp 2 groups share experts, and llama-3-8b has none"),
        ("--users 5 --gpus 8 --tp 8 --dcp 2 --model qwen3-next-80b-a3b", "has layers with a state"),
        ("--users 5 --gpus 8 --tp 8 --dcp 2 --model qwen3-235b-a22b --engine sglang", "tokens of latents, and qwen3"),
        ("--users 5 --gpus 8 --tp 8 --dcp 2 --model qwen3-235b-a22b --engine trt-llm", "other GPUs read the prompts"),
        ("--rate 5/s --ttft 1ms", "are promised; shorter prompts, --hit or a longer promise would do"),
        ("--users 5 --gpus 2 --tp 2 --dcp 2", "2 GPUs keep each cache once"),
        ("--users 5 --gpus 1 --hardware a10g", "of NVIDIA A10G 24GB only the memory is known, no rates"),
        ("--users 5 --gpus 8 --tp 8 --dcp 4 --model qwen3-235b-a22b --weights fp8", "must divide the 2 copies"),
        ("--users 5 --gpus 8 --tp 8 --dcp 2 --model qwen3-235b-a22b --engine tensorrt-llm", "take --engine vllm"),
        ("--users 5 --gpus 2 --dp 4", "a node, or --gpus, has 2"),
        (
            "--users 5 --gpus 16 --dp 4 --tp 4 --model qwen3-235b-a22b",
            "groups of 4 are more than the 8 GPUs of a node",
        ),
        ("--users 5 --gpus 8 --dp 4 --tp 2 --model qwen3-235b-a22b --engine tensorrt-llm", "take --tp 1"),
        ("--rate 5/s --ttft 1ms --tp 1", "are promised"),
        ("--rate 5/s --itl 1ms --tp 1", "a step of a single request takes"),
        ("--users 5 --gpus 1 --draft-tokens 3", "none of which has a default"),
        ("--users 5 --gpus 4 --tp 2 --pp 2", "say with --network what joins the nodes"),
        ("--users 5 --gpus 4 --network 50GB/s", "give --pp 2, too"),
        ("--users 5 --gpus 3 --tp 2 --pp 2 --network 50GB/s", "--gpus 3 are no multiple of the 4 GPUs"),
        ("--users 5 --gpus 1 --pp 2 --network 50GB/s", "as many stages need as many GPUs"),
        ("--users 5 --gpus 33 --pp 33 --network 50GB/s", "--pp 33 stages are more than the 32 layers"),
        ("--users 5 --gpus 4 --pp 2 --network nvidia", "--network"),
        ("--users 5 --gpus 4 --pp 2 --network 50GB/s --engine tensorrt-llm", "as vLLM and SGLang have them"),
        (
            "--users 5 --gpus 16 --pp 2 --network 50GB/s --dp 8 --model qwen3-235b-a22b --weights fp8",
            "--pp 2 is counted without --dp",
        ),
        ("--users 5 --gpus 4 --pp 2 --network 50GB/s --prefill-tp 1", "two pools are counted without stages"),
        ("--users 5 --gpus 1 --adapters 8", "adapters need --adapters 8 and --adapter-rank 16"),
        ("--users 5 --gpus 1 --adapters 0 --adapter-rank 8", "--adapters 0"),
        ("--users 5 --gpus 1 --adapters 5000 --adapter-rank 8", "weights, adapters, activations and buffers take"),
        ("--users 5 --gpus 1 --adapters 8 --adapter-rank 600", "vLLM reserves at most 512"),
        ("--users 5 --gpus 8 --tp 8 --adapters 8 --adapter-rank 8 --model deepseek-v3.2", "leave --adapters out"),
        (
            "--users 5 --gpus 8 --dp 8 --adapters 8 --adapter-rank 8 --model deepseek-v3 --hardware h200",
            "are SGLang's; --engine sglang",
        ),
        ("--users 5 --gpus 1 --draft-tokens 0 --acceptance 0.7 --draft-cost 0.05", "--draft-tokens 0"),
        ("--users 5 --gpus 1 --engine tgi", "--engine 'tgi' is not known"),
        ("--users 5 --gpus 1 --share 92", "must lie between 0 and 1"),
        ("--users 5 --gpus 1 --answer 1", "give at least 2 tokens"),
        (
            "--users 5 --gpus 1 --lengths azure-code",
            "--prompt 2k and --answer 500, or --lengths azure-conversation, not",
        ),
        ("--users 5 --gpus 1 --hardware jetson-agx-orin-64gb", "several engines and power modes"),
        ("--users 5 --gpus 8 --model qwen3-235b-a22b --tp 8 --ep 4", "over all 8 GPUs of a copy or over none"),
    ],
)
def test_a_wrong_question_gets_one_sentence(rest: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*CHAT.split(), *rest.split()]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("", "say how long requests are"),
        ("--prompt 500", "say how long requests are"),
        ("--lengths azure", "may be 'azure-code-2023' or 'azure-conversation-2023'; say which"),
        ("--lengths sharegpt", "--lengths 'sharegpt' is not known"),
        ("--lengths mooncake --model gpt2", "of 2,000 recorded requests 56 are within the 1,024 tokens"),
    ],
)
def test_a_question_without_lengths_gets_one_sentence(rest: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = f"serve --model llama3-8b --hardware h100-sxm --users 5 --gpus 1 {rest}"
    assert main(asked.split()) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("load", ["50", "/s", "5/week", "-5/s"])
def test_a_load_without_its_time_is_refused(load: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*CHAT.split(), f"--rate={load}", "--ttft", "1s"])
    assert "must be requests in a time" in capsys.readouterr().err
