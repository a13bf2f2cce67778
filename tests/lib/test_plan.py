"""`threeloops plan` and `threeloops step`: each against the other, against arithmetic by hand, and asked wrongly."""

import json
import re
from pathlib import Path

import pytest
from tests.models.small_configs import small

from threeloops.cli import main
from threeloops.commands.calculations import EXAMPLES

MACHINES = "--model llama3-8b --hardware h100-sxm --sequence 4k --batch 64 --network infiniband-ndr"
PLAN = f"plan {MACHINES} --gpus 16"
STEP = f"step {MACHINES} --dp 16 --zero 1 --recompute none"
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def answer(command: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert main([*command.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def spoken(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(command.split()) == 0
    return capsys.readouterr().out


def test_days_and_dollars_are_those_of_a_pocket_calculator(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(f"{PLAN} --tokens 1T --price 2.50", capsys)
    for layout in found["layouts"]:
        assert layout["tokens_per_s"] * layout["step_s"] == pytest.approx(64 * 4096)
        assert layout["training_s"] == pytest.approx(1e12 / (64 * 4096) * layout["step_s"])
        assert layout["dollars"] == pytest.approx(16 * layout["training_s"] / 3600 * 2.5)
        # 6 FLOPs for each of 8.03e9 parameters but the table's 0.53e9, and 6 × 32 layers × 4096 wide × 4096 tokens for
        # half of the attention square
        flops = 6 * (8.030e9 - 0.525e9) + 6 * 32 * 4096 * 4096
        assert layout["mfu"] == pytest.approx(flops * layout["tokens_per_s"] / 16 / 989.4e12, rel=2e-3)


def test_step_takes_apart_what_plan_promises(capsys: pytest.CaptureFixture[str]) -> None:
    for layout in answer(f"{PLAN} --top 4", capsys)["layouts"]:
        degrees = " ".join(f"--{name} {layout[name]}" for name in ("dp", "tp", "pp", "cp", "ep", "schedule", "chunks"))
        rest = f"--micro-batch {layout['micro_batch']} --zero {layout['zero_stage']} --recompute {layout['recompute']}"
        one = answer(f"step {MACHINES} {degrees} {rest}", capsys)
        assert one["results"]["step"]["value"] == pytest.approx(layout["step_s"])
        assert one["memory_bytes"] == layout["memory_bytes"]
        assert one["fits"]
        assert sum(one["parts_s"].values()) == pytest.approx(layout["step_s"])


def test_what_is_given_is_kept_and_the_rest_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever gives a degree gets the fastest of the layouts that have it, in the order in which all of them stand."""
    every = answer(f"{PLAN} --top 500", capsys)["layouts"]
    for name, flag, one in (("tp", "tp", 2), ("pp", "pp", 4), ("cp", "cp", 1), ("dp", "dp", 8)):
        found = answer(f"{PLAN} --top 500 --{flag} {one}", capsys)["layouts"]
        assert found == [layout for layout in every if layout[name] == one]
        assert found
    both = answer(f"{PLAN} --top 500 --tp 2 --pp 4 --zero 1 --recompute none --micro-batch 2", capsys)
    (layout,) = both["layouts"]
    one = answer(f"step {MACHINES} --tp 2 --pp 4 --dp 2 --zero 1 --recompute none --micro-batch 2", capsys)
    assert [layout[name] for name in ("dp", "zero_stage", "recompute", "micro_batch")] == [2, 1, "none", 2]
    assert layout["step_s"] <= one["results"]["step"]["value"]  # which interleaves no chunks
    said = spoken(f"{PLAN} --tp 2 --recompute none", capsys)
    assert "--tp 2 --recompute none" in said
    assert "recompute full" not in said
    assert not re.search(r"^ +dp\d+: ", said, re.MULTILINE)  # no other degree is asked about


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("--tp 3", "no split of 16 GPUs has --tp 3: dp * tp * cp * pp are all of them"),
        ("--tp 8 --pp 4", "no split of 16 GPUs has --tp 8 --pp 4"),
        ("--ep 2", "no split of 16 GPUs has --ep 2"),
        ("--recipe deepspeed --zero 3", "--zero 3 is no stage of --recipe deepspeed, which has 0, 1, 2"),
    ],
)
def test_what_cannot_be_kept_is_said(more: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAN.split(), *more.split()]) == 2
    assert told in capsys.readouterr().err


def test_where_nothing_given_fits_what_was_given_misses(capsys: pytest.CaptureFixture[str]) -> None:
    plan = "plan --model llama3-70b --hardware h100-sxm --gpus 8 --sequence 8k --batch 64"
    said = spoken(f"{plan} --tp 8", capsys)
    assert "tp8: does not fit by" in said
    assert "dp8: " not in said


def test_layouts_come_fastest_first_and_all_fit(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(f"{PLAN} --top 50", capsys)
    steps = [layout["step_s"] for layout in found["layouts"]]
    assert steps == sorted(steps)
    assert all(layout["memory_bytes"] <= layout["usable_bytes"] for layout in found["layouts"])
    assert found["fitting"] < found["legal"] < found["considered"]


def test_what_was_not_said_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    said = spoken(PLAN, capsys)
    assert "no --tokens given, so no days and no dollars" in said
    said = spoken(f"{PLAN} --tokens 1T", capsys)
    assert "no --price given: no dollars" in said
    assert answer(f"{PLAN} --tokens 1T", capsys)["layouts"][0]["dollars"] is None


def test_a_cluster_that_is_too_small_says_by_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    said = spoken("plan --model llama3-70b --hardware h100-sxm --gpus 8 --sequence 8k --batch 64", capsys)
    assert "dp8: does not fit by" in said
    assert "Nothing fits: " in said
    assert (
        answer("plan --model llama3-70b --hardware h100-sxm --gpus 8 --sequence 8k --batch 64", capsys)["fits"] is False
    )


def test_where_no_layout_is_legal_the_rules_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = spoken(f"{PLAN} --gpus 37 --batch 1", capsys)
    assert "Nothing is legal" in said
    assert "dp*micro_batch=37 must divide global_batch=1" in said


def test_a_step_that_does_not_fit_is_told_as_if_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    said = spoken(f"{STEP} --dp 1", capsys)
    assert "As if it fitted: the fullest GPU needs" in said


def test_a_sequence_beyond_the_model_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "gpt2 was made for 1,024 at most" in spoken(f"{STEP} --model gpt2", capsys)


@pytest.mark.parametrize(
    ("machines", "told"),
    [
        ("--hardware gb200 --node gb200-nvl72 --reach 0.7", "72 GPUs a node, 900 GB/s each"),
        ("--hardware h200 --reach 0.75", "bf16, 75.0 % of the dense peak of"),
        ("--hardware 4090 --reach 0.8 --node 4 --link pcie4", "4 GPUs a node, 31.5 GB/s each; 50.0 GB/s out of it"),
        ("--network 400Gbit/s", "50.0 GB/s out of it"),
        ("--dtype fp8 --recipe deepspeed", "fp8, 70.9 % of the dense peak"),
        (
            "--hardware gb200 --node gb200-nvl72 --dtype nvfp4 --reach 0.6",
            "nvfp4, 60.0 % of the dense peak of 10.0 PF",
        ),
    ],
)
def test_machines_are_described_as_they_were_taken(
    machines: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in spoken(f"{STEP} {machines}", capsys)


def test_four_bits_shorten_an_expected_step_s_matmuls_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    def took(form: str) -> dict[str, float]:
        found = answer(f"{STEP} --hardware gb200 --node gb200-nvl72 --dtype {form} --reach 0.7", capsys)
        return found["expected_parts_s"]

    wide, narrow = took("fp8"), took("nvfp4")
    assert narrow.pop("matmuls") < 0.8 * wide.pop("matmuls")
    assert narrow == pytest.approx(wide)


def test_a_recipe_of_some_stages_is_planned_at_these(capsys: pytest.CaptureFixture[str]) -> None:
    assert {layout["zero_stage"] for layout in answer(f"{PLAN} --recipe deepspeed", capsys)["layouts"]} <= {0, 1, 2}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_each_help_runs_and_stands_in_the_readme(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"$ threeloops {name} {EXAMPLES[name]}\n" in README
    assert main([name, *EXAMPLES[name].split()]) == 0
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert f"\nexample: threeloops {name} {EXAMPLES[name]}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (f"{PLAN} --model llama", "--model 'llama' may be 'llama-2-7b', "),
        (f"{PLAN} --hardware h100", "--hardware 'h100' may be 'h100-nvl-94gb', 'h100-sxm5' or 'h100-pcie'; say which"),
        (f"{PLAN} --hardware drive-orin", "a system on a chip is not planned for"),
        (f"{PLAN} --hardware h200", "nobody measured for the catalogue what bf16 matmuls reach on h200-sxm"),
        (f"{PLAN} --hardware 4090 --reach 0.8", "the catalogue knows no link between cards for rtx-4090"),
        (f"{PLAN} --gpus 0", "--gpus 0 must be a whole number"),
        (f"{PLAN} --gpus 200000", "--gpus 200,000 is more than is searched here"),
        (f"{PLAN} --sequence 0", "--sequence 0 must be"),
        (f"{PLAN} --batch 0", "--batch 0 must be"),
        (f"{PLAN} --node 0", "--node 0 must be a whole number"),
        (f"{PLAN} --node nvlink-4", "--node nvlink-4: that joins no GPUs"),
        (f"{PLAN} --node dgx", "--node 'dgx' may be 'dgx-2', 'dgx-a100' or 'dgx-h100'; say which"),
        (f"{PLAN} --link h100-sxm5", "--link h100-sxm5: that is no link"),
        (f"{PLAN} --link 0GB/s", "--link 0.0 must be greater than 0"),
        (f"{PLAN} --network 50", "50 of what?"),
        (f"{PLAN} --network infinband-ndr", "--network 'infinband-ndr' is not known; did you mean 'infiniband-ndr'"),
        (PLAN.replace(" --network infiniband-ndr", ""), "16 GPUs are more than the 8 of a node: say with --network"),
        (f"{PLAN} --dtype int8", "--dtype 'int8' is not known. Known: bf16, fp16, fp8, nvfp4"),
        (f"{PLAN} --dtype nvfp4 --reach 0.7", "h100-sxm5 has no dense fp4 peak"),
        (f"{PLAN} --reach 80", "--reach 80.0 must lie between 0 and 1"),
        (f"{PLAN} --recipe adam", "--recipe 'adam' is not known"),
        (f"{PLAN} --kernels fast", "--kernels 'fast' is not known"),
        (f"{PLAN} --share 90", "--share 90.0 is a share of the memory"),
        (f"{PLAN} --tokens 0", "--tokens 0.0 must be greater than 0"),
        (f"{PLAN} --price 2", "--price gives dollars for a whole run; say with --tokens"),
        (f"{PLAN} --tokens 1T --price nan", "--price nan must be finite"),
        (f"{PLAN} --top 0", "--top 0 must be"),
        (f"{STEP} --dp 3", "dp*micro_batch=3 must divide --batch 64"),
        (f"{STEP} --tp 16 --dp 1", "--tp 16 must not exceed --node 8"),
        (f"{STEP} --pp 33 --dp 1", "pp*chunks=33 must not exceed num_layers=32"),
        (f"{STEP} --ep 2", "--ep 2 needs experts to split"),
        (f"{STEP} --schedule dualpipe", "--schedule 'dualpipe' is not known"),
        (f"{STEP} --chunks 2", "--chunks 2 with --schedule '1f1b'"),
        (f"{STEP} --recipe deepspeed --zero 3", "not at --zero 3; try --recipe 'deepspeed-zero-3'"),
    ],
)
def test_a_wrong_word_gets_one_sentence(command: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize(
    "flag", ["--gpus 1e9", "--sequence 4q", "--tokens x", "--tokens -5", "--price 2$", "--reach x"]
)
def test_what_is_no_number_does_too(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([*PLAN.split(), *flag.split()])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_hybrid_of_a_file_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {
        "model_type": "qwen3_next",
        "hidden_size": 48,
        "intermediate_size": 70,
        "num_hidden_layers": 4,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "head_dim": 8,
        "vocab_size": 131,
        "max_position_embeddings": 96,
        "num_experts": 7,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 26,
        "shared_expert_intermediate_size": 30,
        "hidden_act": "silu",
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 4,
        "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main([*PLAN.split(), "--model", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the fastest is" in said


BASE = "step --hardware h100-sxm --sequence 8k --batch 128 --network infiniband-ndr --dp 8 --zero 1 --recompute none"
HYBRID = "--model nemotron-3-nano-30b-a3b"


def test_a_hybrid_is_planned_and_its_carried_times_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(f"{BASE} {HYBRID} --ep 8", capsys)
    assert found["expected_parts_s"]["scans"] > 0
    carried = "scans at the share of their roof that b200-hgx reached"
    assert any(carried in one for one in found["assumes"])
    assert "carried over" not in spoken(f"{BASE} --model llama3-8b", capsys)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--cp 2", "how the ranks of a context group pass on a recurrent state is not counted; try"),
        ("--kernels eager", "runs a scan in plain operations, whose tensors are not counted"),
        ("--tp 16 --node 16", "tp 16 must divide groups=8"),
    ],
)
def test_layouts_of_a_hybrid_that_are_not_counted_are_refused(
    capsys: pytest.CaptureFixture[str], flags: str, words: str
) -> None:
    assert main([*BASE.split(), *HYBRID.split(), *flags.split()]) == 2
    assert words in capsys.readouterr().err


def test_a_model_whose_training_is_not_counted_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(small("jamba")))
    for command in (f"{PLAN} --model {tmp_path}", f"{BASE} --model {tmp_path}"):
        assert main(command.split()) == 2
        said = capsys.readouterr()
        assert "a layer of this model has a scan of Mamba 1" in said.err
        assert said.out == ""


def test_an_expected_time_stands_beside_the_one_at_best_rates(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(STEP, capsys)
    assert sum(found["expected_parts_s"].values()) == pytest.approx(found["results"]["expected_step"]["value"])
    assert found["results"]["expected_step"]["value"] > found["results"]["step"]["value"]
    (planned,) = [one for one in answer(f"{PLAN} --top 50", capsys)["layouts"] if one["dp"] == 16][:1]
    assert planned["expected_s"] > planned["step_s"]


def test_an_older_attention_kernel_takes_longer(capsys: pytest.CaptureFixture[str]) -> None:
    took = [
        answer(f"{STEP} --attention {kernel}", capsys)["expected_parts_s"]["attention"]
        for kernel in ("cudnn", "flash-2", "triton-2023")
    ]
    assert took == sorted(took)
    assert main([*STEP.split(), "--attention", "flash-9"]) == 2
    assert "--attention 'flash-9'" in capsys.readouterr().err


def test_where_no_kernels_are_timed_no_time_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    said = spoken(STEP.replace("h100-sxm", "mi300x") + " --reach 0.6", capsys)
    assert "No expected time: the kernels of AMD Instinct MI300X 192GB OAM are not timed" in " ".join(said.split())
