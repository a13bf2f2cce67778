"""The command, asked as a stranger would: every answer against arithmetic done by hand, every mistake answered in one
sentence.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from threeloops.cli import main
from threeloops.drills.engine.answers import parse
from threeloops.facts import hardware
from threeloops.models import catalogue
from threeloops.product_loop.sizing.served_layout import ServedLayout


def answers(command: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """What `threeloops … --json` prints, with the values of its lines pulled up."""
    assert main([*command.split(), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    return printed | {name: line["value"] for name, line in printed["results"].items()}


def slugged(name: str) -> str:
    return "_".join(re.findall(r"[a-z0-9]+", name.lower()))


LORA = (
    "memory --model llama-2-7b --recipe autocast --zero 0 --micro-batch 1 --sequence 512 --kernels sdpa --recompute"
    " full"
)
FSDP2 = (
    "memory --model llama-3-8b --recipe fsdp2-mixed --zero 3 --micro-batch 1 --sequence 8k --kernels sdpa --recompute"
    " full"
)
# Twenty questions; the figures on the right were worked out on paper, from published shapes and rates, not by the
# library.
QUESTIONS = [
    # Llama 3 8B: 2 × 32 layers × 8 KV heads × 128 × 2 B = 131,072 B; × 8,192 tokens = 2^30.
    ("kv --model llama-3-8b --tokens 8192 --cache bf16", "bytes_per_token", 131_072),
    ("kv --model llama-3-8b --tokens 8192 --cache bf16", "32 layers, full", 2**30),
    # Llama 3 70B: 2 × 80 × 8 × 128 × 2 = 327,680 B; on 8 ranks one KV head each.
    ("kv --model llama-3-70b --tokens 1000 --cache bf16 --tp 8", "80 layers, full, each of 8 ranks", 40_960_000),
    # Sixteen ranks and 8 KV heads: each head on two ranks, so no rank holds less than one head.
    ("kv --model llama-3-70b --tokens 1000 --cache bf16 --tp 16", "80 layers, full, each of 16 ranks", 40_960_000),
    # Llama 2 7B, no grouping: 2 × 32 × 32 × 128 × 2 = 524,288 B.
    ("kv --model llama-2-7b --tokens 1 --cache bf16", "bytes_per_token", 524_288),
    # DeepSeek-V3: 61 layers × (512 + 64) × 2 = 70,272 B, whatever tp is.
    ("kv --model deepseek-v3 --tokens 1 --cache bf16 --tp 8", "bytes_per_token", 70_272),
    # Qwen2.5 7B in fp8: 2 × 28 × 4 × 128 × 1 = 28,672 B.
    ("kv --model qwen2.5-7b --tokens 1 --cache fp8", "bytes_per_token", 28_672),
    # Gemma 2 9B at 8,192: 21 windowed layers of 4,096 and 21 full ones, 2 × 8 × 256 × 2 = 8,192 B each: 21 × 8,192 ×
    # 12,288.
    ("kv --model gemma-2-9b --tokens 8192 --cache bf16", "one request", 2_113_929_216),
    # 100 tokens in blocks of 16 are 7 blocks: 112 × 131,072 × 10 requests.
    (
        "kv --model llama-3-8b --tokens 100 --batch 10 --cache bf16 --allocator vllm-paged --block 16",
        "reserved by vllm-paged",
        146_800_640,
    ),
    # Llama 3 8B has 8,030,261,248 parameters; twice that in bytes.
    (
        "kv --model llama-3-8b --tokens 8192 --cache bf16 --hardware h100-sxm5 --weights bf16",
        "weights per GPU",
        16_060_522_496,
    ),
    # Ring of 8 with 14 GB on A100's 300 GB/s one way: 2 × 7/8 × 14 / 300 = 0.0816667 s.
    ("allreduce --size 14GB --ranks 8 --link nvlink-3 --alpha 0s", "time", 24.5e9 / 300e9),
    ("allreduce --size 14GB --ranks 8 --link nvlink-3 --alpha 0s", "busbw", 300e9),
    # 100 Gbit/s is 12.5 GB/s: 24.5 / 12.5 = 1.96 s.
    ("allreduce --size 14GB --ranks 8 --bandwidth 100Gbit/s --alpha 0s", "time", 1.96),
    # Ring of 1,024 with 1 MB: 2,046 steps of 5 us = 10.23 ms, and 2 × 1023/1024 × 1e6 / 50e9 = 0.03996 ms.
    ("allreduce --size 1MB --ranks 1024 --bandwidth 50GB/s --alpha 5us", "latency", 0.01023),
    # The same by halving and doubling: 20 steps.
    (
        "allreduce --size 1MB --ranks 1024 --bandwidth 50GB/s --alpha 5us --algorithm halving-doubling",
        "latency",
        100e-6,
    ),
    # Reduce-scatter is one half of a ring all-reduce: 7/8 × 14 / 300.
    ("allreduce --size 14GB --ranks 8 --link nvlink-3 --alpha 0s --op reduce_scatter", "time", 12.25e9 / 300e9),
    # 4096³ GEMM in bf16: N/3 FLOP per byte.
    ("roofline --gemm 4096 4096 4096 --hardware h100-sxm5 --dtype bf16", "arithmetic intensity", 4096 / 3),
    # A100 40 GB: 312 TFLOP/s over 1,555 GB/s.
    ("roofline --gemm 1 4096 4096 --hardware a100-sxm4-40gb --dtype bf16", "ridge point", 200.643),
    # Llama 2 7B, 6,738,415,616 parameters, pure bf16 (2 + 2 + 4 bytes), nothing sharded: optimiser 4 bytes each.
    (
        (
            "memory --model llama-2-7b --recipe pure-bf16 --zero 0 --micro-batch 1 --sequence 2048 --kernels fused"
            " --recompute full"
        ),
        "optimiser",
        26_953_662_464,
    ),
    # The same at ZeRO-1 on 64 ranks by the ZeRO paper's recipe: 12 bytes each, over 64.
    (
        (
            "memory --model llama-2-7b --recipe zero-paper --zero 1 --dp 64 --micro-batch 1 --sequence 2048 --kernels"
            " fused --recompute full"
        ),
        "optimiser",
        6_738_415_616 * 12 / 64,
    ),
    # FSDP2 on 2 × 2 ranks: 4 + 4 + 8 bytes each, over 4; both tables and two layers of 218,112,000 in 16 bits.
    (f"{FSDP2} --dp 2 --cp 2", "weights", 8_030_261_248 * 4 / 4),
    (f"{FSDP2} --dp 2 --cp 2", "gathered weights", 2 * (2 * 128_256 * 4096 + 2 * 218_112_000)),
    # Half of 8,192 tokens in 16 bits, once a layer; with everything on the host no state is left in the sum.
    (f"{FSDP2} --dp 2 --cp 2", "activations of the layers", 32 * 4096 * 4096 * 2),
    (f"{FSDP2} --dp 2 --cp 2 --offload weights", "host_bytes", 8_030_261_248 * 16 / 4),
    # Without a head of 128,256 × 4,096, with one of 3 × 4,096, in fp32.
    (
        f"{LORA.replace('llama-2-7b', 'llama-3-8b')} --classes 3",
        "weights",
        4 * (8_030_261_248 - 128_256 * 4096 + 3 * 4096),
    ),
    # QLoRA's 4.127 bits for 32 × (4 × 4,096² + 3 × 4,096 × 11,008) weights, 2 bytes for the other 262,410,240.
    (f"{LORA} --lora 16 --targets all --base nf4", "frozen weights", 6_476_005_376 * 4.126953125 / 8 + 524_820_480),
    # Rank 64 on queries and values of 32 layers: 32 × 2 × 64 × 8,192, as PEFT prints.
    (f"{LORA} --lora 64 --targets q_proj,v_proj --base bf16", "trained parameters", 33_554_432),
    # A magnitude for each of the 4,096 outputs of both, besides.
    (f"{LORA} --lora 64 --targets q_proj,v_proj --base bf16 --dora", "trained parameters", 33_554_432 + 262_144),
]


@pytest.mark.parametrize(
    ("command", "asked", "by_hand"), QUESTIONS, ids=[f"{command.split()[0]}-{asked}" for command, asked, _ in QUESTIONS]
)
def test_twenty_questions(command: str, asked: str, by_hand: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert answers(command, capsys)[slugged(asked)] == pytest.approx(by_hand, rel=1e-5)


def test_how_many_conversations_fit_beside_the_weights(capsys: pytest.CaptureFixture[str]) -> None:
    # 81,559 MiB × 0.9 = 76,968,728,986 B; less 16,060,522,496 of weights leaves 60,908,206,490: 56 GiB and a bit.
    main(
        [
            "kv",
            "--model",
            "llama-3-8b",
            "--tokens",
            "8192",
            "--cache",
            "bf16",
            "--hardware",
            "h100-sxm5",
            "--weights",
            "bf16",
            "--share",
            "0.9",
        ]
    )
    assert "56 such requests fit" in capsys.readouterr().out


EVERY_COMMAND = [
    *sorted({command for command, _, _ in QUESTIONS}),
    "roofline --model llama-3-8b --hardware h200-sxm --dtype bf16 --phase prefill --tokens 512 --launch 5us",
    "roofline --gemm 4096 4096 4096 --hardware jetson-agx-orin-64gb --engine gpu --power-mode maxn --dtype int8",
    "roofline --gemm 4096 4096 4096 --hardware b200-hgx --dtype nvfp4",
    "roofline --model llama-3-8b --hardware tpu-v5e --dtype bf16",
    "roofline --model gemma-2-9b --hardware h100-sxm5 --dtype bf16 --tokens 8192",
    "kv --model gpt-oss-20b --tokens 144 --cache bf16 --allocator vllm-paged --hardware l4 --weights mxfp4",
    "allreduce --size 1GB --ranks 8 --link nvlink-4 --alpha 0s --op all_to_all",
    (
        "memory --model llama-3-8b --recipe megatron --zero 0 --pp 2 --micro-batches 8 --schedule interleaved --chunks"
        " 2 --micro-batch 1 --sequence 64 --kernels fused --recompute none"
    ),
    (
        f"{LORA.replace('--zero 0', '--zero 3 --dp 4').replace('recompute full', 'recompute none')} --lora 16 --targets"
        " attention,mlp --base nf4-single --adapter-dropout --hardware 4090"
    ),
    f"{LORA.replace('llama-2-7b', 'gemma-2-9b')} --lora 8 --targets all --base bf16 --dora --dropout --hardware h200",
    f"{LORA.replace('llama-2-7b', 'mixtral-8x7b')} --lora 8 --targets attention --base nf4 --cross-entropy sliced",
    "fit --model qwen3-32b --format q4_k_m --hardware rtx-4090 --tokens 32k",
    "fit --model gemma-3-27b --format nvfp4 --hardware rtx-5090 --tokens 8k --users 3 --cache fp8 --share 0.9",
    "roofline --model mixtral-8x7b --hardware h100-sxm5 --dtype bf16 --batch 4 --tokens 300",
    (
        "serve --model gemma-2-9b --hardware h100-sxm5 --weights fp8 --rate 600/min --prompt 1k --answer 200"
        " --ttft 1s --itl 50ms --tp 2 --price 2"
    ),
    "serve --model deepseek-v3 --hardware h200-sxm --weights fp8 --users 64 --gpus 8 --prompt 4k --answer 500 --hit 9%",
    (
        "plan --model gpt2-xl --hardware a100-sxm4-80gb --gpus 4 --sequence 1k --batch 16 --node 2 --network 100g"
        " --tokens 300B --price 1.5"
    ),
    (
        "step --model llama-3-70b --hardware h100-sxm5 --sequence 8k --batch 512 --network 400g --tp 4 --pp 4 --dp 32"
        " --zero 1 --recompute selective --schedule interleaved --chunks 4 --tokens 15T --price 2.5"
    ),
    (
        "step --model mixtral-8x7b --hardware h100-sxm5 --sequence 4k --batch 256 --network ndr --ep 8 --dp 8 --cp 2"
        " --pp 2 --zero 3 --recompute full --schedule zb-h1"
    ),
    (
        "step --model llama-3-8b --hardware h100-sxm5 --sequence 4k --batch 64 --network 1GB/s --dp 8 --pp 2 --tp 2"
        " --zero 2 --recompute full --micro-batch 2"
    ),
    "roofline --model deepseek-v3 --hardware h200-sxm --dtype fp8 --batch 4 --tokens 300",
    "roofline --model llama-3-8b --hardware rtx-4090 --dtype fp16 --weights q4_k_m --cache fp8 --tokens 4096",
    "allreduce --size 1MB --ranks 6 --bandwidth 50GB/s --alpha 5us --op broadcast --algorithm pipelined-tree",
    (
        "memory --model llama-3-70b --recipe megatron --zero 1 --dp 8 --tp 8 --pp 5 --sp --micro-batch 1 --sequence"
        " 4096 --kernels fused --recompute selective --micro-batches 16 --hardware h100-sxm5 --share 0.9"
    ),
]


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_the_numbers_put_in_give_the_number_that_comes_out(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 0
    text = capsys.readouterr().out
    steps = re.findall(r"^    = .*\n    = (.*)\n    = (\S+).*$", text, re.MULTILINE)
    assert steps, text
    for numbers, result in steps:
        source = (
            numbers.replace("×", "*").replace(",", "").replace("max(", "max(0,")
            if "max" not in numbers
            else numbers.replace("×", "*")
        )
        if "max" in numbers:  # commas part the arguments there, and no thousands
            source = re.sub(r"(?<=\d),(?=\d{3}\b)", "", numbers.replace("×", "*"))
        value = eval(source, {"__builtins__": {}, "max": max})
        assert float(result.replace(",", "")) == pytest.approx(value, rel=1e-5, abs=1e-12), f"{numbers} is not {result}"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "kv --model llama-3-9b --tokens 10 --cache bf16",
            "--model 'llama-3-9b' is not known. `threeloops sources` lists all. The path of a config.json is taken",
        ),
        ("kv --model llama-3-8b --tokens 10 --cache bf17", "--cache 'bf17' is not known; did you mean 'bf16'"),
        ("kv --model llama-3-8b --tokens 0 --cache bf16 --hardware h100-sxm5 --weights bf16", "--tokens 0 must be"),
        (
            "kv --model llama-3-8b --tokens 10 --cache bf16 --hardware h100 --weights bf16",
            "--hardware 'h100' may be 'h100-nvl-94gb', 'h100-sxm5' or 'h100-pcie'; say which",
        ),
        ("kv --model llama-3-8b --tokens 10 --cache bf16 --hardware h100-sxm5", "--weights bf16"),
        (
            "kv --model llama-3-8b --tokens 10 --cache bf16 --tp 3",
            "--tp 3 must divide num_heads=32; try tp in {1, 2, 4",
        ),
        ("kv --model /nowhere/config.json --tokens 10 --cache bf16", "/nowhere/config.json"),
        ("kv --model llama-3-8b --tokens 10 --cache bf16 --catalog /nowhere.toml", "'/nowhere.toml' cannot be read"),
        ("allreduce --size 14 --ranks 8 --link nvlink-3 --alpha 0s", "14 of what"),
        ("allreduce --size 14Gb --ranks 8 --link nvlink-3 --alpha 0s", "bits or bytes"),
        ("allreduce --size 14GB --ranks 8 --alpha 0s", "give the link by name"),
        (
            "allreduce --size 14GB --ranks 8 --link nvlink-3 --alpha 0s --algorithm rings",
            "--algorithm 'rings' is not known; did you mean 'ring'",
        ),
        ("roofline --hardware v100-sxm2-32gb --dtype bf16 --gemm 1 1 1", "v100-sxm2-32gb has no dense bf16 peak"),
        ("roofline --hardware h100-sxm5 --dtype bf16", "say what runs"),
        ("roofline --hardware jetson-agx-orin-64gb --dtype int8 --gemm 1 1 1", "needs engine in"),
        (
            (
                "memory --model llama-3-8b --recipe adam --zero 0 --micro-batch 1 --sequence 64 --kernels fused"
                " --recompute none"
            ),
            "--recipe 'adam' is not known",
        ),
        ("kv --model llama-3-8b --tokens 10 --cache bf16 --allocator hf-static", "hf-static needs --reserve"),
        (
            "kv --model llama-3-8b --tokens 10 --cache bf16 --allocator vllm-paged --reserve 5",
            "--reserve 5 has no meaning for vllm-paged; it belongs to hf-",
        ),
        ("kv --model llama-3-8b --tokens 10 --cache bf16 --block 16", "--block 16 belongs to an allocator"),
        (
            "kv --model llama-3-8b --tokens 10 --cache bf16 --batch -2",
            "--batch -2 must be a whole number of at least 1",
        ),
        (
            "kv --model llama-3-8b --tokens 10 --cache bf16 --hardware h100-sxm5 --weights bf16 --share 90",
            "--share 90.0 is a share of the memory",
        ),
        ("kv --model h100-sxm5 --tokens 10 --cache bf16", "that is a part, not a model"),
        ("allreduce --size 1GB --ranks 8 --link h100-sxm5 --alpha 0s", "that is no link"),
        ("roofline --hardware nvlink-4 --dtype bf16 --gemm 1 1 1", "has no arithmetic of its own"),
        (
            (
                "memory --model llama-3-8b --recipe megatron --zero 0 --pp 2 --micro-batch 1 --sequence 64 --kernels"
                " fused --recompute none"
            ),
            "needs --micro-batches",
        ),
        (
            (
                "memory --model llama-3-8b --recipe megatron --zero 0 --micro-batch 1 --sequence 64 --kernels fused"
                " --recompute none --dtype int4"
            ),
            "--dtype int4",
        ),
        (f"{LORA} --classes -1", "--classes -1 must be a whole number of at least 0"),
        (
            f"{LORA} --classes 2 --cross-entropy sliced",
            "--cross-entropy 'sliced' has no logits of a vocabulary where --classes 2: leave it out",
        ),
        (f"{LORA} --lora 8 --targets all --base nf4 --classes 2", "not for --classes"),
        (f"{FSDP2.replace('llama-3-8b', 'mixtral-8x7b')} --tp 2", "--expert-tp must say how tensor ranks hold experts"),
        (f"{FSDP2} --cp 3", "2*cp=6 must divide --sequence 8192; try cp in {1, 2, 4,"),
        (f"{FSDP2.replace('sdpa', 'eager')} --cp 2", "--cp 2 needs an attention that keeps no scores"),
        (f"{FSDP2.replace('--zero 3', '--zero 1')}", "not at --zero 1; try --recipe 'autocast'"),
        (f"{LORA} --offload weights", "--offload 'weights' needs ZeRO stage 3"),
        (f"{LORA} --lora 8 --targets all --base nf4 --cp 2", "not for --cp"),
        (f"{LORA} --lora 8 --targets all --base nf4 --offload optimiser", "not for --offload"),
        (f"{LORA} --base nf4", "--base says how frozen weights are stored: give their rank too"),
        (f"{LORA} --dora", "--dora adds magnitudes to adapters: give their rank too"),
        (f"{LORA} --lora 8 --base nf4", "--lora needs --targets"),
        (f"{LORA} --lora 8 --targets all", "--lora needs --base"),
        (f"{LORA} --lora 0 --targets all --base nf4", "rank=0 must be a whole number of at least 1"),
        (f"{LORA} --lora 8 --targets qkv --base nf4", "--targets 'qkv' is not known"),
        (f"{LORA} --lora 8 --targets all --base int3", "--base 'int3' is not known"),
        (f"{LORA} --lora 8 --targets all --base nf4 --tp 2", "not for --tp"),
        (f"{LORA} --lora 8 --targets all --base nf4 --dora --adapter-dropout", "leave one of the two out"),
        (f"{LORA.replace('llama-2-7b', 'gpt2')} --lora 8 --targets gate --base nf4", "gpt2 has no such matrix"),
        (
            f"{LORA.replace('llama-2-7b', 'mixtral-8x7b')} --lora 8 --targets all --base nf4",
            "on experts are not counted",
        ),
        (
            f"{LORA.replace('llama-2-7b', 'deepseek-v3')} --lora 8 --targets all --base nf4",
            "not beside latent attention",
        ),
        (f"{LORA.replace('llama-2-7b', 'qwen3-next-80b')} --lora 8 --targets all --base nf4", "recurrent state"),
        ("sources h100-sxn", "key='h100-sxn' is not known; did you mean 'h100-"),
        ("open nowhere", "no part is called 'nowhere'"),
        ("drill astrology", "topic='astrology' is not known"),
    ],
)
def test_a_mistake_gets_one_sentence_and_code_2(command: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command.split()) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize("command", ["", "kv", "kv --tokens x", "memory --zero 4", "fly"])
def test_a_misspelt_command_line_too(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(command.split())
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_no_mistake_ends_in_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "threeloops", "kv", "--model", "nope", "--tokens", "1", "--cache", "bf16"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


MINE = """
[sources.me]
title = "My own machine, measured"
url = "https://example.org/mine"
checked = 2026-11-21
[parts.my-card]
name = "My card"
vendor = "Me"
[parts.my-card.facts]
memory_bytes = { value = 1e9, printed = "1GB", kind = "measured", source = "me" }
memory_bytes_per_s = { value = 1e11, printed = "100 GB/s", kind = "measured", source = "me" }
[parts.my-card.peaks]
bf16 = { value = 5e12, printed = "5", kind = "measured", source = "me" }
"""


def test_a_readers_own_part_works_by_flag_and_by_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(MINE)
    command = "roofline --gemm 64 64 64 --hardware my-card --dtype bf16"
    assert answers(f"{command} --catalog {mine}", capsys)["ridge_point"] == 50
    monkeypatch.setenv("THREELOOPS_CATALOG", str(mine))
    assert answers(command, capsys)["ridge_point"] == 50


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (
            MINE.replace(
                'kind = "measured", source = "me" }\n[parts.my-card.peaks]', 'source = "me" }\n[parts.my-card.peaks]'
            ),
            "'kind' is missing",
        ),
        (MINE.replace("bf16 =", "bf61 ="), "'bf61' is not known; did you mean 'bf16'"),
        (
            MINE.replace('source = "me" }\n[parts.my-card.peaks]', 'source = "you" }\n[parts.my-card.peaks]'),
            "source='you' is not known",
        ),
        (MINE + "oops", "is not TOML"),
        (MINE.replace('"measured"', '"guess"'), "kind='guess' is not known"),
        (MINE.replace("value = 5e12", 'value = "5e12"'), "value='5e12' must be a number"),
    ],
)
def test_a_readers_broken_catalogue_is_refused_with_its_place(
    broken: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(broken)
    assert (
        main(["roofline", "--gemm", "1", "1", "1", "--hardware", "my-card", "--dtype", "bf16", "--catalog", str(mine)])
        == 2
    )
    assert told in capsys.readouterr().err


def test_a_model_from_a_config_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A tiny Llama: 2 layers × 2 KV heads × 4 wide × 2 (key, value) × 2 B = 64 B per token.
    config = {
        "model_type": "llama",
        "hidden_size": 16,
        "hidden_act": "silu",
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "max_position_embeddings": 64,
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert answers(f"kv --model {tmp_path} --tokens 1 --cache bf16", capsys)["bytes_per_token"] == 64


@pytest.mark.parametrize(
    ("slip", "told"),
    [
        ("[parts]\nmygpu = 3", "parts.mygpu=3 must be a table"),
        ("[part.mygpu]\nname = 'x'", "table='part' is not known; did you mean 'parts'"),
        ("models = 'x'", "models='x' must be a table"),
        ("[parts.my-card]\nname='a'\nvendor='b'\nfacts = 3", "my-card.facts=3 must be a table"),
        ("[parts.my-card]\nname='a'\nvendor='b'\n[parts.my-card.facts]\nmemory_bytes = 16e9", "must be a table"),
    ],
)
def test_a_catalogue_of_the_wrong_shape_is_refused(
    slip: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(slip)
    assert (
        main(["roofline", "--gemm", "1", "1", "1", "--hardware", "my-card", "--dtype", "bf16", "--catalog", str(mine)])
        == 2
    )
    assert told in capsys.readouterr().err


def test_rows_of_a_hybrid_model_add_up_to_its_pass(capsys: pytest.CaptureFixture[str]) -> None:
    printed = answers("roofline --model gemma-2-9b --hardware h100-sxm5 --dtype bf16 --tokens 8192", capsys)
    names = [row["name"] for row in printed["kernels"]]
    assert "attention (full)" in names
    assert "attention (window 4096)" in names
    assert len(set(names)) == len(names)
    assert sum(row["launches"] * row["at_least_s"] for row in printed["kernels"]) == pytest.approx(
        printed["one_pass_at_least"]
    )
    assert sum(row["launches"] * row["moved_bytes"] for row in printed["kernels"]) == pytest.approx(
        printed["bytes_of_the_pass"]
    )


def test_narrow_weights_are_read_in_less_time_and_multiplied_in_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Llama 3 8B in AWQ: 6.98e9 weights of 4.15625 bits, 1.05e9 of 16, and 128 KiB of cache a token."""
    asked = "roofline --model llama-3-8b --hardware h100-sxm5 --dtype bf16 --batch 1 --tokens 1024"
    wide, narrow = (answers(f"{asked}{rest}", capsys) for rest in ("", " --weights awq"))
    saved = wide["bytes_of_the_pass"] - narrow["bytes_of_the_pass"]
    assert saved == pytest.approx((8_030_261_248 - 128_256 * 4096) * (2 - narrow_bytes()), rel=1e-3)
    assert wide["flops_of_the_pass"] == narrow["flops_of_the_pass"]
    assert (
        main(["roofline", "--gemm", "1", "2", "3", "--hardware", "h100-sxm5", "--dtype", "bf16", "--weights", "awq"])
        == 2
    )
    assert "belong to --model" in capsys.readouterr().err


