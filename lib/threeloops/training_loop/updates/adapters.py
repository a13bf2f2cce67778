"""Adapters: fine-tuning with frozen weights and small trained matrices beside them (LoRA), the frozen ones perhaps in
four bits (QLoRA).

A frozen weight needs neither a gradient nor optimiser state. What it does need is to be there: for the forward pass,
and for the backward pass to go through.

>>> adapter_parameters([(4096, 4096, 32)], rank=8)
2097152

Source: Hu et al., LoRA, 2021, arXiv:2106.09685, section 4.1; Dettmers et al., QLoRA, 2023, arXiv:2305.14314, section
        3
"""

from collections.abc import Iterable
from dataclasses import dataclass

from threeloops import checks
from threeloops.foundations import dense_networks
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.training_loop.memory.rank_states import ModelStates, model_states
from threeloops.training_loop.memory.recipes import Recipe

ATTENTION, MLP = ("query", "key", "value", "output"), ("gate", "up", "down")


def layer_matrices(layer: Layer, *, hidden: int) -> dict[str, tuple[int, int]]:
    """Inputs and outputs of every matrix of a layer that can carry an adapter, by name.

    Assumes:  ordinary attention; of a mixture of experts only attention's matrices are named, and a layer that reads
              another's keys and values has none for them
    Raises:   ValueError for latent attention: give the shapes of its matrices to adapter_parameters
    """
    attention, mlp = layer.attention, layer.mlp
    layer.refuse_unusual()
    if not isinstance(attention, Attention):
        raise ValueError(
            "adapters are counted beside ordinary attention, not beside latent attention or a recurrent state; give"
            " adapter_parameters the shapes of other matrices"
        )
    wide, narrow = attention.query_dim, attention.kv_dim
    shapes = {"query": (hidden, wide * (1 + attention.gated)), "output": (wide, hidden)}
    if attention.owns_cache:
        shapes |= {"key": (hidden, narrow), "value": (hidden, narrow)}
    if isinstance(mlp, DenseMlp):
        shapes |= {"gate": (hidden, mlp.intermediate)} if mlp.gated else {}
        shapes |= {"up": (hidden, mlp.intermediate), "down": (mlp.intermediate, hidden)}
    return {name: shapes[name] for name in ATTENTION + MLP if name in shapes}


def adapted_matrices(model: Model, *, matrices: Iterable[str]) -> tuple[tuple[int, int, int], ...]:
    """The named matrices of all layers, as (inputs, outputs, how many); a layer without one of them is left out.

    Raises:   ValueError for a matrix that no layer has

    >>> from threeloops.models.catalogue import model
    >>> adapted_matrices(model("llama-3-8b"), matrices=["query", "key"])
    ((4096, 4096, 32), (4096, 1024, 32))
    """
    wanted = list(dict.fromkeys(matrices))
    kinds = [(layer_matrices(layer, hidden=model.hidden), count) for layer, count in model.groups]
    for name in wanted:
        checks.one_of([known for known in ATTENTION + MLP if any(known in shapes for shapes, _ in kinds)], matrix=name)
    return tuple((*shapes[name], count) for shapes, count in kinds for name in wanted if name in shapes)


def model_adapter_parameters(model: Model, *, rank: int, matrices: Iterable[str]) -> int:
    """Parameters of adapters on the named matrices of every layer.

    Raises:   ValueError for a matrix that no layer has
    """
    return adapter_parameters(adapted_matrices(model, matrices=matrices), rank=rank)


def adapter_parameters(matrices: Iterable[tuple[int, int, int]], *, rank: int) -> int:
    """Parameters of adapters of one rank beside matrices, given as (inputs, outputs, how many).

    Formula:  sum of how many * rank * (inputs + outputs): one matrix down to the rank, one up again
    Source:   Hu et al., 2021, arXiv:2106.09685, section 4.1
    Measured: tests.measure.test_measure_stack.test_adapters_hold_what_the_formula_says
    """
    return sum(
        number * dense_networks.low_rank_parameters(rows=outputs, columns=inputs, rank=rank)
        for inputs, outputs, number in matrices
    )


def magnitude_parameters(matrices: Iterable[tuple[int, int, int]]) -> int:
    """What DoRA trains beside the adapters: a magnitude for every output of an adapted matrix.

    Formula:  sum of how many * outputs
    Source:   Liu et al., 2024, arXiv:2402.09353, section 4.1; PEFT, tuners/lora/dora.py (the norm over the inputs)
    Measured: tests.training_loop.test_adapted_memory.trained_parameters

    >>> magnitude_parameters([(4096, 1024, 32)])
    32768
    """
    return sum(number * outputs for _, outputs, number in matrices)


def nf4_bits(*, block: int = 64, second_block: int = 256) -> float:
    """Bits per weight in QLoRA's NF4 with double quantisation: a code, an 8-bit scale per block, an fp32 scale per so
    many of those.

    Formula:  4 + 8 / block + 32 / (block * second_block)
    Source:   Dettmers et al., 2023, arXiv:2305.14314, section 3 (blocks of 64 and 256: 0.127 bits for both scales)
    Counted:  tests.training_loop.test_optimisation_stack.test_codes_and_scales_written_down_weight_by_weight

    >>> round(nf4_bits(), 3)
    4.127
    """
    checks.count(block=block, second_block=second_block)
    return 4 + 8 / block + 32 / (block * second_block)


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuning:
    """Bytes of model states on one GPU that fine-tunes adapters; activations come on top."""

    frozen_bytes: float
    adapters: ModelStates

    @property
    def total_bytes(self) -> float:
        return self.frozen_bytes + self.adapters.total_bytes


def fine_tuning(
    *, frozen_parameters: float, frozen_bits: float, adapter_parameters: float, recipe: str | Recipe
) -> FineTuning:
    """Bytes of frozen weights, adapters, their gradients and their optimiser state.

    Formula:  frozen_parameters * frozen_bits / 8 + adapter_parameters * bytes per parameter of the recipe
    Units:    frozen_bits is 16 for LoRA on bf16 weights, nf4_bits() for QLoRA
    Assumes:  one GPU; every frozen weight in the same format (QLoRA leaves embeddings, norms and head in 16 bits:
              give their surplus separately); activations not counted, and those do not shrink by much: the backward
              pass goes through all layers
    Counted:  drills.step_time.stack_tuning.QLORA

    >>> small = fine_tuning(frozen_parameters=7e9, frozen_bits=16, adapter_parameters=40e6, recipe="autocast")
    >>> small.frozen_bytes / 1e9, small.adapters.total_bytes / 1e9
    (14.0, 0.64)
    """
    checks.positive(frozen_parameters=frozen_parameters, frozen_bits=frozen_bits, adapter_parameters=adapter_parameters)
    states = model_states(
        parameters=ParameterBuckets.plain(adapter_parameters), recipe=recipe, zero_stage=0, dp=1, tp=1, pp=1
    )
    return FineTuning(frozen_bytes=frozen_parameters * frozen_bits / 8, adapters=states)
