"""Adapted layers: what a transformer block keeps for its backward pass when its weights are frozen and adapters stand
beside some of its matrices.

A frozen matrix needs no input for a gradient of its own; an adapter beside it does, and keeps its own narrow value too.
What softmax, norms, gates and attention keep, they keep as before: the backward pass goes through them.

>>> from threeloops.models.catalogue import model
>>> layer, _ = model("llama-2-7b").groups[0]
>>> sizes = {"hidden": 4096, "sequence": 2048, "micro_batch": 1, "bytes_per_element": 2, "kernels": "fused"}
>>> whole = per_layer(layer, **sizes, dropout=False)
>>> adapters = Adapters(rank=16, targets=("query", "value"), bytes_per_element=2)
>>> round(adapted_layer(layer, adapters=adapters, **sizes, dropout=False).total_bytes / whole.total_bytes, 2)
0.77

Source: Hu et al., LoRA, 2021, arXiv:2106.09685, section 4; Liu et al., DoRA, 2024, arXiv:2402.09353, section 4.3
"""

from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.models.architecture import DenseMlp, Layer, MoeMlp
from threeloops.training_loop.memory.activation_kernels import KERNELS, MASK_BYTES, Kernels, SavedTensor
from threeloops.training_loop.memory.activations import Activations, per_layer
from threeloops.training_loop.updates.adapters import MLP, layer_matrices

# What the matrices read: the saved tensor that is there for their weights' gradients -> the matrices that read it.
_READ = {
    "attention input": ("query", "key", "value"),
    "output projection input": ("output",),
    "MLP input": ("gate", "up"),
    "down projection input": ("down",),
}
# Kept for the gradient of a frozen weight alone: a norm's, the head's.
_FOR_FROZEN_WEIGHTS = ("before its weight", "head input", "gradient of the head")
_EXPERT_INPUTS = ("expert inputs", "expert down projection input", "shared expert down projection input")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """Adapters of one rank on the named matrices of every layer that has them."""

    rank: int
    targets: tuple[str, ...]  # of adapters.ATTENTION and adapters.MLP
    bytes_per_element: int  # of what an adapter computes with: fp32 adapters outside autocast read fp32 copies
    own_copy: bool = False  # every adapter casts its input by itself, as autocast does to fp32 ones
    dropout: bool = False  # before every adapter: a mask and a copy of its input each
    magnitudes: bool = False  # DoRA

    def __post_init__(self) -> None:
        checks.count(rank=self.rank)
        for target in self.targets:
            checks.one_of(_OF_MATRIX, target=target)
        if self.magnitudes and self.dropout:
            raise ValueError(
                "magnitudes are counted without dropout before adapters: with it PEFT multiplies by every frozen matrix"
                " again, and keeps a copy of each; leave one of the two out"
            )
        if self.bytes_per_element not in (2, 4):
            raise ValueError(
                f"bytes_per_element={self.bytes_per_element!r} must be 2 or 4: adapters are trained in bf16 or fp32"
            )


_OF_MATRIX = {matrix: tensor for tensor, matrices in _READ.items() for matrix in matrices}


def adapted_layer(
    layer: Layer,
    *,
    adapters: Adapters,
    hidden: int,
    sequence: int,
    micro_batch: int,
    bytes_per_element: int,
    kernels: str | Kernels,
    dropout: bool,
    recompute: str = "none",
) -> Activations:
    """Tensors that one frozen block with adapters keeps for one micro-batch.

    Formula:  those of activations.per_layer, less the inputs of matrices without an adapter (attention's output stays:
              flash attention keeps it) and what norms keep for their weights; for every adapter + s*b*rank, and
              + s*b*inputs where it reads a copy of its own: after a cast, or after dropout, whose mask is a byte a
              value; with magnitudes + 2 * s*b*outputs (and three
              vectors of outputs, left out)
    Units:    returns bytes
    Assumes:  PEFT's order: base(x) + B(A(dropout(x))) * alpha / rank, with bitsandbytes' 4-bit matrices keeping no
              input; DoRA's norm of W + B A is detached, and what makes it is gone when the layer ends; the layer's
              input requires a gradient, as enable_input_require_grads makes the first one's
    Raises:   ValueError for what adapters.layer_matrices refuses
    Source:   PEFT, tuners/lora/layer.py (Linear.forward) and tuners/lora/dora.py (DoraLinearLayer.forward);
              bitsandbytes, autograd/_functions.py, MatMul4Bit (saves the codes, not the input)
    Measured: measure.training_loop.saved_tensors.saved_bytes
    """
    whole = per_layer(
        layer,
        hidden=hidden,
        sequence=sequence,
        micro_batch=micro_batch,
        bytes_per_element=bytes_per_element,
        kernels=kernels,
        dropout=dropout,
        recompute=recompute,
    )
    if recompute == "full":
        return whole
    shapes = layer_matrices(layer, hidden=hidden)
    held = [target for target in adapters.targets if target in shapes]
    shared = not (adapters.own_copy or adapters.dropout or adapters.bytes_per_element != bytes_per_element)
    read = {_OF_MATRIX[target] for target in held} if shared else set()
    used = kernels if isinstance(kernels, Kernels) else KERNELS[kernels]
    if used.attention == "flash" and recompute == "none":  # flash attention keeps what it puts out
        read.add("output projection input")
    kept = [item for item in whole.items if _stays(item, layer, read)]
    for target in held:
        kept += _adapter_items(target, shapes[target], adapters, (micro_batch, sequence), bytes_per_element, shared)
    return replace(whole, items=tuple(kept))


def without_weight_gradients(activations: Activations) -> Activations:
    """What is left of saved tensors when the weights beside them are frozen: for the head and the final norm."""
    kept = tuple(item for item in activations.items if not item.name.endswith(_FOR_FROZEN_WEIGHTS))
    return replace(activations, items=kept)


def _stays(item: SavedTensor, layer: Layer, read: set[str]) -> bool:
    """Whether a tensor is kept without the gradients of frozen weights; `read`: what else reads it."""
    if item.name.endswith(_FOR_FROZEN_WEIGHTS):
        return False
    if item.name.endswith("down projection input") and _output_of_relu(layer.mlp):
        return True
    return item.name in read if item.name in _READ else item.name not in _EXPERT_INPUTS


def _output_of_relu(mlp: DenseMlp | MoeMlp | None) -> bool:
    """Plain ReLU keeps its output, which is what the matrix behind it reads."""
    wide = mlp.expert if isinstance(mlp, MoeMlp) else mlp
    return wide is not None and not wide.gated and wide.activation == "relu"


def _adapter_items(
    target: str,
    shape: tuple[int, int],
    adapters: Adapters,
    rows: tuple[int, int],
    bytes_per_element: int,
    shared: bool,
) -> list[SavedTensor]:
    """What one adapter keeps beside its matrix."""
    inputs, outputs = shape
    part = "mlp" if target in MLP else "attention"

    def kept(name: str, width: int, size: int) -> SavedTensor:
        return SavedTensor(name=f"{target} adapter {name}", part=part, shape=(*rows, width), bytes_per_element=size)

    size = adapters.bytes_per_element
    items = [] if shared else [kept("input", inputs, size)]
    if adapters.dropout:
        items.append(kept("dropout mask", inputs, MASK_BYTES))
    items.append(kept("between its matrices", adapters.rank, size))
    if adapters.magnitudes:
        items += [kept("base output", outputs, bytes_per_element), kept("output", outputs, size)]
    return items
