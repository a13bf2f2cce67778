"""Engine step: three switches of an inference engine and a decode step: fusion, narrow weights, a recorded graph.

>>> from threeloops.models import catalogue
>>> h100 = Device(
...     matrix_flops_per_s={"bf16": 989e12, "int8": 1979e12, "int4": 989e12},
...     vector_flops_per_s=67e12,
...     memory_bytes_per_s=3.35e12,
...     issue_s=8e-6,
...     gap_s=0.5e-6,
...     graph_launch_s=50e-6,
... )
>>> model = catalogue.model("llama-3-8b")
>>> eager = engine_step(model, h100, Switches(precision="bf16", fused=False, captured=False), batch=1, context=2048)
>>> engine = engine_step(model, h100, Switches(precision="int4", fused=True, captured=True), batch=1, context=2048)
>>> eager.num_kernels, engine.num_kernels, engine.total_s < eager.total_s / 2
(1290, 227, True)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.models.architecture import Attention, Model
from threeloops.models.forward_step import MATRIX, VECTOR, ForwardStep, Op
from threeloops.models.transformer import model_ops
from threeloops.operations import roofline
from threeloops.operations.roofline import Work

# Bytes of a weight. int8: a product's inputs are rounded as well, so that it runs on integers; int4: weights only.
PRECISIONS = {"bf16": 2.0, "int8": 1.0, "int4": 0.5}
# What rides along with the product or norm beside it in an engine: computed while the numbers are still in registers.
RIDES_ALONG = ("rotary", "activation", "residual")
# Kernels that transformers' Llama code launches for one row of the table, and for growing keys and values by a token.
# Source: transformers 5.23, models/llama/modeling_llama.py and cache_utils.py; a test counts them as they run.
NORM_KERNELS, ROTARY_KERNELS, ACTIVATION_KERNELS, COPIES = 8, 10, 2, 2
PRODUCTS = {"qkv_projection": 3, "gate_up_projection": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What an accelerator offers, and what its host needs to keep it busy."""

    matrix_flops_per_s: Mapping[str, float]  # by precision
    vector_flops_per_s: float
    memory_bytes_per_s: float
    issue_s: float  # the host's time per kernel, when it issues each
    gap_s: float  # the device's time between two kernels of a recorded graph
    graph_launch_s: float  # the host's time to start a recorded graph

    def __post_init__(self) -> None:
        for precision, peak in self.matrix_flops_per_s.items():
            checks.one_of(PRECISIONS, precision=precision)
            checks.positive(**{f"matrix_flops_per_s[{precision!r}]": peak})
        checks.positive(vector_flops_per_s=self.vector_flops_per_s, memory_bytes_per_s=self.memory_bytes_per_s)
        checks.non_negative(issue_s=self.issue_s, gap_s=self.gap_s, graph_launch_s=self.graph_launch_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """What the engine does."""

    precision: str  # of the products: see PRECISIONS
    fused: bool  # False: every small operation is a kernel of its own, as transformers' code is written
    captured: bool  # the step is one recorded graph, not a launch per kernel

    def __post_init__(self) -> None:
        checks.one_of(PRECISIONS, precision=self.precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStep:
    """One decode step, by who takes its time."""

    batch: int
    num_kernels: int
    weights_s: float  # the products: they read the weights
    attention_s: float  # reads the KV cache
    vector_s: float  # norms, look-up, and the small operations that are not fused
    waiting_s: float  # the device has nothing to run: launches, gaps

    @property
    def kernels_s(self) -> float:
        return self.weights_s + self.attention_s + self.vector_s

    @property
    def total_s(self) -> float:
        return self.kernels_s + self.waiting_s

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second of all requests together."""
        return self.batch / self.total_s


def engine_step(model: Model, device: Device, switches: Switches, *, batch: int, context: int) -> EngineStep:
    """Seconds of one decode step of `batch` requests with `context` tokens each.

    Formula:  each kernel max(FLOPs / peak, bytes / bandwidth), one after another;
              launched one by one: max(sum of kernels, kernels * issue_s);
              recorded: graph_launch_s + sum of kernels + kernels * gap_s
    Assumes:  datasheet peaks and bandwidth, so a lower bound; attention is one kernel; weights in int4 are widened in
              the product, which runs at the peak given for "int4"; activations and the cache are moved in 16 bits;
              what rides along costs neither bytes nor a launch; without fusion each small kernel moves what the
              fused one would, and the cache is copied to grow by a token; launching hides behind long kernels entirely
    Raises:   ValueError for a precision that the device has no peak for
    Source:   Williams et al., 2009, doi:10.1145/1498765.1498785; NVIDIA, CUDA C++ Programming Guide 12.9, 2025,
              "CUDA Graphs"
    Counted:  simulate.inner_loop.launch_queue.play
    """
    checks.one_of(device.matrix_flops_per_s, precision=switches.precision)
    checks.count(batch=batch, context=context)
    ops = launched(model, switches, batch=batch, context=context)
    spent = {"weights": 0.0, "attention": 0.0, "vector": 0.0}
    for op in ops:
        spent[_kind(op)] += op.count * kernel_s(op, device, switches)
    num_kernels, kernels_s = sum(op.count for op in ops), sum(spent.values())
    waiting_s = (
        device.graph_launch_s + num_kernels * device.gap_s
        if switches.captured
        else max(0.0, num_kernels * device.issue_s - kernels_s)
    )
    return EngineStep(
        batch=batch,
        num_kernels=num_kernels,
        weights_s=spent["weights"],
        attention_s=spent["attention"],
        vector_s=spent["vector"],
        waiting_s=waiting_s,
    )


def launched(model: Model, switches: Switches, *, batch: int, context: int) -> tuple[Op, ...]:
    """The kernels of the step that the engine launches, in order."""
    step = ForwardStep(
        phase="decode",
        batch=batch,
        sequence=context,
        causal="exact",
        fused_attention=True,
        logits="last",
        bytes_per_element=2,
        weight_bytes_per_element=PRECISIONS[switches.precision],
        kv_bytes_per_element=2,
    )
    model.refuse_hybrid()
    ops = model_ops(model, step)
    if switches.fused:
        return tuple(op for op in ops if not (op.unit == VECTOR and _is(op, *RIDES_ALONG)))
    return tuple(kernel for op in ops for kernel in _spelled_out(op, model, step))


def kernel_s(op: Op, device: Device, switches: Switches) -> float:
    """Seconds of one launch of a kernel, on the roofline."""
    peaks = {MATRIX: device.matrix_flops_per_s[switches.precision], VECTOR: device.vector_flops_per_s}
    if op.name == "attention":
        peaks[MATRIX] = device.matrix_flops_per_s["bf16"]  # keys and values stay in 16 bits
    return roofline.time(
        op.work, peak_flops_per_s=peaks[op.unit], memory_bytes_per_s=device.memory_bytes_per_s
    ).lower_bound_s


def _spelled_out(op: Op, model: Model, step: ForwardStep) -> tuple[Op, ...]:
    """The kernels that code without fusion launches for a row."""
    if op.name in PRODUCTS:
        parts = PRODUCTS[op.name]
        part = Work(flops=op.work.flops / parts, moved_bytes=op.work.moved_bytes / parts)
        return (replace(op, work=part, count=op.count * parts),)
    if op.name == "attention":
        return replace(op, name="cache_copy", unit=VECTOR, work=_copy(model, step, op), count=op.count * COPIES), op
    small = {"norm": NORM_KERNELS, "rotary": ROTARY_KERNELS, "activation": ACTIVATION_KERNELS}
    return (replace(op, count=op.count * next((times for word, times in small.items() if _is(op, word)), 1)),)


def _copy(model: Model, step: ForwardStep, op: Op) -> Work:
    """Keys, or values, of a layer read and written whole."""
    attention = model.groups[op.group or 0][0].attention
    if not isinstance(attention, Attention):
        raise ValueError(f"{model.name} keeps latents, not keys and values; choose a model with KV heads")
    elements = step.batch * step.sequence * attention.num_kv_heads * attention.head_dim
    return Work(flops=0, moved_bytes=2 * 2 * elements)


def _is(op: Op, *words: str) -> bool:
    return any(word in op.name for word in words)


def _kind(op: Op) -> str:
    if op.name == "attention":
        return "attention"
    return "weights" if op.unit == MATRIX else "vector"
