"""ONNX engine: a piece of the driving network exported, and the same piece with its convolutions in INT8.

Post-training quantisation with calibration: the fp32 graph is run on a few scenes, the largest magnitude of every
activation is written down and becomes 127; zero stays zero. Weights get a scale per output channel.

>>> import torch
>>> piece = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 1, 1))
>>> graph, seen = exported(piece, torch.rand(2, 2, 8, 8)), [torch.rand(2, 2, 8, 8)]
>>> convolutions(graph), convolutions(calibrated(graph, seen, outputs_in_fp32=True))
({'fp32': 2, 'int8': 0}, {'fp32': 1, 'int8': 1})
>>> refused_by_tensorrt(calibrated(graph, seen, outputs_in_fp32=True))
['1 bias in INT32', "1 convolution's own output rounded"]
>>> refused_by_tensorrt(for_tensorrt(graph, seen, outputs_in_fp32=True))
[]
"""

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper
from onnxruntime import quantization
from torch import Tensor

from threeloops.measure.product_loop.exported import Engine, exported, quiet

__all__ = ["Engine", "calibrated", "convolutions", "exported", "for_tensorrt", "refused_by_tensorrt"]

IN_INT8 = ["Conv", "Concat", "Resize"]


class _Batches(quantization.CalibrationDataReader):  # type: ignore[misc]
    """What ONNX Runtime's calibration asks for: one input after the other."""

    def __init__(self, name: str, batches: Sequence[Tensor]) -> None:
        self._inputs: Iterator[dict[str, Any]] = iter([{name: batch.numpy()} for batch in batches])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._inputs, None)


def calibrated(graph: bytes, batches: Sequence[Tensor], *, outputs_in_fp32: bool) -> bytes:
    """The graph with its convolutions in INT8, scales from what these inputs make of it; with outputs_in_fp32, those
    whose results leave the graph stay as they were: they are read as numbers (metres, scores), not as features.

    Formula:  integer = round(value * 127 / largest magnitude), of weights round(value * 64 / largest magnitude)
    Assumes:  the processor's kernels want it: each operator's output is rounded too, biases are 32-bit integers, and
              weights have 7 of their 8 bits, because x64 without VNNI adds two products in 16 bits
    Source:   ONNX Runtime documentation, "Quantize ONNX models" (static quantisation, QDQ)
    Measured: tests.measure.test_faster_perception.test_int8_is_symmetric_and_ends_at_127
    """
    return _quantised(graph, batches, outputs_in_fp32=outputs_in_fp32, options={}, reduce_range=True)


def for_tensorrt(graph: bytes, batches: Sequence[Tensor], *, outputs_in_fp32: bool) -> bytes:
    """The same ranges, weights up to 127, too, with the pairs of QuantizeLinear and DequantizeLinear where TensorRT
    wants them: on both inputs of every convolution, and nowhere else; biases stay in fp32. ONNX Runtime runs it, but
    without its INT8 kernels.

    Source:   NVIDIA TensorRT documentation 11.4, "Explicit Quantization" (recommended placement of Q/DQ); read in
              November 2026; microsoft/onnxruntime, issue 17738 (a bias in INT32 is refused)
    Measured: tests.measure.test_faster_perception.test_int8_is_symmetric_and_ends_at_127
    """
    placed = {
        "AddQDQPairToWeight": True,
        "DedicatedQDQPair": True,
        "QuantizeBias": False,
        "OpTypesToExcludeOutputQuantization": IN_INT8,
    }
    return _quantised(graph, batches, outputs_in_fp32=outputs_in_fp32, options=placed, reduce_range=False)


def _quantised(
    graph: bytes, batches: Sequence[Tensor], *, outputs_in_fp32: bool, options: dict[str, Any], reduce_range: bool
) -> bytes:
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
            reduce_range=reduce_range,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            op_types_to_quantize=IN_INT8,
            nodes_to_exclude=kept,
            extra_options={"ActivationSymmetric": True, "WeightSymmetric": True, **options},
        )
        return made.read_bytes()


def refused_by_tensorrt(graph: bytes) -> list[str]:
    """What TensorRT's documentation of Q/DQ graphs forbids or advises against and this graph has; empty if nothing.

    Source:   NVIDIA TensorRT documentation 11.4, "Working with Quantized Types" (symmetric, signed INT8) and "Explicit
              Quantization" (outputs of weighted operators); read in November 2026
    """
    model = onnx.load_from_string(graph)
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    rounds = ("QuantizeLinear", "DequantizeLinear")
    zeros = [constants[node.input[2]] for node in model.graph.node if node.op_type in rounds]
    rounded = {node.input[0] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    found = {
        "zero point that is not zero": sum(bool(zero.any()) for zero in zeros),
        "unsigned tensor": sum(zero.dtype.kind == "u" for zero in zeros),
        "bias in INT32": sum(zero.dtype.name == "int32" for zero in zeros),
        "convolution's own output rounded": sum(
            node.op_type == "Conv" and node.output[0] in rounded for node in model.graph.node
        ),
    }
    return [f"{number} {what}" for what, number in found.items() if number]


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
