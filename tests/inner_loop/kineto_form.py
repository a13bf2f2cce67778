"""A run on one GPU, written down by hand in the form of torch's profiler: a thread that asks, streams that run.

The form is that of files which torch wrote: categories, "External id" and "correlation", streams as threads of the
device, microseconds.
"""

import gzip
import json
from pathlib import Path
from typing import Any

PROGRAM, DEVICE, STREAM, NETWORK = 4321, 0, 7, 24


class Run:
    """What happens, in the order in which the program asks for it; microseconds."""

    def __init__(self, *, rank: int = 0, old_links: bool = False) -> None:
        self.events: list[dict[str, Any]] = []
        self.rank, self.at, self.old_links = rank, 1000.0, old_links
        self.free = {STREAM: 0.0, NETWORK: 0.0}  # from when on a stream has nothing to do
        self._number, self._begun = 100, 0.0

    def _add(self, cat: str, name: str, start: float, dur: float, *, tid: int = PROGRAM, **args: Any) -> None:
        on = DEVICE if cat in ("kernel", "gpu_memcpy") else PROGRAM
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": on, "tid": tid, "ts": start, "dur": dur, "args": args}
        )

    def launch(
        self,
        kernel: str,
        us: float,
        *,
        ask: float = 5.0,
        stream: int = STREAM,
        after: float = 0.0,
        op: str = "aten::mul",
        dims: Any = None,
        type: str = "c10::BFloat16",
        cat: str = "kernel",
    ) -> float:
        """An operator that asks for one kernel, and the kernel; when it ends."""
        self._number += 1
        asked, correlation = self._number, self._number + 50_000
        shapes = {"Input Dims": dims, "Input type": [type] * len(dims)} if dims else {}
        self._add("cpu_op", op, self.at, ask, **{"External id": asked}, **shapes)
        call = "cudaLaunchKernel" if cat == "kernel" else "cudaMemcpyAsync"
        self._add("cuda_runtime", call, self.at + 1, ask - 2, correlation=correlation)
        start = max(self.at + ask - 1, self.free[stream], after)
        link = correlation if self.old_links else asked
        told = {"External id": link, "correlation": correlation, "device": DEVICE, "stream": stream}
        self._add(cat, kernel, start, us, tid=stream, **told)
        self.at += ask
        self.free[stream] = start + us
        return start + us

    def exchange(self, us: float, *, after: float = 0.0) -> float:
        """An all-reduce on a stream of its own."""
        kernel = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        return self.launch(kernel, us, stream=NETWORK, op="c10d::allreduce_", after=after)

    def wait(self, call: str = "cudaStreamSynchronize", back: float = 0.0) -> None:
        """The host until the device is done, and until its code goes on."""
        done = max(self.at, *self.free.values()) + back
        self._add("cuda_runtime", call, self.at, done - self.at)
        self.at = done

    def host(self, name: str, us: float, *, cat: str = "cpu_op") -> None:
        """The host does something that is recorded."""
        self._add(cat, name, self.at, us)
        self.at += us

    def step(self, number: int) -> None:
        """The step that ends here."""
        begun = self._begun or min(event["ts"] for event in self.events)
        self._add("user_annotation", f"ProfilerStep#{number}", begun, self.at - begun)
        self._begun = self.at

    def write(self, path: Path) -> Path:
        """As torch writes it, packed if the name says so."""
        head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]}
        body = head | {"distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": 2}}
        text = json.dumps(body | {"traceEvents": self.events}).encode()
        path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)
        return path
