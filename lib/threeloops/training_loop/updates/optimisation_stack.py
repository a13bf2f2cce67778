"""Optimisation stack: one training job on one GPU, whose step is built from parts, so that every repair acts on its
own part and nothing else.

Loading runs beside the device, the parts of the device one after another. So repairs neither add up nor multiply:
each is worth what its part is worth when its turn comes. Memory comes from the same set-up.

Source: parts as in their own modules: optimisers (bytes per update), model_flops (products), fusion (what lies
        between them), memory.fit (memory),
scaling (which side is the bottleneck)
"""

from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.inner_loop import scaling
from threeloops.inner_loop.fusion import Operation, fused_bytes, separate_bytes
from threeloops.models import model_flops
from threeloops.models.architecture import DenseMlp, Model
from threeloops.models.parameters import model_parameters
from threeloops.training_loop.memory import fit
from threeloops.training_loop.memory.rank_states import ModelStates
from threeloops.training_loop.memory.recipes import recipe_named
from threeloops.training_loop.updates import optimisers
from threeloops.units import hour

PRECISIONS, UPDATES = ("fp32", "tf32", "bf16"), ("foreach", "fused", "fused 8-bit")

# What lies between a block's products in GPT-2, in tensors as wide as the hidden size: the sum with the residual
# stream, and the norm behind it;
RESIDUAL = (Operation("stream'", ("stream", "block")), Operation("normed", ("stream'",)))
# and as wide as the feed-forward block: GELU by its tanh polynomial, in the plain operations in which it is usually
# written.
ACTIVATION = (
    Operation("cube", ("x",)),
    Operation("scaled", ("cube",)),
    Operation("inner", ("x", "scaled")),
    Operation("argument", ("inner",)),
    Operation("tanh", ("argument",)),
    Operation("plus", ("tanh",)),
    Operation("half", ("x",)),
    Operation("out", ("half", "plus")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the job runs on."""

    matrix_flops_per_s: dict[str, float]  # that large products reach, by precision
    memory_bytes_per_s: float
    usable_bytes: float
    sample_s: float  # one worker's processor time to prepare one sequence
    dollars_per_hour: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Where the switches stand."""

    batch: int = 8  # sequences per update
    workers: int = 1
    precision: str = "fp32"
    compiled: bool = False
    update: str = "foreach"
    micro_batches: int = 1
    checkpointing: bool = False

    def __post_init__(self) -> None:
        checks.count(batch=self.batch, workers=self.workers, micro_batches=self.micro_batches)
        checks.one_of(PRECISIONS, precision=self.precision)
        checks.one_of(UPDATES, update=self.update)
        checks.divides(part="micro_batches", part_value=self.micro_batches, whole="batch", whole_value=self.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacked:
    """One update: its seconds by part, and the bytes at its worst moment."""

    step: scaling.JobStep
    tokens: int
    memory_bytes: float
    states: ModelStates
    usable_bytes: float
    dollars_per_hour: float

    @property
    def fits(self) -> bool:
        return self.memory_bytes <= self.usable_bytes

    @property
    def total_s(self) -> float:
        return self.step.total_s

    @property
    def pace(self) -> str:
        """What sets the time of a step."""
        return "loader" if self.step.loader_s > self.step.busy_s else "device"

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.total_s

    def dollars(self, *, tokens: float) -> float:
        """Dollars for training on so many tokens, if the job fits and nothing stops it."""
        checks.positive(tokens=tokens)
        return tokens / self.tokens_per_s / hour * self.dollars_per_hour


def between_bytes(model: Model, *, compiled: bool, bytes_per_element: float) -> float:
    """Bytes per token that one forward pass moves between its products.

    Formula:  layers * bytes_per_element * (2 * residual chain * hidden + activation chain * intermediate)
    Assumes:  dense blocks with two norms and GELU in plain operations; compiled: each chain is one kernel
    Raises:   ValueError for a model of another kind
    Counted:  tests.training_loop.test_optimisation_stack.test_tensors_between_products_are_read_and_written_one_by_one
    """
    total = 0.0
    for layer, num_layers in model.groups:
        mlp = layer.mlp
        if not isinstance(mlp, DenseMlp) or mlp.gated or layer.num_norms != 2:
            raise ValueError("between_bytes knows dense blocks with two norms and an ungated activation, as in GPT-2")
        total += num_layers * (
            2 * _chain(RESIDUAL, compiled) * model.hidden + _chain(ACTIVATION, compiled) * mlp.intermediate
        )
    return total * bytes_per_element


def _chain(chain: tuple[Operation, ...], compiled: bool) -> float:
    """Tensors that a chain reads and writes."""
    sizes = {name: 1.0 for step in chain for name in (*step.inputs, step.output)}
    needed = [step.output for step in chain if step.output in ("stream'", "normed", "out")]
    return fused_bytes(chain, sizes=sizes, needed=needed) if compiled else separate_bytes(chain, sizes=sizes)


def stacked(model: Model, machine: Machine, setup: Setup) -> Stacked:
    """The step and the memory of a set-up, sequences as long as the model's context.

    Formula:  step = max(loader, micro-batches * (products + between) + update);
              loader = batch * sample_s / workers; products = FLOPs / measured rate; between = 3 passes * bytes /
              memory bandwidth; update = bytes per parameter / memory bandwidth. Checkpointing runs every layer's
              forward pass once more
    Assumes:  a backward pass has twice the forward's kernels and bytes; vector kernels are memory-bound; workers have
              a core each; fp32 matmuls run on CUDA cores (torch's default), tf32 ones on tensor cores with
              fp32 in memory; products reach the same rate at any micro-batch; the host issues kernels faster than the
              device runs them, true of models this wide
    Counted:  simulate.inner_loop.step.play
    """
    sequence = model.max_context
    micro, passes = setup.batch // setup.micro_batches, 4 if setup.checkpointing else 3
    element = 2 if setup.precision == "bf16" else 4
    flops = model_flops.training_flops(
        model, batch=micro, sequence=sequence, causal="exact", recompute="full" if setup.checkpointing else "none"
    )
    products_s = flops.hardware / machine.matrix_flops_per_s[setup.precision]
    moved = passes * micro * sequence * between_bytes(model, compiled=setup.compiled, bytes_per_element=element)
    between_s = moved / machine.memory_bytes_per_s
    parameters, memory = model_parameters(model).total, _memory(model, setup, micro)
    device_s = {
        "matmuls": setup.micro_batches * products_s,
        "between matmuls": setup.micro_batches * between_s,
        "update": _update_bytes(parameters, setup) / machine.memory_bytes_per_s,
    }
    return Stacked(
        step=scaling.JobStep(loader_s=setup.batch * machine.sample_s / setup.workers, device_s=device_s),
        tokens=setup.batch * sequence,
        memory_bytes=memory.total_bytes,
        states=memory.states,
        usable_bytes=machine.usable_bytes,
        dollars_per_hour=machine.dollars_per_hour,
    )


def _update_bytes(parameters: int, setup: Setup) -> float:
    if setup.update == "fused 8-bit":
        return optimisers.narrow_update_bytes(
            num_parameters=parameters, moment_bytes=recipe_named("autocast-adam-8bit").others.moment_bytes
        )
    return optimisers.update_bytes(
        num_parameters=parameters, kernels="separate" if setup.update == "foreach" else "one", bytes_per_element=4
    )


def _memory(model: Model, setup: Setup, micro: int) -> fit.RankMemory:
    """fp32 weights in every precision; bf16 is autocast, tf32 only multiplies differently."""
    recipe = recipe_named("autocast-adam-8bit" if setup.update == "fused 8-bit" else "autocast")
    training = fit.Training(
        model=model,
        recipe=replace(recipe, autocast=setup.precision == "bf16"),
        zero_stage=0,
        dp=1,
        tp=1,
        pp=1,
        sequence_parallel=False,
        schedule="1f1b",
        micro_batches=setup.micro_batches,
        bytes_per_element=2 if setup.precision == "bf16" else 4,
        kernels="fused" if setup.compiled else "sdpa",
        dropout=False,
        recompute="full" if setup.checkpointing else "none",
    )
    return fit.largest_rank_memory(training, micro_batch=micro, sequence=model.max_context)
