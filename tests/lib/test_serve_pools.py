"""`threeloops serve --prefill-tp`: two pools, by hand, beside what others measured, and asked wrongly."""

import json
from dataclasses import replace
from typing import Any

import pytest

from threeloops.cli import main
from threeloops.commands.serve import fleets
from threeloops.facts.served_pools import ServedPool
from threeloops.models import catalogue
from threeloops.product_loop.expected.pool_times import pool_times

POOLS = "--ttft 1s --tpot 40ms --prefill-tp 4 --bandwidth 50GB/s"
LOAD = (
    f"serve --model llama-3.3-70b --hardware h100-sxm --weights fp8 --tp 4 --rate 30/s --prompt 2k --answer 500 {POOLS}"
)


def answer(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*command.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_both_pools_are_large_enough_and_keep_what_is_promised(capsys: pytest.CaptureFixture[str]) -> None:
    """Against the formula of expected times, which knows nothing of queues."""
    found = answer(LOAD, capsys)
    prefill, decode = found["prefill"], found["decode"]
    assert found["num_gpus"] == prefill["num_gpus"] + decode["num_gpus"]
    assert found["ttft_p50_s"] < found["ttft_p99_s"] <= 1.0
    assert found["tpot_p50_s"] <= found["tpot_p99_s"] <= 0.040
    four = {name: ServedPool(workers=found[name]["copies"], tp=4, dp=1, ep=1) for name in ("prefill", "decode")}
    told = pool_times(
        catalogue.model("llama-3.3-70b"),
        **{"part": "h100-sxm5", "format": "fp8", "cache": "bf16", "engine": "vLLM"},  # type: ignore[arg-type]
        **four,
        requests=decode["copies"] * decode["max_num_seqs"],
        prompt=2048,
        answer=500,
    )
    assert told.requests_per_s >= 30, "as many as have seats could be served at that rate"
    fewer = found["results"]["prefill_copies_if_they_never_waited"]["value"]
    assert prefill["copies"] - 2 < fewer < prefill["copies"]


def test_goodput_counts_the_requests_that_keep_both_promises(capsys: pytest.CaptureFixture[str]) -> None:
    """What 99 of 100 keep leaves the rate; a promise as long as half of them need leaves half of what is answered."""
    assert 0.96 * 30 <= answer(LOAD, capsys)["results"]["goodput_requests_in_a_second"]["value"] <= 30
    asked = LOAD.replace("--rate 30/s", "--users 100 --gpus 8")
    plain = answer(asked.replace("--ttft 1s --tpot 40ms", ""), capsys)
    assert "goodput_requests_in_a_second" not in plain["results"]
    for promise, share in {f"--tpot {1000 * plain['tpot_p50_s']}ms": 0.5, "--ttft 90s --tpot 1s": 1.0}.items():
        found = answer(asked.replace("--ttft 1s --tpot 40ms", promise), capsys)
        goodput = found["results"]["goodput_requests_in_a_second"]["value"]
        assert goodput == pytest.approx(share * plain["tokens_per_s"] / 500, rel=0.02)


def test_copies_that_do_both_are_as_many_as_without_pools(capsys: pytest.CaptureFixture[str]) -> None:
    """Degrees that take more than the best are left early, and none of them would have won."""
    asked = "serve --model llama3-8b --hardware h100-sxm --rate 200/s --prompt 2k --answer 20 --ttft 300ms"
    for promise in ("", " --tpot 20ms"):
        found = answer(f"{asked}{promise} --prefill-tp 1 --bandwidth 50GB/s", capsys)
        assert found["num_gpus_of_copies_that_do_both"] == answer(f"{asked}{promise}", capsys)["num_gpus"]


def test_the_cache_of_a_prompt_goes_over_the_links_of_the_smaller_group(capsys: pytest.CaptureFixture[str]) -> None:
    """2 × 80 layers × 8 KV heads × 128 × 2 bytes a token, over four links of 50 GB/s."""
    found = answer(LOAD, capsys)
    assert found["prompt_cache_bytes"] == 2048 * 2 * 80 * 8 * 128 * 2
    assert found["handover_s"] == pytest.approx(found["prompt_cache_bytes"] / (4 * 50e9))
    narrow = answer(LOAD.replace("--prefill-tp 4", "--prefill-tp 2"), capsys)
    assert narrow["handover_s"] == pytest.approx(2 * found["handover_s"])


def test_users_of_given_gpus_get_what_the_formula_says_of_every_split(capsys: pytest.CaptureFixture[str]) -> None:
    """Sixteen GPUs in fours: one, two or three copies read. pool_times knows nothing of single requests."""
    asked = LOAD.replace("--rate 30/s", "--users 128 --gpus 16")
    found = answer(asked, capsys)
    splits = {split["prefill"]["copies"]: split for split in found["splits"]}
    assert {copies: split["decode"]["copies"] for copies, split in splits.items()} == {1: 3, 2: 2, 3: 1}
    for copies, split in splits.items():
        told = pool_times(
            catalogue.model("llama-3.3-70b"),
            **{"part": "h100-sxm5", "format": "fp8", "cache": "bf16", "engine": "vLLM"},  # type: ignore[arg-type]
            prefill=ServedPool(workers=copies, tp=4, dp=1, ep=1),
            decode=ServedPool(workers=4 - copies, tp=4, dp=1, ep=1),
            requests=128,
            prompt=2048,
            answer=500,
        )
        assert split["tokens_per_s"] / 500 == pytest.approx(told.requests_per_s, rel=0.06)
        assert split["tpot_p50_s"] == pytest.approx(told.tpot_s, rel=0.06)
    best = max(splits.values(), key=lambda split: (split["ttft_p99_s"] <= 1.0, split["tokens_per_s"]))
    assert found["tokens_per_s"] == best["tokens_per_s"]
    assert main(asked.split()) == 0
    said = capsys.readouterr().out
    assert "as many GPUs in copies of 4 that do both make" in said
    assert "answers of each user" in said
    assert "on average, is in every TTFT" not in said


def test_gpus_that_are_left_over_are_idle(capsys: pytest.CaptureFixture[str]) -> None:
    asked = LOAD.replace("--rate 30/s", "--users 16 --gpus 10")
    assert main(asked.split()) == 0
    said = capsys.readouterr().out
    assert "16 users on 10 GPUs, 4 that read prompts and 4 that decode, 2 idle: TTFT" in said
    assert "The promises are kept." in said


def test_groups_that_share_experts_read_and_decode(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (
        "serve --model deepseek-v3 --hardware h200 --weights fp8 --engine sglang --tp 1 --dp 8 --rate 5/s --prompt 4k"
    )
    said = f"{asked} --answer 500 --ttft 3s --tpot 50ms --prefill-tp 1 --prefill-dp 8 --link infiniband-ndr"
    assert main(said.split()) == 0
    text = capsys.readouterr().out
    assert "--disaggregation-mode prefill" in text
    assert "--disaggregation-mode decode" in text
    assert "experts and their exchanges + all else / groups" in text
    assert "copies that do both" in text


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ((" --bandwidth 50GB/s", ""), "what a prompt's cache goes over"),
        (("--ttft 1s ", ""), "two pools need a promise on the first token"),
        (("--ttft 1s", "--ttft 20ms"), "is promised within 0.02 s"),
        (("50GB/s", "5MB/s"), "all that TPOT leaves of an answer's time"),
        (("--rate 30/s", "--users 30"), "--users needs the GPUs that they share"),
        (
            ("--rate 30/s", "--users 30 --gpus 7"),
            "--gpus 7 are too few: a copy that reads prompts takes 4 and one that",
        ),
        (("--rate 30/s", "--users 30 --gpus 8 --dp 2"), "llama-3.3-70b has none"),
        (("--prefill-tp 4 ", ""), "two pools need --prefill-tp"),
        (("--prefill-tp 4", "--prefill-tp 3"), "--prefill-tp 3 must divide heads=64"),
        (("--prefill-tp 4", "--prefill-tp 0"), "--prefill-tp 0 must be a whole number"),
        (("--prefill-tp 4", "--prefill-tp 4 --prefill-dp 2"), "--prefill-dp 2 groups share experts"),
    ],
)
def test_what_is_asked_in_part_is_refused(
    change: tuple[str, str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(LOAD.replace(*change).split()) == 2
    assert sentence in capsys.readouterr().err


def test_what_no_tensor_group_can_do_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(LOAD.replace("--tp 4 ", "", 1).replace("--ttft 1s", "--ttft 20ms").split()) == 2
    assert capsys.readouterr().err.count("is promised within 0.02 s") == 1


def test_a_percentile_above_its_promise_after_rounding_up_takes_another_copy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A percentile goes up and down a little with the rate: the promises are kept at the rate that is left to each."""
    before = answer(LOAD, capsys)["decode"]["copies"]
    seen, played = fleets._seen, list[float]()

    def late_at_first(*of: Any) -> Any:
        played.append(of[-1])
        found = seen(*of)
        return replace(found, tpot_s=(found.tpot_s[0], 0.041)) if len(played) == 1 else found

    monkeypatch.setattr(fleets, "_seen", late_at_first)
    after = answer(LOAD, capsys)
    assert after["decode"]["copies"] == before + 1
    assert played[:2] == [pytest.approx(30 / before), pytest.approx(30 / (before + 1))]
    assert after["tpot_p99_s"] <= 0.040
