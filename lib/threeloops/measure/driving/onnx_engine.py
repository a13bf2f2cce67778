"""ONNX engine: a piece of the driving network exported, and the same piece with its convolutions in INT8.

Post-training quantisation with calibration: the fp32 graph is run on a few scenes, the least and the largest value of
every activation are written down, and each gets a scale from its own range. Weights get one scale per output channel.

>>> import torch
>>> piece = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 1, 1))
>>> graph = exported(piece, torch.rand(2, 2, 8, 8))
>>> convolutions(graph), convolutions(calibrated(graph, [torch.rand(2, 2, 8, 8)], outputs_in_fp32=True))
({'fp32': 2, 'int8': 0}, {'fp32': 1, 'int8': 1})
"""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnxruntime import quantization
from torch import Tensor

from threeloops.measure.product_loop.exported import Engine, exported, quiet

__all__ = ["Engine", "calibrated", "convolutions", "exported"]


class _Batches(quantization.CalibrationDataReader):  # type: ignore[misc]
    """What ONNX Runtime's calibration asks for: one input after the other."""

    def __init__(self, name: str, batches: Sequence[Tensor]) -> None:
        self._inputs: Iterator[dict[str, Any]] = iter([{name: batch.numpy()} for batch in batches])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._inputs, None)


def calibrated(graph: bytes, batches: Sequence[Tensor], *, outputs_in_fp32: bool) -> bytes:
    """The graph with its convolutions in INT8, scales from what these inputs make of it; with outputs_in_fp32, those
    whose results leave the graph stay as they were: they are read as numbers (metres, scores), not as features.

    Assumes:  7 of the weights' 8 bits are used: older processors add two products in 16 bits, which 8 could overflow
    Source:   ONNX Runtime documentation, "Quantize ONNX models" (static quantisation, QDQ, reduce_range)
    """
    model = onnx.load_from_string(graph)
    leaving = {output.name for output in model.graph.output} if outputs_in_fp32 else set()
    kept = [node.name for node in model.graph.node if node.op_type == "Conv" and leaving & set(node.output)]
    with tempfile.TemporaryDirectory() as folder, quiet(), contextlib.redirect_stdout(io.StringIO()):
        plain, made = Path(folder, "plain.onnx"), Path(folder, "int8.onnx")
        onnx.save(model, plain)
        quantization.quantize_static(
            plain,
            made,
            _Batches(model.graph.input[0].name, batches),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            reduce_range=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            op_types_to_quantize=["Conv", "Concat", "Resize"],
            nodes_to_exclude=kept,
        )
        return made.read_bytes()


def convolutions(graph: bytes) -> dict[str, int]:
    """How many convolutions of a graph read fp32 and how many INT8."""
    model = onnx.load_from_string(graph)
    from_int8 = {name for node in model.graph.node if node.op_type == "DequantizeLinear" for name in node.output}
    found = {"fp32": 0, "int8": 0}
    for node in model.graph.node:
        if node.op_type == "Conv":
            found["int8" if node.input[0] in from_int8 else "fp32"] += 1
    return found


def layers(graph: bytes) -> dict[str, int]:
    """The layers of a graph that compute, by kind; what turns numbers into INT8 and back is left out, and so are
    constants and shapes.
    """
    kinds = ("Conv", "BatchNormalization", "Relu", "Resize", "Concat")
    found = [node.op_type for node in onnx.load_from_string(graph).graph.node]
    return {kind: found.count(kind) for kind in kinds if kind in found}
