"""Published points: from the served points that NVIDIA's AIConfigurator collected to facts/served.

    git clone https://github.com/ai-dynamo/aiconfigurator
    python -m threeloops.measure.published_points aiconfigurator

reads one file of that folder (it is not part of this book) and writes the rows of models whose prompts and answers
one group of GPUs computes and whose kernels were timed, a line each.
"""

import csv
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from threeloops.facts import served_points
from threeloops.units import ms

SAMPLE = Path("aic-core/src/aiconfigurator_core/systems/silicon_sample.csv")
INTO = Path(served_points.__file__).with_name("served")
# Llama 3.1 has the shapes of Llama 3: only its positions are scaled.
MODELS = {
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3-8b",
    "meta-llama/Llama-3.1-70B": "llama-3-70b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "nvidia/Qwen3-32B-NVFP4": "qwen3-32b",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2.5",
    "Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
}
PARTS = {
    "h100_sxm": "h100-sxm5",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-hgx",
    "b300_sxm": "b300-hgx",
    "gb200": "gb200",
}
ONE_NODE = 8  # GPUs
# Left out: most of these are quicker than the caches of so many requests can be read, and their first tokens come
# after up to eight minutes. The engine seats fewer at a time; how many is not said.
UNSEATED = ("openai/gpt-oss-120b", "h100_sxm", "vllm", "512")
OWN_FORMATS = {"gpt-oss-120b": "mxfp4"}  # of experts as published; rows say "nvfp4" for want of a word
FORMATS = {"": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4"}  # none named: the weights' own
# Of one model's runs the scripts are public: keys and values in 8 bits, no prompt kept, lengths drawn from 0.8 to 1 of
# what is stated, ten times as many requests as at a time. Of all others no setting is: the model's own 16 bits, and the
# stated lengths.
SETTINGS = {"llama-3-70b": ("fp8", 0.8, 10)}
PLAIN = ("bf16", 1.0, None)
SETTINGS_SAID = (
    "Llama 3.1 70B: SemiAnalysis, InferenceX, benchmarks/70b_*.sh and .github/workflows/full-sweep-tmpl.yml at commit"
    " 002bf8653; others: not said, the engines' defaults taken"
)
EXPERTS = ("minimax-m2.5", "qwen3-235b-a22b", "gpt-oss-120b")  # models whose experts a row says how to cut
ENGINES = {"trtllm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}
COLUMNS = ("tp", "ep", "prompt", "answer", "requests", "ttft_s", "tpot_s")
DIGITS = 4
TIMED = (
    "at a fixed number of requests at a time; single runs by several people, some of unfinished releases; whether means"
    " or medians over requests, and which load generator each used, is not said"
)


def wanted(row: Mapping[str, str]) -> bool:
    """Whether a row is one model on one group of GPUs, all of which share its attention, its layout named in full."""
    if row["mode"] != "agg" or row["model_path"] not in MODELS or row["tp_size"] == "" or row["moe_ep_size"] == "0":
        return False
    if MODELS[row["model_path"]] not in EXPERTS:
        return True
    if tuple(row[name] for name in ("model_path", "system", "backend", "batch_size")) == UNSEATED:
        return False
    if MODELS[row["model_path"]] in OWN_FORMATS and row["gemm_quant_mode"] != "nvfp4":
        return False  # somebody's own quantisation
    cut = int(row["moe_tp_size"]) * int(row["moe_ep_size"])
    return row["attention_dp_size"] in ("", "1") and cut == int(row["tp_size"]) <= ONE_NODE


def grouped(rows: Iterable[Mapping[str, str]]) -> list[dict[str, object]]:
    """The rows, by what they share; each once."""
    groups: dict[tuple[str | float | None, ...], set[tuple[float, ...]]] = defaultdict(set)
    for row in filter(wanted, rows):
        shared = (
            MODELS[row["model_path"]],
            PARTS[row["system"]],
            ENGINES[row["backend"]],
            row["backend_version"],
            OWN_FORMATS.get(MODELS[row["model_path"]], FORMATS[row["gemm_quant_mode"]]),
            *SETTINGS.get(MODELS[row["model_path"]], PLAIN),
        )
        ep = int(row["moe_ep_size"]) if MODELS[row["model_path"]] in EXPERTS else 1
        sizes = (int(row["tp_size"]), ep, *(int(row[name]) for name in ("isl", "osl", "batch_size")))
        took_s = (float(f"{float(row[f'silicon_{name}_ms']) * ms:.{DIGITS}g}") for name in ("ttft", "tpot"))
        groups[shared].add((*sizes, *took_s))
    names = ("model", "part", "engine", "version", "format", "cache", "shortest", "rounds")
    return [
        dict(zip(names, shared, strict=True)) | {"rows": [list(row) for row in sorted(rows_of)]}
        for shared, rows_of in sorted(groups.items(), key=lambda item: item[0][:5])
    ]


def text(groups: list[dict[str, object]], *, commit: str) -> str:
    """The file, a line for each row."""
    head = {
        "source": f"NVIDIA, AIConfigurator, {SAMPLE} at commit {commit}",
        "licence": "Apache-2.0",
        "timed": TIMED,
        "settings": SETTINGS_SAID,
        "columns": COLUMNS,
    }
    lines = json.dumps(head)[:-1] + ', "groups": [\n'
    made = []
    for group in groups:
        shared = json.dumps({name: value for name, value in group.items() if name != "rows"})[:-1]
        rows: list[list[float]] = group["rows"]  # type: ignore[assignment]
        made.append(f'{shared}, "rows": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]}")
    return lines + ",\n".join(made) + "\n]}\n"


def main(folder: Path) -> None:
    """Read a clone, write the file."""
    commit = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    with (folder / SAMPLE).open(newline="", encoding="utf-8") as file:
        groups = grouped(csv.DictReader(file))
    (INTO / "aiconfigurator.json").write_text(text(groups, commit=commit), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
