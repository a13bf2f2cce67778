"""Published pools: from the served points that NVIDIA's AIConfigurator collected to facts/served_pools: runs in which
some GPUs read prompts and others decode.

    git clone https://github.com/ai-dynamo/aiconfigurator
    python -m threeloops.measure.published_pools aiconfigurator

reads one file of that folder (it is not part of this book) and writes the rows that say how many servers each pool has
and how many requests there were at a time.
"""

import csv
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from threeloops.facts import served_pools
from threeloops.measure.published_points import DIGITS, ENGINES, FORMATS, MODELS, PARTS, SAMPLE, text
from threeloops.units import ms

INTO = Path(served_pools.__file__).with_name("served_pools") / "aiconfigurator.json"
OF_A_POOL = {"workers": "num_workers", "tp": "tp_size", "dp": "attention_dp_size", "ep": "moe_ep_size"}
COLUMNS = ("prefill", "decode", "prompt", "answer", "requests", "ttft_s", "tpot_s")
GROUPED = ("model", "part", "engine", "version", "format", "cache")
ALL_PARTS = PARTS | {"gb300": "gb300"}
AT_A_TIME = re.compile(r"silicon_concurrency=(\d+);")
CACHE = "bf16"  # no row says another
# Rows and the publisher's recipes write vLLM's layout differently, as groups of four or as four groups.
UNCLEAR = "vllm"
# The only recipe of these loads drafts several tokens a step: model, part, engine, format, prompt, answer, requests.
DRAFTED = tuple(("deepseek-v3", "gb200", "TensorRT-LLM", "nvfp4", 1024, 1024, requests) for requests in (4, 8))
SETTINGS = (
    "keys and values in 16 bits, all of the stated lengths: no row says another; without drafts, as far as the recipes"
    " of SemiAnalysis, InferenceX, configs/*.yaml at commit 843c6254f tell"
)


def wanted(row: Mapping[str, str]) -> bool:
    """Whether a row is a run of two pools that says how many servers and requests there were."""
    both = row["prefill_num_workers"] and row["decode_num_workers"] and AT_A_TIME.search(row["silicon_data_source"])
    known = row["model_path"] in MODELS and row["gemm_quant_mode"] in FORMATS and row["backend"] != UNCLEAR
    return row["mode"] == "disagg" and bool(both) and known and (*_shared(row)[:3], *_load(row)) not in DRAFTED


def _shared(row: Mapping[str, str]) -> tuple[str, ...]:
    model, part, engine = MODELS[row["model_path"]], ALL_PARTS[row["system"]], ENGINES[row["backend"]]
    return model, part, engine, row["backend_version"], FORMATS[row["gemm_quant_mode"]], CACHE


def _load(row: Mapping[str, str]) -> tuple[str, int, int, int]:
    at_a_time = AT_A_TIME.search(row["silicon_data_source"])
    assert at_a_time is not None
    return FORMATS[row["gemm_quant_mode"]], int(row["isl"]), int(row["osl"]), int(at_a_time[1])


def grouped(rows: Iterable[Mapping[str, str]]) -> list[dict[str, object]]:
    """The rows, by what they share; each once."""
    groups: dict[tuple[str, ...], set[tuple[object, ...]]] = defaultdict(set)
    for row in filter(wanted, rows):
        pools = (tuple(int(row[f"{pool}_{name}"]) for name in OF_A_POOL.values()) for pool in ("prefill", "decode"))
        took_s = (float(f"{float(row[f'silicon_{name}_ms']) * ms:.{DIGITS}g}") for name in ("ttft", "tpot"))
        groups[_shared(row)].add((*pools, *_load(row)[1:], *took_s))
    return [dict(zip(GROUPED, shared, strict=True)) | {"rows": sorted(groups[shared])} for shared in sorted(groups)]


def file_text(groups: list[dict[str, object]], *, commit: str) -> str:
    """The file, a line for each row."""
    return text(groups, commit=commit, columns=COLUMNS, settings=SETTINGS, pool=list(OF_A_POOL))


def main(folder: Path) -> None:
    """Read a clone, write the file."""
    commit = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    with (folder / SAMPLE).open(newline="", encoding="utf-8") as file:
        found = grouped(csv.DictReader(file))
    INTO.parent.mkdir(exist_ok=True)
    INTO.write_text(file_text(found, commit=commit), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
