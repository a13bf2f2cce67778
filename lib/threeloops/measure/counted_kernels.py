"""Counted kernels: our own kernels under NVIDIA's profiler (Nsight Compute, `ncu`), each launched once, and what its
counters said.

>>> table = [["ID", "a.sum", "b.sum"], ["", "inst", "%"], ["0", "1,024", "2"]]
>>> counted_rows(table, {"issued": "a.sum", "share": "b.sum"})
[{'issued': 1024, 'share': 2}]
"""

import csv
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from threeloops.facts.kernel_counts import COUNTERS
from threeloops.facts.recorded import Stamp
from threeloops.facts.recorded_cases import Case
from threeloops.measure import recording
from threeloops.measure.recorded_kernels import call

NAMES = "regex:^(strided|banks|paths|inflight|naive|tiled|registers)$"
WAYS = (1, 2, 4, 8, 16, 32)


def cases() -> list[Case]:
    """What is counted: strides, bank conflicts, warps that part, loads under way, and the rungs of a product, large and
    so small that the chapter's machine runs the same launch.
    """
    found: list[tuple[str, dict[str, int]]] = [
        *(("strided", {"reads": 2**24, "stride": stride}) for stride in WAYS),
        *(("banks", {"requests": 2**14, "stride": stride}) for stride in (*WAYS, 33)),
        *(("paths", {"steps": 2**12, "paths": ways}) for ways in WAYS),
        *(
            ("inflight", {"bytes": 2**28, "warps": warps, "loads": loads})
            for warps, loads in ((1, 1), (8, 1), (64, 1), (64, 4))
        ),
        *(
            (f"ladder_{rung}", dict.fromkeys("mnk", edge))
            for edge in (128, 1024)
            for rung in ("naive", "tiled", "registers")
        ),
    ]
    return [Case(kind=kind, dtype="fp32", sizes=sizes) for kind, sizes in found]


def launch_all() -> None:
    """Every kernel once, in order; the profiler looks on."""
    for case in cases():
        run = call(case, device="cuda")
        torch.cuda.synchronize()
        run()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


SOURCE = f"from {__name__} import {launch_all.__name__}; {launch_all.__name__}()"


def counted() -> tuple[Stamp, dict[str, dict[str, float]]]:
    """The counts of every case on this machine's GPU, with its stamp.

    Raises:   ValueError where there is no GPU, no profiler, or where the profiler may not read the counters
    """
    if not torch.cuda.is_available():
        raise ValueError("there is no GPU here, and a CPU has no such counters; count on a machine with one")
    if not shutil.which("ncu"):
        raise ValueError("ncu is not on the path; it comes with the CUDA toolkit, as Nsight Compute")
    names = {name: metric for name, (metric, _) in COUNTERS.items()}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = ["ncu", "--target-processes", "all", "--kernel-name", NAMES, "--csv", "--page", "raw"]
        command += ["--print-units", "base", "--metrics", ",".join(names.values()), "--log-file", str(log)]
        done = subprocess.run([*command, sys.executable, "-c", SOURCE], capture_output=True, text=True, check=False)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    rows = list(csv.reader(line for line in lines if line.startswith('"')))
    if len(rows) != len(cases()) + 2:
        said = next((line for line in [*lines, *done.stderr.splitlines()] if "ERR" in line), "it gave no reason")
        raise ValueError(f"ncu counted {max(0, len(rows) - 2)} kernels of {len(cases())}: {said}")
    said = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"Version (\S+)", said)
    stamp = recording.stamp_of(device="cuda")
    stamp = replace(stamp, software=f"{stamp.software}, ncu {version[1] if version else 'of a version that it hides'}")
    found = counted_rows(rows, names)
    return stamp, {case.name: counts for case, counts in zip(cases(), found, strict=True)}


def counted_rows(table: Iterable[Sequence[str]], names: Mapping[str, str]) -> list[dict[str, float]]:
    """Our counters from the profiler's table: names above, units below them, then a row for each kernel."""
    head, _, *rows = table
    return [{ours: _number(row[head.index(theirs)]) for ours, theirs in names.items()} for row in rows]


def _number(text: str) -> float:
    number = float(text.replace(",", ""))
    return int(number) if number.is_integer() else number
