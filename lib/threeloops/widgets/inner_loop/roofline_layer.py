"""What the roofline explorer lets one choose: a part, a model, a precision; and the layer that they make.

>>> len(operations("llama-3-8b", "bf16", "decode", 8, 2048))
11
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from threeloops.dtypes import bytes_per_element
from threeloops.facts import hardware
from threeloops.models import catalogue, transformer
from threeloops.models.architecture import Model
from threeloops.models.forward_step import ForwardStep, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How the numbers are stored, and which peak the tensor cores then have."""

    peak: str
    stored: str  # activations, keys and values
    weights: str

    @property
    def words(self) -> str:
        return self.stored if self.stored == self.weights else f"{self.stored} with {self.weights} weights"


PRECISIONS = {
    "fp16": Precision(peak="fp16", stored="fp16", weights="fp16"),
    "bf16": Precision(peak="bf16", stored="bf16", weights="bf16"),
    "fp8": Precision(peak="fp8", stored="fp8", weights="fp8"),
    "int8": Precision(peak="int8", stored="int8", weights="int8"),
    # scales not counted; converted to fp16 before multiplying
    "int4 weights": Precision(peak="fp16", stored="fp16", weights="int4"),
}


@lru_cache
def part(key: str) -> hardware.Part:
    """A part, read from the catalogue once."""
    return hardware.part(key)


@lru_cache
def model(key: str) -> Model:
    """A model, read from the catalogue once, under its full name."""
    return replace(catalogue.model(key), name=catalogue.model_entry(key).name)


def precisions(accelerator: str) -> tuple[str, ...]:
    """The precisions for which this part has a peak.

    >>> precisions("v100-sxm2-32gb")
    ('fp16', 'int4 weights')
    """
    return tuple(name for name, precision in PRECISIONS.items() if precision.peak in part(accelerator).peaks)


@lru_cache(maxsize=512)
def operations(model_key: str, precision: str, phase: str, batch: int, sequence: int) -> tuple[Op, ...]:
    """What the model's first layer computes in a step."""
    network, stored = model(model_key), PRECISIONS[precision]
    step = ForwardStep(
        phase=phase,
        batch=batch,
        sequence=sequence,
        causal="exact",
        fused_attention=True,
        logits="last",
        bytes_per_element=bytes_per_element(stored.stored),
        weight_bytes_per_element=bytes_per_element(stored.weights),
    )
    layer = network.groups[0][0]
    return tuple(transformer.layer_ops(layer, hidden=network.hidden, rotary=network.rotary, step=step))
