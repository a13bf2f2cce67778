"""How long `threeloops trace` takes for a large file, and its peak memory: 300 MB within a minute of one core, 1 GB
within 1 GB of memory. Run it as a script with the sizes in MB (300 without any; `--smoke`: 3); it writes the files into
a temporary folder. Each size is written twice: a device's kernels with what asks for them, and a long pause of a CPU
full of Python's functions, as with_stack=True records it.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from threeloops.units import MB, fmt_bytes, fmt_seconds

SHARED = {"ph": "X", "pid": 4321, "tid": 4321}
A_STEP = 1000  # launches


def launches() -> Iterator[dict[str, Any]]:
    """An operator, its launch and its kernel, every 20 µs."""
    number = 0
    while True:
        at = 20.0 * number
        link = {"External id": number, "Sequence number": number, "Fwd thread id": 0, "Ev Idx": number}
        yield {**SHARED, "cat": "cpu_op", "name": "aten::mm", "ts": at, "dur": 9.0, "args": link}
        asked = {"External id": number, "cbid": 211, "correlation": number}
        yield {**SHARED, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 2, "dur": 5.0, "args": asked}
        on = {"External id": number, "device": 0, "context": 1, "stream": 7, "correlation": number, "grid": [256, 1, 1]}
        name = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT" if number % 3 else "void at::native::vectorized_elementwise"
        yield {**SHARED, "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 6, "dur": 15.0, "args": on}
        number += 1
        if number % A_STEP == 0:
            begun = 20.0 * (number - A_STEP)
            step = {"cat": "user_annotation", "name": f"ProfilerStep#{number // A_STEP}", "ts": begun}
            yield {**SHARED, **step, "dur": 20.0 * A_STEP}


def functions() -> Iterator[dict[str, Any]]:
    """One operator, and then functions of 2 µs, four at a time in one of ours."""
    yield {**SHARED, "cat": "cpu_op", "name": "aten::mm", "ts": 0.0, "dur": 900.0}
    number = 0
    while True:
        at, told = 1000.0 + 10.0 * number, {"Python id": number, "Python parent id": number - 1, "Ev Idx": number}
        own = {"name": "train.py(31): save_state", "ts": at, "dur": 9.5}
        yield {**SHARED, "cat": "python_function", **own, "args": told}
        for place in range(4):
            inside = {"name": f"json/encoder.py({290 + place}): _iterencode", "ts": at + 2 * place + 0.5, "dur": 1.5}
            yield {**SHARED, "cat": "python_function", **inside, "args": told}
        number += 1


def write(path: Path, events: Iterator[dict[str, Any]], size: int) -> None:
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [\n')
        while file.tell() < size:
            file.writelines(f"{json.dumps(next(events), indent=2)},\n" for _ in range(2000))
        last = {**SHARED, "cat": "cpu_op", "name": "aten::mm", "ts": next(events)["ts"] + 100, "dur": 1.0}
        file.write(f"{json.dumps(last)}\n]}}\n")


def main(words: list[str]) -> None:
    sizes = [3] if "--smoke" in words else [int(word) for word in words] or [300]
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            for what, events in (("launches and kernels", launches()), ("Python's functions", functions())):
                write(path := Path(folder) / "run.json", events, size * MB)
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                subprocess.run([sys.executable, __file__, "--read", str(path)], check=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                peak = path.with_suffix(".peak").read_text()
                print(f"{size} MB of {what}: {fmt_seconds(took)} of one core, at most {peak} of memory", flush=True)


def read(path: str) -> None:
    """In a process of its own: what `threeloops trace` does, and the peak of its memory beside the file."""
    from threeloops.cli import main as command

    assert command(["trace", path, "--html", f"{path}.html"]) == 0
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    Path(path).with_suffix(".peak").write_text(fmt_bytes(peak, base=10))


if __name__ == "__main__":
    if "--read" in sys.argv:
        read(sys.argv[-1])
    else:
        main(sys.argv[1:])
