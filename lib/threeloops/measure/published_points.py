"""Published points: from the served points that NVIDIA's AIConfigurator collected to facts/served.

    git clone https://github.com/ai-dynamo/aiconfigurator
    python -m threeloops.measure.published_points aiconfigurator

reads one file of that folder (it is not part of this book) and writes the rows of models whose prompts and answers
one group of GPUs computes and whose kernels were timed, a line each; in a second file those in which every GPU has
requests of its own.
"""

import csv
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from threeloops.facts import served_points
from threeloops.units import ms

SAMPLE = Path("aic-core/src/aiconfigurator_core/systems/silicon_sample.csv")
INTO = Path(served_points.__file__).with_name("served")
# Llama 3.1 has the shapes of Llama 3: only its positions are scaled. DeepSeek-R1 has those of V3, and the text model of
# Kimi K2.5 those of K2.
MODELS = {
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3-8b",
    "meta-llama/Llama-3.1-70B": "llama-3-70b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "nvidia/Qwen3-32B-NVFP4": "qwen3-32b",
    "MiniMaxAI/MiniMax-M2.5": "minimax-m2.5",
    "Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "deepseek-ai/DeepSeek-R1": "deepseek-v3",
    "moonshotai/Kimi-K2.5": "kimi-k2",
}
PARTS = {
    "h100_sxm": "h100-sxm5",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-hgx",
    "b300_sxm": "b300-hgx",
    "gb200": "gb200",
}
ONE_NODE = 8  # GPUs
TRAY = {"gb200": 4}  # GPUs of a node there: wider exchanges of an engine were not timed
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
EXPERTS = (
    "minimax-m2.5",
    "qwen3-235b-a22b",
    "gpt-oss-120b",
    "deepseek-v3",
    "kimi-k2",
)  # models whose experts a row says how to cut
ENGINES = {"trtllm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}
# DeepSeek's runs by releases that also ran recipes in which drafts make several tokens of a step, and whose rows do not
# say which: of two times for one load the longer is the plain one, and single ones are left out.
# Source: SemiAnalysis, InferenceX, perf-changelog.yaml at commit 843c6254f (keys that end in "-mtp")
DRAFTED = {
    ("TensorRT-LLM", "1.1.0rc2.post2", "h200-sxm", "fp8"),
    ("TensorRT-LLM", "1.1.0rc2.post2", "b200-hgx", "nvfp4"),
    ("TensorRT-LLM", "1.2.0rc6.post3", "b200-hgx", "fp8"),
    ("TensorRT-LLM", "1.2.0rc6.post3", "b200-hgx", "nvfp4"),
    ("SGLang", "0.5.9", "b200-hgx", "fp8"),
    ("SGLang", "0.5.10.post1", "b300-hgx", "fp8"),
}
APART = "attention_apart.json"  # the file of runs in which every GPU has requests of its own
COLUMNS = ("tp", "ep", "prompt", "answer", "requests", "ttft_s", "tpot_s")
COLUMNS_APART = (*COLUMNS[:-2], "dp", *COLUMNS[-2:])
DIGITS = 4
TIMED = (
    "at a fixed number of requests at a time; single runs by several people, some of unfinished releases; whether means"
    " or medians over requests, and which load generator each used, is not said"
)


def wanted(row: Mapping[str, str]) -> bool:
    """Whether a row is one model on one group of GPUs, all of which share its attention, its layout named in full."""
    if row["mode"] != "agg" or row["model_path"] not in MODELS or row["tp_size"] == "" or row["moe_ep_size"] == "0":
        return False
    if row["gemm_quant_mode"] not in FORMATS:
        return False  # experts in integers, whose kernels are in no table
    if MODELS[row["model_path"]] not in EXPERTS:
        return True
    if tuple(row[name] for name in ("model_path", "system", "backend", "batch_size")) == UNSEATED:
        return False
    if MODELS[row["model_path"]] in OWN_FORMATS and row["gemm_quant_mode"] != "nvfp4":
        return False  # somebody's own quantisation
    cut = int(row["moe_tp_size"]) * int(row["moe_ep_size"])
    one_node = TRAY.get(row["system"], ONE_NODE)
    return row["attention_dp_size"] in ("", "1") and cut == int(row["tp_size"]) <= one_node


def apart(row: Mapping[str, str]) -> dict[str, str]:
    """The row of a run in which every GPU has requests of its own and all share the experts, as `wanted` reads it; {}
    of any other. vLLM's are noted as if tp GPUs were tp groups of tp; its scripts run tp groups of one. batch_size is
    that of one GPU: times dp it is the row's silicon_concurrency.

    Source:   SemiAnalysis, InferenceX, benchmarks, "--tensor-parallel-size=1 --data-parallel-size=$TP" where
              DP_ATTENTION is set, 2026
    """
    tp, dp, moe_tp, ep = (row[name] or "0" for name in ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size"))
    if row["backend"] == "vllm" and tp == dp and moe_tp == "1" and int(ep) == int(tp) ** 2:
        tp, ep = "1", dp
    if tp != "1" or int(dp) < 2 or int(moe_tp) * int(ep) != int(dp):
        return {}
    of_all = str(int(row["batch_size"]) * int(dp))
    return {**row, "attention_dp_size": "1", "tp_size": dp, "moe_ep_size": ep, "dp": dp, "batch_size": of_all}


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
        tp = 1 if "dp" in row else int(row["tp_size"])
        sizes = (tp, ep, *(int(row[name]) for name in ("isl", "osl", "batch_size")))
        took_s = (float(f"{float(row[f'silicon_{name}_ms']) * ms:.{DIGITS}g}") for name in ("ttft", "tpot"))
        groups[shared].add((*sizes, *([int(row["dp"])] if "dp" in row else []), *took_s))
    names = ("model", "part", "engine", "version", "format", "cache", "shortest", "rounds")
    plain_groups = {shared: plain(rows_of, drafted=_drafted(shared)) for shared, rows_of in groups.items()}
    return [
        dict(zip(names, shared, strict=True)) | {"rows": [list(row) for row in sorted(rows_of)]}
        for shared, rows_of in sorted(plain_groups.items(), key=lambda item: item[0][:5])
        if rows_of
    ]


def _drafted(shared: tuple[str | float | None, ...]) -> bool:
    model, part, engine, version, format = shared[:5]
    return model == "deepseek-v3" and (engine, version, part, format) in DRAFTED


def plain(rows: set[tuple[float, ...]], *, drafted: bool) -> set[tuple[float, ...]]:
    """The rows without drafts: where some have them, of each load that was timed twice the slower one.

    >>> load = (8, 1, 1024, 1024, 4)
    >>> plain({(*load, 0.2, 0.0067), (*load, 0.2, 0.0088), (8, 1, 8192, 1024, 4, 0.5, 0.0068)}, drafted=True)
    {(8, 1, 1024, 1024, 4, 0.2, 0.0088)}
    """
    if not drafted:
        return rows
    loads: dict[tuple[float, ...], list[tuple[float, ...]]] = defaultdict(list)
    for row in rows:
        loads[row[:-2]].append(row)
    return {max(twice, key=lambda row: row[-1]) for twice in loads.values() if len(twice) > 1}


def text(
    groups: list[dict[str, object]],
    *,
    commit: str,
    columns: Sequence[str] = COLUMNS,
    settings: str = SETTINGS_SAID,
    **more: object,
) -> str:
    """The file, a line for each row; with more in its head."""
    head = {
        "source": f"NVIDIA, AIConfigurator, {SAMPLE} at commit {commit}",
        "licence": "Apache-2.0",
        "timed": TIMED,
        "settings": settings,
        "columns": columns,
        **more,
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
        rows = list(csv.DictReader(file))
    (INTO / "aiconfigurator.json").write_text(text(grouped(rows), commit=commit), encoding="utf-8")
    of_apart = grouped(filter(None, map(apart, rows)))
    (INTO / APART).write_text(text(of_apart, commit=commit, columns=COLUMNS_APART), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
