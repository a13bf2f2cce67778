"""Training recipes: how many bytes each parameter's state takes, by the name of the practice instead of a magic 12,
16, 18 or 20.

Every rule of thumb is right for its own recipe. Which copies exist decides: the weights that the matrix
multiplications read, their gradients, a master copy in fp32, a gradient copy in fp32, and the optimiser's moments.

>>> {
...     name: RECIPES[name].hidden_matrices.total_bytes
...     for name in ("zero-paper", "autocast", "megatron", "deepspeed", "pure-bf16")
... }
{'zero-paper': 16, 'autocast': 16, 'megatron': 18, 'deepspeed': 20, 'pure-bf16': 8}
"""

from dataclasses import dataclass
from types import MappingProxyType

from threeloops import checks
from threeloops.inner_loop.block_formats import NVFP4
from threeloops.units import BITS_PER_BYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Bytes kept per parameter, from one step to the next."""

    weight_bytes: float  # what forward and backward read
    gradient_bytes: float  # what backward writes and micro-batches add up in
    master_bytes: float = 0  # fp32 weights that the optimiser updates, where weight_bytes are a lower precision
    # fp32 gradients made for the optimiser, where gradient_bytes are a lower precision
    gradient_copy_bytes: float = 0
    moment_bytes: float = 0  # momentum, and variance where there is one

    def __post_init__(self) -> None:
        checks.positive(weight_bytes=self.weight_bytes, gradient_bytes=self.gradient_bytes)
        checks.non_negative(
            master_bytes=self.master_bytes, gradient_copy_bytes=self.gradient_copy_bytes, moment_bytes=self.moment_bytes
        )

    @property
    def optimiser_bytes(self) -> float:
        """What ZeRO stage 1 shards: everything that only the update needs. The ZeRO paper's K."""
        return self.master_bytes + self.gradient_copy_bytes + self.moment_bytes

    @property
    def total_bytes(self) -> float:
        return self.weight_bytes + self.gradient_bytes + self.optimiser_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One practice of training, with the two kinds of parameters that a practice may treat differently."""

    name: str
    hidden_matrices: StateBytes  # weights of linear layers inside the blocks, experts included
    others: StateBytes  # embedding table, output head, norms and biases
    assumes: str
    source: str
    # fp32 weights, of which every forward pass makes 16-bit copies that wait for its backward pass
    autocast: bool = False
    # FSDP2's mixed precision: bytes of a weight as it is gathered from its shard, and of the gradient that it gets;
    # None: as they are stored
    gathered_weight_bytes: float | None = None
    zero_stages: tuple[int, ...] = (0, 1, 2, 3)  # those at which the practice keeps these copies
    at_other_stages: str = ""  # the recipe of the same practice there

    @property
    def uniform(self) -> bool:
        """True where one number of bytes per parameter describes the whole model."""
        return self.hidden_matrices == self.others


def _uniform(
    name: str,
    *,
    assumes: str,
    source: str,
    state: StateBytes,
    autocast: bool = False,
    gathered_weight_bytes: float | None = None,
    zero_stages: tuple[int, ...] = (0, 1, 2, 3),
    at_other_stages: str = "",
) -> Recipe:
    return Recipe(
        name=name,
        hidden_matrices=state,
        others=state,
        assumes=assumes,
        source=source,
        autocast=autocast,
        gathered_weight_bytes=gathered_weight_bytes,
        zero_stages=zero_stages,
        at_other_stages=at_other_stages,
    )


# One byte per value and one fp32 scale per block of 256 values, twice.
_TWO_BLOCKWISE_8BIT_MOMENTS = 2 * (1 + 4 / 256)

_TWO_NVFP4_COPIES = 2 * NVFP4.bits_per_element / BITS_PER_BYTE  # plain and transposed

_MIXED_FP32_GRADIENTS = StateBytes(weight_bytes=2, gradient_bytes=4, master_bytes=4, moment_bytes=8)
_FP32 = StateBytes(weight_bytes=4, gradient_bytes=4, moment_bytes=8)

_ALL = (
    _uniform(
        "zero-paper",
        state=StateBytes(weight_bytes=2, gradient_bytes=2, master_bytes=4, moment_bytes=8),
        assumes=(
            "fp16 weights and gradients, fp32 master weights and Adam moments; gradients are unscaled on the fly,"
            " without an fp32 copy"
        ),
        source="Rajbhandari et al., 2019, arXiv:1910.02054, section 3.1",
    ),
    _uniform(
        "fp32",
        state=_FP32,
        assumes="fp32 weights and arithmetic with Adam, no autocast",
        source=(
            "PyTorch documentation, torch.optim.Adam; Megatron Core User Guide, Distributed Optimizer (fp32, fp32: 16)"
        ),
    ),
    _uniform(
        "autocast",
        state=_FP32,
        autocast=True,
        assumes=(
            "fp32 weights under torch.autocast with Adam; beside these states, each forward pass makes 16-bit copies of"
            " the matrices that it multiplies by, and each copy waits for its own layer's backward pass"
        ),
        source=(
            "PyTorch documentation, Automatic Mixed Precision package; Megatron Core User Guide, Distributed Optimizer"
            " (fp32, fp32: 16)"
        ),
    ),
    _uniform(
        "fsdp2-mixed",
        state=_FP32,
        gathered_weight_bytes=2,
        assumes=(
            "shards of fp32 weights, gradients and Adam moments; a unit is cast to 16 bits before it is gathered, its"
            " gradients come out in 16 bits and are added up over the ranks in fp32, so that autocast's copies do not"
            " exist. ZeRO stage 3"
        ),
        source=(
            "PyTorch documentation, torch.distributed.fsdp.MixedPrecisionPolicy (param_dtype 16 bits, reduce_dtype"
            " fp32); torchtitan, parallelize_llama"
        ),
        zero_stages=(3,),
        at_other_stages="autocast",
    ),
    _uniform(
        "megatron",
        state=_MIXED_FP32_GRADIENTS,
        assumes="bf16 weights, gradients accumulated in fp32, fp32 master weights and Adam moments",
        source="Megatron Core User Guide, Distributed Optimizer (bf16 parameters, fp32 gradients: 18, or 6 + 12/d)",
    ),
    _uniform(
        "deepspeed",
        state=StateBytes(weight_bytes=2, gradient_bytes=2, master_bytes=4, gradient_copy_bytes=4, moment_bytes=8),
        assumes=(
            "fp16 weights and gradients, an fp32 copy of the gradients for the update, fp32 master weights and Adam"
            " moments; ZeRO stages 0 to 2"
        ),
        source=(
            "DeepSpeed, estimate_zero2_model_states_mem_needs (2 + 18/N); Megatron Core User Guide, Distributed"
            " Optimizer (fp16, fp16: 20, or 4 + 16/d)"
        ),
        zero_stages=(0, 1, 2),
        at_other_stages="deepspeed-zero-3",
    ),
    _uniform(
        "deepspeed-zero-3",
        state=_MIXED_FP32_GRADIENTS,
        assumes=(
            "fp16 weights, fp32 gradients, master weights and Adam moments, all in shards; a layer's fp16 gradients"
            " live only until they are handed out, beside its gathered weights. ZeRO stage 3"
        ),
        source=(
            "DeepSpeed, estimate_zero3_model_states_mem_needs (18/N), and documentation, Memory Requirements (the"
            " breakdown of 18)"
        ),
        zero_stages=(3,),
        at_other_stages="deepspeed",
    ),
    _uniform(
        "pure-bf16",
        state=StateBytes(weight_bytes=2, gradient_bytes=2, moment_bytes=4),
        assumes=(
            "everything in bf16, Adam moments too: torch.optim gives moments the dtype of the parameter and keeps no"
            " master copy"
        ),
        source="PyTorch documentation, torch.optim.Adam; measured in measure/training_loop/optimiser_state.py",
    ),
    _uniform(
        "autocast-adam-8bit",
        state=StateBytes(weight_bytes=4, gradient_bytes=4, moment_bytes=_TWO_BLOCKWISE_8BIT_MOMENTS),
        autocast=True,
        assumes=(
            "fp32 weights under torch.autocast (16-bit copies as in autocast), 8-bit Adam moments with one fp32 scale"
            " per 256 values; tensors under 4,096 values, which keep 32-bit moments, are neglected"
        ),
        source="Dettmers et al., 2021, arXiv:2110.02861; bitsandbytes, optim/optimizer.py, Optimizer2State",
    ),
    _uniform(
        "pure-bf16-adam-8bit",
        state=StateBytes(weight_bytes=2, gradient_bytes=2, moment_bytes=_TWO_BLOCKWISE_8BIT_MOMENTS),
        assumes=(
            "bf16 weights and gradients without a master copy, 8-bit Adam moments with one fp32 scale per 256 values;"
            " small tensors neglected"
        ),
        source="Dettmers et al., 2021, arXiv:2110.02861; bitsandbytes, optim/optimizer.py, Optimizer2State",
    ),
    _uniform(
        "sgd",
        state=StateBytes(weight_bytes=4, gradient_bytes=4),
        assumes="fp32 weights, plain SGD: no optimiser state at all",
        source="PyTorch documentation, torch.optim.SGD",
    ),
    _uniform(
        "sgd-momentum",
        state=StateBytes(weight_bytes=4, gradient_bytes=4, moment_bytes=4),
        assumes="fp32 weights, SGD with one momentum buffer",
        source="PyTorch documentation, torch.optim.SGD",
    ),
    Recipe(
        name="megatron-muon",
        hidden_matrices=StateBytes(weight_bytes=2, gradient_bytes=4, master_bytes=4, moment_bytes=4),
        others=_MIXED_FP32_GRADIENTS,
        assumes=(
            "as megatron, but hidden matrices have one fp32 momentum (Muon); embedding, head, norms and biases stay"
            " with Adam"
        ),
        source="Jordan et al., Muon, 2024, kellerjordan.github.io/posts/muon; Liu et al., 2025, arXiv:2502.16982",
    ),
    Recipe(
        name="fp8-transformer-engine",
        hidden_matrices=StateBytes(weight_bytes=2 + 1 + 1, gradient_bytes=4, master_bytes=4, moment_bytes=8),
        others=_MIXED_FP32_GRADIENTS,
        assumes=(
            "as megatron, and FP8 copies of hidden matrices, plain and transposed, stay beside the bf16 weights between"
            " micro-batches"
        ),
        source="Transformer Engine documentation, fp8_model_init and Linear.forward (is_first_microbatch)",
    ),
    Recipe(
        name="nvfp4-transformer-engine",
        hidden_matrices=StateBytes(
            weight_bytes=2 + _TWO_NVFP4_COPIES, gradient_bytes=4, master_bytes=4, moment_bytes=8
        ),
        others=_MIXED_FP32_GRADIENTS,
        assumes=(
            "as fp8-transformer-engine, with the two copies in NVFP4: blocks of 16 in each direction, an 8-bit scale"
            " for each (those of weights repeat over 16 rows), layers that stay wide left out"
        ),
        source=(
            "Transformer Engine documentation, NVFP4, Handling transposes, read in November 2026; NVIDIA, 2025,"
            " arXiv:2509.25149"
        ),
    ),
    Recipe(
        name="fp8-deepseek-v3",
        hidden_matrices=StateBytes(weight_bytes=1, gradient_bytes=4, master_bytes=4, moment_bytes=4),
        others=StateBytes(weight_bytes=2, gradient_bytes=4, master_bytes=4, moment_bytes=4),
        assumes=(
            "FP8 hidden matrices (one fp32 scale per 128 x 128 block neglected), fp32 gradients and master weights,"
            " bf16 Adam moments; the rest in bf16"
        ),
        source="DeepSeek-AI, DeepSeek-V3, 2024, arXiv:2412.19437, section 3.3",
    ),
)

RECIPES = MappingProxyType({recipe.name: recipe for recipe in _ALL})


def recipe_named(name: str) -> Recipe:
    """The recipe of this name.

    Raises: ValueError for an unknown name, listing the known ones

    >>> recipe_named("megatron").source
    'Megatron Core User Guide, Distributed Optimizer (bf16 parameters, fp32 gradients: 18, or 6 + 12/d)'
    """
    checks.one_of(RECIPES, recipe=name)
    return RECIPES[name]


def check_zero_stage(recipe: Recipe, *, zero_stage: int) -> None:
    """Refuse a ZeRO stage at which the practice keeps other copies than the recipe says.

    >>> check_zero_stage(recipe_named("deepspeed"), zero_stage=3)
    Traceback (most recent call last):
        ...
    ValueError: recipe='deepspeed' holds at ZeRO stages 0, 1, 2, not at zero_stage=3; try recipe='deepspeed-zero-3'
    """
    if zero_stage not in recipe.zero_stages:
        stages = f"ZeRO stage{'s' if len(recipe.zero_stages) > 1 else ''} {', '.join(map(str, recipe.zero_stages))}"
        hint = f"; try recipe={recipe.at_other_stages!r}" if recipe.at_other_stages else ""
        raise ValueError(f"recipe={recipe.name!r} holds at {stages}, not at zero_stage={zero_stage}{hint}")
