"""Phases: a whole forward pass of a model, reading a prompt or writing a token, as one point of the roofline chart.

>>> from threeloops.facts import hardware
>>> from threeloops.models import catalogue
>>> llama, h100 = catalogue.model("llama-3-8b"), hardware.part("h100-sxm5")
>>> whole_pass(llama, one_pass("decode", batch=1, tokens=2048), on=h100, name="one user").bound
'memory'
"""

from threeloops.facts.hardware import Part
from threeloops.figures.inner_loop.roofline import Point
from threeloops.models import transformer
from threeloops.models.architecture import Model
from threeloops.models.forward_step import ForwardStep
from threeloops.operations import roofline


def one_pass(phase: str, *, batch: int, tokens: int) -> ForwardStep:
    """A forward pass as servers run it: bf16, fused attention, the head for the last token of each request only."""
    return ForwardStep(
        phase=phase,
        batch=batch,
        sequence=tokens,
        causal="exact",
        fused_attention=True,
        logits="last",
        bytes_per_element=2,
    )


def whole_pass(model: Model, step: ForwardStep, *, on: Part, name: str) -> Point:
    """All of a pass's FLOPs and bytes together, at the most that the part's roofline allows."""
    intensity = transformer.total(transformer.model_ops(model, step)).arithmetic_intensity
    peak, memory = on.peak_flops_per_s("bf16"), on["memory_bytes_per_s"]
    rate = roofline.attainable_flops_per_s(
        arithmetic_intensity=intensity, peak_flops_per_s=peak, memory_bytes_per_s=memory
    )
    bound = "compute" if rate == peak else "memory"
    return Point(name=name, arithmetic_intensity=intensity, flops_per_s=rate, bound=bound)
