"""Step memory: what one GPU holds at every moment of a training step, layer by layer forward and back, part by part.

>>> from threeloops.models.catalogue import model
>>> setup = Training(
...     model=model("llama-3-8b"),
...     recipe="megatron",
...     zero_stage=1,
...     dp=8,
...     tp=1,
...     pp=1,
...     sequence_parallel=False,
...     schedule="1f1b",
...     micro_batches=1,
...     bytes_per_element=2,
...     kernels="fused",
...     dropout=False,
...     recompute="full",
... )
>>> step = step_memory(setup, micro_batch=1, sequence=8192, every=1, host="nothing")
>>> step.peak.name, round(step.peak.total_bytes / 1e9, 1)
('backward, loss', 75.1)
>>> round(step.waiting_bytes / 2**30, 2)  # the layers' inputs, and what head and loss keep
6.04

Source: Korthikanti et al., 2022, arXiv:2205.05198, section 4 (activations); Ren et al., 2021, arXiv:2101.06840
        (optimiser state in host memory)
"""

from dataclasses import dataclass, replace

from threeloops import checks
from threeloops.training_loop.memory.fit import RankMemory, rank_memory, rank_moments
from threeloops.training_loop.memory.setup import Training

HOSTS = ("nothing", "optimiser")
PARTS = (
    "weights",
    "gradients",
    "optimiser state",
    "kept for backward",
    "run again",
    "head and loss",
    "gathered weights",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Bytes on the GPU at one moment, part by part in the order of PARTS."""

    name: str
    bytes_by_part: tuple[float, ...]

    @property
    def total_bytes(self) -> float:
        return sum(self.bytes_by_part)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMemory:
    """The moments of one step, and what lies in the host's memory meanwhile."""

    moments: tuple[Moment, ...]
    host_bytes: float
    assumes: tuple[str, ...]

    @property
    def peak(self) -> Moment:
        """The first moment of those with most bytes."""
        return max(self.moments, key=lambda moment: moment.total_bytes)

    @property
    def by_part(self) -> dict[str, list[float]]:
        """Part -> its bytes at every moment: the columns of a picture."""
        return {part: [moment.bytes_by_part[place] for moment in self.moments] for place, part in enumerate(PARTS)}

    @property
    def waiting_bytes(self) -> float:
        """What waits for the backward pass when the loss is there: what the layers, the head and the loss keep."""
        (loss,) = (moment for moment in self.moments if moment.name == "forward, loss")
        return sum(loss.bytes_by_part[PARTS.index(part)] for part in ("kept for backward", "head and loss"))


def step_memory(training: Training, *, micro_batch: int, sequence: int, every: int, host: str) -> StepMemory:
    """What one GPU holds after each layer's forward pass, at the loss, before each layer's backward pass, and at the
    update.

    Formula:  forward, layer i: states + kept so far; loss: + head, and backward + what it makes of its logits;
              backward, layer i: states + kept below + what its segment brought back, as far as i; update: states. Kept:
              i * layer, or one input per segment of `every` layers under full recomputation
    Units:    bytes; host="optimiser" moves the optimiser's share of the states to the host
    Assumes:  one pipeline stage and one micro-batch at a time; gradients have their place from the first moment (as
              in Megatron-LM; torch makes them during backward); a recipe without autocast and FSDP2's
              mixed precision; what memory.fit.rank_moments assumes, with which the largest moment agrees for every=1
    Raises:   ValueError with pipeline stages, those recipes, segments without full recomputation, or an unknown host
    Counted:  simulate.training_loop.recomputed_step.play
    Measured: measure.training_loop.watched_step.watch
    """
    checks.one_of(HOSTS, host=host)
    _check(training, every)
    layers = training.model.num_layers
    forward, loss, backward = rank_moments(training, stage=0, micro_batch=micro_batch, sequence=sequence)
    whole = rank_memory(replace(training, recompute="none"), stage=0, micro_batch=micro_batch, sequence=sequence)
    entry, block = forward.layer_activations_bytes / layers, whole.layer_activations_bytes / layers
    segments = training.recompute == "full"

    def kept(layer: int) -> float:
        """Bytes that wait when layers 1 to `layer` have run."""
        return (-(-layer // every) if segments else layer) * entry + forward.embedding_bytes

    def back(layer: int) -> float:
        """Bytes that were run again and are still there when the backward pass reaches this layer."""
        if not segments:
            return backward.recomputed_bytes
        return (layer - every * ((layer - 1) // every)) * block - entry

    states = _states(forward, host)
    ahead = backward.gathered_bytes
    moments = [
        *(
            Moment(name=f"forward, layer {layer}", bytes_by_part=(*states, kept(layer), 0, 0, ahead))
            for layer in range(1, layers + 1)
        ),
        Moment(
            name="forward, loss", bytes_by_part=(*states, kept(layers), 0, forward.head_bytes, forward.gathered_bytes)
        ),
        Moment(name="backward, loss", bytes_by_part=(*states, kept(layers), 0, loss.head_bytes, loss.gathered_bytes)),
        *(
            Moment(name=f"backward, layer {layer}", bytes_by_part=(*states, kept(layer), back(layer), 0, ahead))
            for layer in range(layers, 0, -1)
        ),
        Moment(name="update", bytes_by_part=(*states, 0, 0, 0, 0)),
    ]
    host_bytes = forward.states.optimiser_bytes if host == "optimiser" else 0
    return StepMemory(moments=tuple(moments), host_bytes=host_bytes, assumes=training.assumes)


def host_traffic_bytes(training: Training, *, sharded_parameters: float) -> float:
    """Bytes that cross between GPU and host in a step when the optimiser lives on the host: gradients down, new
    weights up.

    Formula:  (gradient bytes + weight bytes) * parameters whose update this rank makes
    Assumes:  gradients travel as they are kept, weights as they are computed with; one update per step
    Raises:   ValueError for a recipe whose hidden matrices differ from the rest
    Source:   Ren et al., 2021, arXiv:2101.06840, section 4.1
    Measured: tests.training_loop.test_training_fit.test_a_host_that_updates_sends_and_gets_every_value_once
    """
    checks.positive(sharded_parameters=sharded_parameters)
    recipe = training.used_recipe
    if not recipe.uniform:
        raise ValueError(
            f"recipe={recipe.name!r} treats hidden matrices and the rest differently; state traffic for each kind of"
            " parameter"
        )
    return (recipe.others.gradient_bytes + recipe.others.weight_bytes) * sharded_parameters


def _states(memory: RankMemory, host: str) -> tuple[float, float, float]:
    states = memory.states
    return states.weights_bytes, states.gradients_bytes, 0 if host == "optimiser" else states.optimiser_bytes


def _check(training: Training, every: int) -> None:
    if training.pp > 1:
        raise ValueError(f"pp={training.pp} must be 1: a pipeline's stages hold several micro-batches, see in_flight")
    if training.used_recipe.gathered_weight_bytes is not None:
        raise ValueError(
            f"recipe={training.used_recipe.name!r} hands whole gradients out unit by unit, which are not followed here"
        )
    if training.used_recipe.autocast:
        raise ValueError(
            f"recipe={training.used_recipe.name!r} makes copies of weights layer by layer, which are not followed here"
        )
    checks.count(every=every)
    if every > 1 and training.recompute != "full":
        raise ValueError(f"every={every} needs recompute='full'; recompute={training.recompute!r} has no segments")
    if every > training.model.num_layers:
        raise ValueError(f"every={every} must be at most the model's {training.model.num_layers} layers")
