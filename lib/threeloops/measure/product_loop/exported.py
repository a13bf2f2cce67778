"""Exported: a torch module as an ONNX graph, run by ONNX Runtime with its graph optimiser on or off, node by node.

The optimiser does what every inference engine does first: it recognises patterns and puts one kernel in their place.
ONNX Runtime's own profile tells which nodes ran, what each read and wrote, and how long it took.

>>> import torch
>>> graph = exported(SpelledOut(width=16), torch.ones(2, 16))
>>> found = Engine(graph, fuse=True).profile(torch.ones(2, 16))
>>> [node.op for node in found]
['LayerNormalization', 'Gelu']
"""

import contextlib
import json
import logging
import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from torch import Tensor, nn

from threeloops.units import us

RUNS = 7  # of a node's seconds the median is told
ERRORS_ONLY = 3  # ONNX Runtime's own scale: 2 says every warning, 3 only errors


class SpelledOut(nn.Module):
    """A layer norm and a GELU in plain operations: what stands between two products, as one might write it."""

    def __init__(self, *, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        normed = centred / torch.sqrt(variance + 1e-5) * self.weight + self.bias
        return 0.5 * normed * (1 + torch.erf(normed / 2**0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of a graph as it ran."""

    op: str
    read_bytes: int  # activations and parameters
    written_bytes: int
    seconds: float

    @property
    def moved_bytes(self) -> int:
        return self.read_bytes + self.written_bytes


def exported(module: nn.Module, example: Tensor) -> bytes:
    """The module as an ONNX file, operation by operation, with any number of rows.

    Assumes:  torch.export can trace the module; the exporter's own clean-up is left out, so that the graph shows what
              was written
    Source:   PyTorch 2.13 documentation, torch.onnx
    """
    rows = {0: torch.export.Dim("rows")}
    with quiet():
        program = torch.onnx.export(
            module.eval(), (example,), dynamo=True, optimize=False, verbose=False, dynamic_shapes=(rows,)
        )
    assert program is not None
    return bytes(program.model_proto.SerializeToString())


class Engine:
    """An ONNX graph in ONNX Runtime, on one thread of the processor."""

    def __init__(self, graph: bytes, *, fuse: bool) -> None:
        self._graph, self._options = graph, onnxruntime.SessionOptions()
        levels = onnxruntime.GraphOptimizationLevel
        self._options.graph_optimization_level = levels.ORT_ENABLE_ALL if fuse else levels.ORT_DISABLE_ALL
        self._options.intra_op_num_threads = 1
        self._options.log_severity_level = ERRORS_ONLY
        self._session = self._started(self._options)
        self.input = self._session.get_inputs()[0].name

    def _started(self, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(self._graph, options, providers=["CPUExecutionProvider"])

    def __call__(self, x: Tensor) -> Tensor:
        """The graph's first output."""
        return self.outputs(x)[0]

    def outputs(self, x: Tensor) -> list[Tensor]:
        """All outputs, in the module's order."""
        return [torch.from_numpy(one) for one in self._session.run(None, {self.input: x.numpy()})]

    def profile(self, x: Tensor) -> list[Node]:
        """Every node that moved a whole tensor, as ONNX Runtime's profiler saw it: the median of a few runs.

        Assumes:  nodes that move less than half of the input are constants, shapes and sums per row: left out
        """
        with tempfile.TemporaryDirectory() as folder:
            options = self._options
            options.enable_profiling, options.profile_file_prefix = True, str(Path(folder, "profile"))
            session = self._started(options)
            options.enable_profiling = False
            for _ in range(RUNS):  # the first ones allocate
                session.run(None, {self.input: x.numpy()})
            events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        ran = [event for event in events if event["name"].endswith("_kernel_time")]
        nodes = [_node(ran[place :: len(ran) // RUNS]) for place in range(len(ran) // RUNS)]
        large = x.numel() * x.element_size() / 2
        return [node for node in nodes if node.moved_bytes > large]


def _node(runs: Sequence[dict[str, Any]]) -> Node:
    """One node from its events, one a run."""
    told = runs[0]["args"]
    return Node(
        op=told["op_name"],
        read_bytes=int(told["activation_size"]) + int(told["parameter_size"]),
        written_bytes=int(told["output_size"]),
        seconds=statistics.median(float(run["dur"]) for run in runs) * us,
    )


def quickest(ways: dict[str, Callable[[], object]], *, seconds: Callable[[Callable[[], object]], float]) -> str:
    """The name of the way that takes least: an auto-tuner in one line, with the stop-watch as an argument.

    >>> quickest({"slow": lambda: 3, "fast": lambda: 1}, seconds=lambda way: float(way()))
    'fast'
    """
    return min(ways, key=lambda name: seconds(ways[name]))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what the exporter says about packages that are not installed."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
