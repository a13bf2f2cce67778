"""Published exchanges: from the engines' own all-reduces that NVIDIA's AIConfigurator timed to facts/timed_exchanges.

    git clone https://github.com/ai-dynamo/aiconfigurator
    pip install pyarrow
    python -m threeloops.measure.published_exchanges aiconfigurator

reads the newest release of each engine on each device (none of those files is part of this book) and writes one table.
"""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from threeloops.facts import engine_exchanges
from threeloops.measure.published_kernels import DEVICES
from threeloops.measure.published_points import DIGITS, ENGINES
from threeloops.measure.published_rows import SYSTEMS
from threeloops.units import ms

INTO = Path(engine_exchanges.__file__).with_name("timed_exchanges")
NAME = "custom_allreduce_perf.parquet"
ELEMENT_BYTES = 2  # message_size counts elements, all of them bf16
TIMED = "each engine's all-reduce of bf16 in a CUDA graph, mean over replays; sizes are those of one GPU's tensor"


def curves(rows: Iterable[Mapping[str, Any]]) -> dict[int, list[tuple[int, float]]]:
    """(bytes, seconds) by ranks, rising; of what was timed both ways, that in a graph.

    >>> rows = [(4, 1024, 0.009, "nccl_eager"), (4, 1024, 0.006, None), (4, 512, 0.005, None)]
    >>> curves(dict(zip(("num_gpus", "message_size", "latency", "backend"), row, strict=True)) for row in rows)
    {4: [(1024, 5e-06), (2048, 6e-06)]}
    """
    found: dict[int, dict[int, float]] = defaultdict(dict)
    for row in rows:
        if "eager" not in (row.get("backend") or ""):
            seconds = float(f"{row['latency'] * ms:.{DIGITS}g}")
            found[row["num_gpus"]][row["message_size"] * ELEMENT_BYTES] = seconds
    return {ranks: sorted(curve.items()) for ranks, curve in sorted(found.items())}


def table(read: Iterable[tuple[str, str, str, dict[int, list[tuple[int, float]]]]], *, commit: str) -> dict[str, Any]:
    """The file: part, engine, release and curves of each.

    Raises:   ValueError where one curve has other sizes than the rest
    """
    sizes: list[int] = []
    rows = []
    for part, engine, version, curve_of in read:
        for ranks, curve in curve_of.items():
            sizes = sizes or [size for size, _ in curve]
            if [size for size, _ in curve] != sizes:
                raise ValueError(f"{engine} {version} on {part}, {ranks} ranks: timed at other sizes than the others")
            named = {"part": part, "engine": engine, "version": version, "ranks": ranks}
            rows.append(named | {"seconds": [seconds for _, seconds in curve]})
    source = f"NVIDIA, AIConfigurator, {SYSTEMS}/*/comm at commit {commit}"
    head = {"source": source, "licence": "Apache-2.0", "timed": TIMED}
    return head | {"sizes_bytes": sizes, "rows": rows}


def _files(folder: Path) -> Iterator[tuple[str, str, str, dict[int, list[tuple[int, float]]]]]:
    from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

    for device in DEVICES:
        for short, engine in ENGINES.items():
            releases = sorted(
                (folder / SYSTEMS / device.folder / "comm" / short).glob(f"*/{NAME}"), key=lambda file: _release(file)
            )
            for file in releases[-1:]:
                yield device.part, engine, file.parent.name, curves(parquet.read_table(file).to_pylist())


def _release(file: Path) -> list[int]:
    numbers = "".join(letter if letter.isdigit() else " " for letter in file.parent.name)
    return [int(number) for number in numbers.split()]


def main(folder: Path) -> None:
    """Read a clone, write the file, a line for each curve."""
    commit = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    made = table(_files(folder), commit=commit)
    rows = made.pop("rows")
    text = json.dumps(made)[:-1] + ', "rows": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]}\n"
    (INTO / "aiconfigurator.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
