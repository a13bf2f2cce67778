"""Adapter training: everything that decides the memory of LoRA, QLoRA or DoRA except micro-batch and sequence, and the
sentences that its bytes rest on.

>>> BASES["nf4"][0], BASES["nf4-single"][0]
(4.126953125, 4.5)
"""

from dataclasses import dataclass
from functools import cached_property

from threeloops import checks
from threeloops.models.architecture import Model
from threeloops.models.parameter_buckets import stage_buckets
from threeloops.training_loop.memory.activations import CROSS_ENTROPIES
from threeloops.training_loop.memory.recipes import Recipe, recipe_named
from threeloops.training_loop.memory.setup import CROSS_ENTROPIES_IN_WORDS, NOT_COUNTED
from threeloops.training_loop.updates.adapted_layers import Adapters
from threeloops.training_loop.updates.adapters import (
    adapted_matrices,
    adapter_parameters,
    magnitude_parameters,
    nf4_bits,
)
from threeloops.units import BITS_PER_BYTE

# How the frozen matrices of the layers are stored: bits a weight, and in words. What is not one of them (tables, head,
# norms, biases) stays as wide as activations are.
BASES = {
    "fp32": (32.0, "32-bit floats"),
    "bf16": (16.0, "bfloat16"),
    "fp16": (16.0, "float16"),
    "nf4": (nf4_bits(), "4-bit codes, an 8-bit scale per 64 weights, an fp32 scale per 256 of those (QLoRA)"),
    "nf4-single": (4 + 32 / 64, "4-bit codes, an fp32 scale per 64 weights (bitsandbytes without double quantisation)"),
}


@dataclass(frozen=True, kw_only=True)
class AdapterTraining:
    """How adapters are trained: everything that decides memory except micro-batch and sequence."""

    model: Model
    rank: int
    targets: tuple[str, ...]
    base: str  # one of BASES
    recipe: str | Recipe  # what is kept of each trained parameter
    bytes_per_element: int  # of activations
    kernels: str
    recompute: str
    zero_stage: int = 0
    dp: int = 1
    dropout: bool = False  # the model's own
    adapter_dropout: bool = False
    magnitudes: bool = False  # DoRA
    gathered_layers: int | None = None  # zero_stage 3
    cross_entropy: str = "plain"

    def __post_init__(self) -> None:
        checks.one_of(BASES, base=self.base)
        checks.one_of(CROSS_ENTROPIES, cross_entropy=self.cross_entropy)
        if not self.quantised and BASES[self.base][0] != self.bytes_per_element * BITS_PER_BYTE:
            raise ValueError(
                f"base={self.base!r} must be as wide as activations, which have {self.bytes_per_element} bytes, or nf4"
            )
        if not self.used_recipe.uniform:
            raise ValueError(
                f"recipe={self.used_recipe.name!r} treats hidden matrices and the rest differently; for adapters take"
                " autocast, pure-bf16, megatron or autocast-adam-8bit"
            )
        if self.used_recipe.gathered_weight_bytes is not None:
            raise ValueError(
                f"recipe={self.used_recipe.name!r} casts a unit before it gathers it, which is not counted for"
                " adapters; take autocast, pure-bf16, megatron or autocast-adam-8bit"
            )
        if self.zero_stage == 3 and self.gathered_layers is None:
            raise ValueError("gathered_layers must be stated at zero_stage=3: 1 whole layer at a time, or 2")
        self.matrices  # noqa: B018 - refuses what the model has not

    @property
    def used_recipe(self) -> Recipe:
        return self.recipe if isinstance(self.recipe, Recipe) else recipe_named(self.recipe)

    @property
    def quantised(self) -> bool:
        return self.base.startswith("nf4")

    @cached_property
    def matrices(self) -> tuple[tuple[int, int, int], ...]:
        """Inputs, outputs and number of every kind of adapted matrix."""
        return adapted_matrices(self.model, matrices=self.targets)

    @property
    def trained_parameters(self) -> int:
        """What PEFT prints as trainable."""
        thin = adapter_parameters(self.matrices, rank=self.rank)
        return thin + (magnitude_parameters(self.matrices) if self.magnitudes else 0)

    @property
    def adapters(self) -> Adapters:
        autocast, wide = self.used_recipe.autocast, self.used_recipe.others.weight_bytes
        return Adapters(
            rank=self.rank,
            targets=self.targets,
            bytes_per_element=self.bytes_per_element if autocast else int(wide),
            own_copy=autocast,
            dropout=self.adapter_dropout,
            magnitudes=self.magnitudes,
        )

    @property
    def assumes(self) -> tuple[str, ...]:
        """The sentences that hold for this set-up, to be printed with its bytes."""
        rest = stage_buckets(self.model, stage=0, pp=1)
        wider = (rest.total - rest.matrices) * (4 - self.bytes_per_element)
        widened = (
            "tables, head, norms and biases stay as wide as activations; PEFT's prepare_model_for_kbit_training makes"
            f" them fp32, {wider:,.0f} bytes more, and the residual stream with them"
        )
        return (
            "queries, keys, values, gate and up are separate matrices, as in Llama; where a model fuses them, its"
            " adapters are fewer",
            "the first layer's input requires a gradient, as enable_input_require_grads makes it",
            *((widened,) if self.quantised else ()),
            *(("DoRA's norm of W + B A, made anew in every forward pass, is not counted",) if self.magnitudes else ()),
            f"the cross-entropy is {CROSS_ENTROPIES_IN_WORDS[self.cross_entropy]}",
            f"not counted: {NOT_COUNTED}",
        )