def narrow_bytes() -> float:
    """Bytes of a weight on average, by hand."""
    return (6_979_321_856 * 4.15625 + 1_050_939_392 * 16) / 8_030_261_248 / 8


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("--cp 2", "arXiv:2407.21783"),
        ("--offload gradients", "arXiv:2101.06840"),
        ("--offload weights", "arXiv:2104.07857"),
        ("--classes 0", "GenericForSequenceClassification"),
    ],
)
def test_what_memory_counts_by_a_flag_has_its_source(
    flags: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(FSDP2.split()) == 0
    assert named not in capsys.readouterr().out
    assert main([*FSDP2.split(), *flags.split()]) == 0
    assert any("source:" in line and named in line for line in capsys.readouterr().out.splitlines())


def test_a_terminal_without_our_signs_gets_plain_ones() -> None:
    command = [
        sys.executable,
        "-m",
        "threeloops",
        "kv",
        "--model",
        "llama-3-8b",
        "--tokens",
        "1",
        "--cache",
        "bf16",
    ]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=True)
    assert b"2 x layers x KV heads" in done.stdout


def test_a_full_disk_and_a_closed_pipe_end_quietly() -> None:
    command = [sys.executable, "-m", "threeloops", "sources"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline()
        run.stdout.close()
        assert "Traceback" not in run.stderr.read()
    if Path("/dev/full").exists():
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("threeloops: No space left on device")


def test_sources_lists_every_value_with_its_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sources", "h100-sxm5"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith("h100-sxm5  peaks.bf16 = 9.894e+14 FLOP/s") for row in rows)
    assert all("http" in row or "doi" in row or "arXiv" in row for row in rows)


def test_the_doctor_says_what_the_book_does_without() -> None:
    from threeloops import doctor

    findings = {
        finding.name: finding
        for finding in doctor.findings(look_up=lambda package: "" if package == "torch" else "1.0")
    }
    assert findings["torch"].found == ""
    assert "recorded results" in findings["torch"].without
    assert "torch" in doctor.report()


def test_quantities_on_the_command_line_are_read_as_drills_read_them() -> None:
    assert parse("14GB", like="B").value == 14e9


PAST_ITS_TABLE = (
    "kv --model gpt2 --tokens 2k --cache bf16",
    "fit --model gpt2 --weights bf16 --hardware h100-sxm --tokens 2k",
    "roofline --model gpt2 --hardware h100-sxm --dtype bf16 --phase decode --batch 1 --tokens 2k",
    LORA.replace("llama-2-7b", "gpt2").replace("512", "2048"),
    LORA.replace("llama-2-7b", "gpt2").replace("512", "2048") + " --lora 8 --targets attention --base bf16",
)


@pytest.mark.parametrize("command", PAST_ITS_TABLE)
def test_more_tokens_than_a_model_has_positions_are_said(command, capsys):
    said = str(answers(command, capsys)["conclusion"])
    assert said.endswith(" gpt2 was made for 1,024 tokens at most: its table of positions ends there.")


def test_with_one_tensor_rank_experts_are_whole(capsys):
    """Mixtral 8x7B has 46,702,792,704 parameters."""
    command = LORA.replace("llama-2-7b", "mixtral-8x7b")
    assert answers(command, capsys)["weights"] == 4 * 46_702_792_704


def test_ranks_that_share_a_cache_keep_what_serve_counts(capsys):
    """DeepSeek-V3 on eight GPUs: 61 layers of 576 numbers a token, an eighth on each."""
    asked = "--model deepseek-v3 --tokens 131072 --cache bf16 --tp 8 --hardware b200 --weights fp8 --json"

    def told(more: str) -> dict:
        assert main(["kv", *asked.split(), *more.split()]) == 0
        return json.loads(capsys.readouterr().out)

    alone, shared = told(""), told("--dcp 8")
    assert shared["bytes_per_token"] == 61 * 576 * 2 / 8 == alone["bytes_per_token"] / 8
    assert shared["longest_context_by_memory"] == pytest.approx(8 * alone["longest_context_by_memory"], rel=1e-6)
    assert shared["fits"] >= 8 * alone["fits"] > 0
    layout = ServedLayout(
        model=catalogue.model("deepseek-v3"), part=hardware.part("b200-hgx"), weights="fp8", cache="bf16", tp=8, dcp=8,
        memory_utilisation=1.0, other_bytes=0.0,
    )  # fmt: skip
    assert layout.cached_bytes / (8 * shared["bytes_per_token"]) == pytest.approx(
        shared["longest_context_by_memory"], rel=1e-3
    )


def test_a_block_of_ranks_that_share_a_cache_is_whole_on_each(capsys):
    """16 tokens of 576 numbers in 61 layers on every one of eight, for 1 token of a request or for 128."""
    block, asked = 16 * 61 * 576 * 2, "--model deepseek-v3 --cache bf16 --tp 8 --dcp 8 --allocator vllm-paged"

    def told(more: str) -> dict:
        assert main(["kv", *asked.split(), *more.split(), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    reserved = [
        told(f"--tokens {tokens}")["results"]["reserved_by_vllm_paged"]["value"] / block
        for tokens in (1, 100, 128, 129)
    ]
    assert reserved == [1, 1, 1, 2]
    fitted = told("--tokens 100 --hardware b200 --weights fp8")
    blocks = fitted["results"]["left_for_the_cache"]["value"] // block
    assert fitted["fits"] == blocks
    assert fitted["longest_context_by_memory"] == 128 * blocks


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("--dcp 3", "--dcp 3 must divide the copies on 8 ranks, of which there are 8"),
        ("--dcp 2 --model qwen3-next-80b-a3b", "has layers with a state, or with compressed tokens"),
        ("--dcp 2 --model gemma-3-4b", "has windowed layers, whose tokens vLLM does not share"),
        ("--dcp 8 --model deepseek-v3.2", "has an indexer that reads every token on every rank"),
        ("--dcp 8 --allocator llama.cpp", "in the system of llama.cpp no ranks share a cache's tokens"),
        ("--dcp 8 --allocator hf-dynamic", "vLLM's do, --allocator vllm-paged"),
        ("--dcp 2 --model llama3-70b", "--dcp 2 must divide the copies on 8 ranks, of which there are 1"),
    ],
)
def test_what_nobody_keeps_twice_is_not_shared(more, told, capsys):
    asked = f"kv --model deepseek-v3 --tokens 8k --cache bf16 --tp 8 {more}"
    assert main(asked.split()) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("fit", "--model llama3-8b --weights q4_k_m --tokens 8k"),
        ("kv", "--model llama3-8b --weights q4_k_m --tokens 8k --cache fp16"),
        (
            "memory",
            "--model gpt2 --recipe autocast --zero 0 --micro-batch 1 --sequence 1k --kernels sdpa --recompute none",
        ),
    ],
)
def test_a_card_that_nobody_listed_is_taken_by_its_memory(command, asked, capsys):
    """The same as the card that reports so much; gigabytes that may be meant either way are asked back."""
    told = {}
    for hardware_named in ("rtx-4090", "24564MiB"):
        assert main([command, *asked.split(), "--hardware", hardware_named, "--json"]) == 0
        told[hardware_named] = json.loads(capsys.readouterr().out)
    for name in ("left_bytes", "fits", "longest_context_by_memory", "largest_micro_batch"):
        assert told["rtx-4090"].get(name) == told["24564MiB"].get(name)
    assert main([command, *asked.split(), "--hardware", "24GB"]) == 2
    assert "give 24GiB, or what nvidia-smi prints, like 24564MiB" in capsys.readouterr().err
    assert main([command, *asked.split(), "--hardware", "0GiB"]) == 2
    assert "--hardware 0GiB: a card's memory must be greater than 0" in capsys.readouterr().err


def test_a_reckoned_memory_is_said_to_be_one(capsys):
    asked = "fit --model llama3-8b --weights q4_k_m --tokens 8k --hardware"
    assert main([*asked.split(), "RTX 4070"]) == 0
    assert "reckoned from another card, as no log of this one was opened: RTX 4090 reports" in capsys.readouterr().out
