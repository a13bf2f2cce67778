"""Published traces: from the requests that Azure and Moonshot AI logged to the tables in facts/asked.

    git clone https://github.com/Azure/AzurePublicDataset
    git clone https://github.com/kvcache-ai/Mooncake
    python -m threeloops.measure.published_traces AzurePublicDataset Mooncake

reads three traces (none of them is part of this book) and writes of each what is said of the whole, and a sample of
its requests.
"""

import csv
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from threeloops.facts import request_traces
from threeloops.units import ms

INTO = Path(request_traces.__file__).with_name("asked")
PROMPT_GROUPS, OF_EACH = 10, 200  # a sample of 2,000
COUNTED_S = 3, 60  # requests are counted in windows of these; Mooncake stamps one every 3 s
SILENCES = 50
AZURE = "Patel et al., Splitwise, 2023, arXiv:2311.18677"
AZURE_HEAD = {"licence": "CC BY 4.0", "stamp_s": 0}
MOONCAKE = "Qin et al., Mooncake, 2024, arXiv:2407.00079"
MOONCAKE_HEAD = {"licence": "Apache-2.0", "stamp_s": 3}
Asked = tuple[float, int, int]  # second, prompt tokens, answer tokens


def sampled(
    lengths: Sequence[tuple[int, int]], *, groups: int = PROMPT_GROUPS, of_each: int = OF_EACH
) -> list[tuple[int, int]]:
    """Requests that stand for all: by prompt cut into equal groups, and from each, in order of their answers, as many
    at even distances. So both lengths keep their quantiles, and the pairs how one depends on the other.

    >>> sampled([(10, 5), (10, 1), (900, 7), (800, 3), (20, 2), (950, 9)], groups=2, of_each=1)
    [(20, 2), (900, 7)]
    """
    found = []
    by_prompt = sorted(lengths)
    for group in range(groups):
        first, last = (len(by_prompt) * edge // groups for edge in (group, group + 1))
        by_answer = sorted(by_prompt[first:last], key=lambda one: (one[1], one[0]))
        found += [by_answer[int((place + 0.5) / of_each * len(by_answer))] for place in range(of_each)]
    return found


def table(asked: Sequence[Asked], **head: Any) -> dict[str, Any]:
    """The file: source, what is said of the whole, and the sample."""
    seconds = np.array(sorted(second for second, _, _ in asked))
    gaps = np.sort(np.diff(seconds))
    prompts, answers = (np.array([one[column] for one in asked]) for column in (1, 2))
    whole = {
        "requests": len(asked),
        "seconds": _said(seconds[-1] - seconds[0]),
        "gap_cv": _said(_cv(gaps)),
        "gap_cv_without_longest": _said(_cv(gaps[:-SILENCES])),
        "counts": [[window, _said(dispersion(seconds, window_s=window))] for window in COUNTED_S],
    }
    for name, lengths in (("prompt", prompts), ("answer", answers)):
        whole[name] = {"mean": _said(lengths.mean())} | {
            f"p{percent}": _said(np.quantile(lengths, percent / 100)) for percent in (50, 90, 99)
        }
    whole["correlation"] = _said(np.corrcoef(prompts, answers)[0, 1])
    sample = sampled([(prompt, answer) for _, prompt, answer in asked])
    return head | whole | {"sample": sample}


def dispersion(seconds: NDArray[np.float64], *, window_s: float) -> float:
    """Variance over mean of the requests in a window: 1 for Poisson arrivals, whatever the window.

    >>> dispersion(np.array([0.0, 0.1, 1.0, 1.1, 2.0, 2.1, 3.0]), window_s=1)  # two in each; the last window is cut off
    0.0
    """
    # a stamp may be a few milliseconds early
    windows = np.floor((seconds - seconds[0]) / window_s + 0.01).astype(int)
    counts = np.bincount(windows)[:-1]
    return float(counts.var() / counts.mean())


def _cv(gaps: NDArray[np.float64]) -> float:
    return float(gaps.std() / gaps.mean())


def _said(number: float) -> float:
    return float(f"{number:.5g}")


def azure(lines: Iterable[str]) -> list[Asked]:
    """Rows of Azure's CSV: a moment to a tenth of a microsecond, and two lengths.

    >>> azure(["TIMESTAMP,ContextTokens,GeneratedTokens", "1970-01-01 00:00:02.5000000,374,44"])
    [(2.5, 374, 44)]
    """
    return [
        (
            datetime.fromisoformat(row["TIMESTAMP"][:26] + "+00:00").timestamp(),
            int(row["ContextTokens"]),
            int(row["GeneratedTokens"]),
        )
        for row in csv.DictReader(lines)
    ]


def mooncake(lines: Iterable[str]) -> list[Asked]:
    """Lines of Mooncake's JSON: milliseconds, and two lengths.

    >>> mooncake(['{"timestamp": 3000, "input_length": 6758, "output_length": 500}'])
    [(3.0, 6758, 500)]
    """
    rows = [json.loads(line) for line in lines]
    return [(row["timestamp"] * ms, row["input_length"], row["output_length"]) for row in rows]


def _read(folder: Path, path: str) -> tuple[str, list[str]]:
    git = ["git", "-C", str(folder)]
    commit, text = (
        subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout
        for words in (["rev-parse", "--short=9", "HEAD"], ["show", f"HEAD:{path}"])
    )
    return commit.strip(), text.splitlines()


def main(azure_folder: Path, mooncake_folder: Path) -> None:
    """Read two clones, write three files."""
    of_azure, of_mooncake = (
        (azure, azure_folder, AZURE_HEAD, AZURE),
        (mooncake, mooncake_folder, MOONCAKE_HEAD, MOONCAKE),
    )
    for key, name, path, (parsed, folder, head, paper) in (
        ("azure-code-2023", "Azure, code, 2023", "data/AzureLLMInferenceTrace_code.csv", of_azure),
        ("azure-conversation-2023", "Azure, conversation, 2023", "data/AzureLLMInferenceTrace_conv.csv", of_azure),
        (
            "mooncake-conversation-2024",
            "Mooncake, conversation, 2024",
            "FAST25-release/traces/conversation_trace.jsonl",
            of_mooncake,
        ),
    ):
        commit, lines = _read(folder, path)
        where = "Azure/AzurePublicDataset" if parsed is azure else "kvcache-ai/Mooncake"
        made = table(parsed(lines), name=name, source=f"{where}, {path} at commit {commit}; {paper}", **head)
        sample = json.dumps(made.pop("sample"), separators=(",", ":"))
        text = json.dumps(made, indent=1)[:-2] + f',\n "sample": {sample}\n}}\n'
        (INTO / f"{key}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
