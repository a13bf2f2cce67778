"""Techniques side by side: what was done to the small network, how long it took here, what it reads afterwards, how
many times smaller its weights are, and how much less a decode step would read of them.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import nn

from threeloops.inner_loop import sparsity
from threeloops.measure.product_loop import channel_scaling, distillation, glyphs, gptq, pruning, quantisers
from threeloops.measure.product_loop.quantisers import Scheme
from threeloops.product_loop.compression import Groups, bitmask_bytes

WIDE_BITS = 16
INT8, INT4, INT3 = (Scheme(bits=bits, scope=16) for bits in (8, 4, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """One row."""

    name: str
    needs: str  # data and training
    smaller: float  # times, against 16-bit weights
    step: str  # what a decode step that waits for weights gains
    seconds: float
    accuracy: float


def techniques() -> Iterator[Technique]:
    """The rows; whoever iterates waits for each."""
    teacher, calibration = glyphs.trained(), glyphs.sets().calibration
    yield _row("as trained, 16 bits", "nothing", 1.0, "1.0", lambda: teacher)
    yield _row("INT8, to nearest", "nothing", _narrow(INT8), "as size", lambda: _rounded(teacher, INT8))
    yield _row("INT4, to nearest", "nothing", _narrow(INT4), "as size", lambda: _rounded(teacher, INT4))
    yield _row("INT3, to nearest", "nothing", _narrow(INT3), "as size", lambda: _rounded(teacher, INT3))
    yield _row(
        "INT3, AWQ", "inputs", _narrow(INT3), "as size", lambda: channel_scaling.awq_model(teacher, calibration, INT3)
    )
    yield _row("INT3, GPTQ", "inputs", _narrow(INT3), "as size", lambda: gptq.gptq_model(teacher, calibration, INT3))
    yield _row("INT3, trained with rounding", "labels, epochs", _narrow(INT3), "as size", lambda: _aware(teacher))
    masked = 2 * WIDE_BITS / 8 / bitmask_bytes(2, kept=1, element_bits=WIDE_BITS)
    yield _row(
        "half pruned anywhere, tuned",
        "labels, epochs",
        masked,
        "1.0",
        lambda: _tuned(pruning.pruned(teacher, share=0.5)),
    )
    thin = 1 / sparsity.stored_share(bytes_per_element=2)
    yield _row(
        "2:4 pruned, tuned", "labels, epochs", thin, "as size", lambda: _tuned(pruning.pruned_two_of_four(teacher))
    )
    student = _weights(teacher) / _weights(glyphs.network(hidden=glyphs.STUDENT))
    yield _row(
        "distilled student", "inputs, a training", student, "as size", lambda: distillation.taught_by_teacher(teacher)
    )


def _row(name: str, needs: str, smaller: float, step: str, make: Callable[[], nn.Module]) -> Technique:
    began = time.perf_counter()
    made = make()
    seconds = time.perf_counter() - began
    return Technique(
        name=name, needs=needs, smaller=smaller, step=step, seconds=seconds, accuracy=glyphs.accuracy(made)
    )


def _narrow(scheme: Scheme) -> float:
    form = Groups(element_bits=scheme.bits, group=int(scheme.scope), scale_bits=16, zero_bits=0)
    return WIDE_BITS / form.bits_per_weight


def _rounded(model: nn.Sequential, scheme: Scheme) -> nn.Sequential:
    return quantisers.rounded_model(model, scheme)


def _aware(model: nn.Sequential) -> nn.Module:
    return _tuned(pruning.quantisation_aware(model, INT3), rate=1e-3)


def _tuned(model: nn.Sequential, *, rate: float = 3e-3) -> nn.Module:
    return glyphs.fit(model, *glyphs.sets().train, epochs=4, rate=rate)


def _weights(model: nn.Sequential) -> int:
    return sum(layer.weight.numel() for layer in glyphs.linear_layers(model))
