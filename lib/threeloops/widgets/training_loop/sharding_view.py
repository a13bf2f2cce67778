"""Sharding view: what the explorer shows for a state, as figure, sentences and table. No widget in here: it is
computed and tested without a browser.

>>> shown = view(State(way="zero-3", model="llama-3-8b", sequence=4096, recompute="full"))
>>> print(shown.summary.split(";")[0])
ZeRO-3 (FSDP): the fullest GPU holds 42.5 GB and has room on an 80 GB card (85.5 GB usable)
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from threeloops import checks
from threeloops.facts import hardware
from threeloops.figures.training_loop.sharding_map import Piece, sharding_map
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters
from threeloops.training_loop.memory.fit import RankMemory, Training, rank_memory
from threeloops.training_loop.network import traffic
from threeloops.training_loop.parallelism import pipelines
from threeloops.units import GB, fmt_bytes
from threeloops.widgets.view import View

GPUS = 4
WAYS = {
    "DDP: copies": "ddp",
    "ZeRO-1: optimiser state in shards": "zero-1",
    "ZeRO-2: and gradients": "zero-2",
    "ZeRO-3 (FSDP): and weights": "zero-3",
    "tensor parallelism": "tp",
    "pipeline": "pp",
}
SHORT = {
    "ddp": "DDP",
    "zero-1": "ZeRO-1",
    "zero-2": "ZeRO-2",
    "zero-3": "ZeRO-3 (FSDP)",
    "tp": "Tensor parallelism",
    "pp": "Pipeline",
}
MODELS = {"Llama 3 8B": "llama-3-8b", "Llama 2 13B": "llama-2-13b", "Llama 3 70B": "llama-3-70b"}
SEQUENCES = (1024, 2048, 4096, 8192)
RECOMPUTE = {"nothing recomputed": "none", "all recomputed": "full"}
KINDS = ("weights", "gradients", "optimiser state", "activations")
GATHERED = "weights gathered for a moment"
COLUMNS = ("GPU", *KINDS, "gathered", "in all")
STRIPES = 8  # groups of layers that are drawn one by one where every layer is cut
CARD = "h100-sxm5"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    way: str
    model: str
    sequence: int
    recompute: str

    def __post_init__(self) -> None:
        checks.one_of(WAYS.values(), way=self.way)
        checks.one_of(MODELS.values(), model=self.model)
        checks.one_of(RECOMPUTE.values(), recompute=self.recompute)
        if self.sequence not in SEQUENCES:
            raise ValueError(f"sequence={self.sequence!r} must be one of {', '.join(map(str, SEQUENCES))}")


@functools.lru_cache(maxsize=256)
def ranks(state: State) -> tuple[RankMemory, ...]:
    """Memory of the four GPUs in a step of four sequences: one each, or all four one after another where the GPUs
    share each sequence.
    """
    tp, pp = (GPUS if state.way == "tp" else 1), (GPUS if state.way == "pp" else 1)
    training = Training(
        model=catalogue.model(state.model),
        recipe="zero-paper",
        zero_stage={"zero-1": 1, "zero-2": 2, "zero-3": 3}.get(state.way, 0),
        dp=GPUS // (tp * pp),
        tp=tp,
        pp=pp,
        sequence_parallel=tp > 1,
        schedule="1f1b",
        micro_batches=GPUS if pp > 1 else 1,
        bytes_per_element=2,
        kernels="fused",
        dropout=False,
        recompute=state.recompute,
        gathered_layers=2,
    )
    return tuple(
        rank_memory(training, stage=gpu if pp > 1 else 0, micro_batch=1, sequence=state.sequence) for gpu in range(GPUS)
    )


def sent_bytes(state: State) -> float:
    """Bytes that the busiest GPU sends in that step."""
    model = catalogue.model(state.model)
    if state.way == "tp":
        each = traffic.tensor_parallel_traffic(
            tokens=state.sequence,
            hidden=model.hidden,
            num_layers=model.num_layers,
            tp=GPUS,
            bytes_per_element=2,
            sequence_parallel=True,
            regather_input=True,
        )
        return GPUS * each.total_bytes
    if state.way == "pp":  # a GPU in the middle sends activations on and gradients back
        return (
            2
            * GPUS
            * pipelines.boundary_bytes(micro_batch=1, sequence=state.sequence, hidden=model.hidden, bytes_per_element=2)
        )
    stage = {"ddp": 0, "zero-1": 1, "zero-2": 2, "zero-3": 3}[state.way]
    total = model_parameters(model).total
    return traffic.data_parallel_traffic(
        zero_stage=stage, num_parameters=total, dp=GPUS, bytes_per_gradient=2, bytes_per_parameter=2
    ).total_bytes


def _amounts(memory: RankMemory) -> dict[str, float]:
    states = memory.states
    return dict(
        zip(
            KINDS,
            (states.weights_bytes, states.gradients_bytes, states.optimiser_bytes, memory.activations_bytes),
            strict=True,
        )
    )


def _cuts(state: State, kind: str, gpu: int) -> list[tuple[float, float]]:
    """The part of the model, from 0 to 1, for which a GPU keeps this kind."""
    way, own = state.way, (gpu / GPUS, (gpu + 1) / GPUS)
    if way == "pp":  # the first stage has the embedding table as well, the last the head
        sizes = [memory.states.weights_bytes for memory in ranks(state)]
        return [(sum(sizes[:gpu]) / sum(sizes), min(1.0, sum(sizes[: gpu + 1]) / sum(sizes)))]
    if (
        kind == "activations"
        or way == "ddp"
        or (way == "zero-1" and kind != "optimiser state")
        or (way == "zero-2" and kind == "weights")
    ):
        return [(0.0, 1.0)]
    if way in ("zero-1", "zero-2"):
        return [own]
    return [((stripe + own[0]) / STRIPES, (stripe + own[1]) / STRIPES) for stripe in range(STRIPES)]


def _pieces(state: State) -> Iterator[Piece]:
    total = model_parameters(catalogue.model(state.model)).total
    for gpu, memory in enumerate(ranks(state)):
        if memory.gathered_bytes:
            width = memory.gathered_bytes / (2 * total)  # whole layers, two bytes per parameter
            words = (
                f"GPU {gpu + 1}: {fmt_bytes(memory.gathered_bytes, base=10)} of whole weights, gathered for a moment"
            )
            yield Piece(gpu=gpu, kind=GATHERED, left=0.4, right=0.4 + width, height=2, words=words)
        for kind, amount in _amounts(memory).items():
            cuts = _cuts(state, kind, gpu)
            height = amount / (total * sum(right - left for left, right in cuts))
            for left, right in cuts:
                yield Piece(
                    gpu=gpu,
                    kind=kind,
                    left=left,
                    right=right,
                    height=height,
                    words=f"GPU {gpu + 1}: {fmt_bytes(amount, base=10)} of {kind}",
                )


@functools.lru_cache(maxsize=64)
def _slots(model: str, sequence: int, recompute: str) -> tuple[tuple[str, float], ...]:
    """The tallest piece of each kind in any of the ways: the scale stays while one goes through them."""
    tallest = dict.fromkeys(KINDS, 0.0)
    for way in WAYS.values():
        for piece in _pieces(State(way=way, model=model, sequence=sequence, recompute=recompute)):
            if piece.kind in tallest:
                tallest[piece.kind] = max(tallest[piece.kind], piece.height)
    return tuple(tallest.items())


def view(state: State) -> View:
    """What to show for a state."""
    held, short = ranks(state), SHORT[state.way]
    label = next(name for name, key in MODELS.items() if key == state.model)
    usable = hardware.part(CARD)["usable_bytes"]
    fullest = max(memory.total_bytes for memory in held)
    room = (
        f"has room on an 80 GB card ({fmt_bytes(usable, base=10)} usable)"
        if fullest <= usable
        else "does not fit on an 80 GB card"
    )
    states = sum(memory.states.total_bytes for memory in held)
    copies = states / (16 * model_parameters(catalogue.model(state.model)).total)
    summary = (
        f"{short}: the fullest GPU holds {fmt_bytes(fullest, base=10)} and {room}; together the four keep"
        f" {fmt_bytes(states, base=10)} of model states, {copies:.2f} copies, and"
        f" {fmt_bytes(sum(m.activations_bytes for m in held), base=10)} of activations; in a step of four sequences of"
        f" {state.sequence:,} tokens the busiest GPU sends {fmt_bytes(sent_bytes(state), base=10)}."
    )
    rows = tuple(_row(gpu, memory) for gpu, memory in enumerate(held))
    figure = sharding_map(
        list(_pieces(state)),
        slots=dict(_slots(state.model, state.sequence, state.recompute)),
        names=[f"GPU {gpu + 1}: {fmt_bytes(memory.total_bytes, base=10)}" for gpu, memory in enumerate(held)],
        title=f"{label}, {short}: {_finding(state.way)}",
        caption=(
            f"Left to right: first layer to last{_drawn_as(state)}. Numbers: bytes per parameter of weights,"
            " gradients, optimiser state, activations; equal areas are equal bytes."
        ),
        alt=f"{label}, {short}. "
        + " ".join(
            f"GPU {row[0]}: " + ", ".join(f"{c} {v}" for c, v in zip(COLUMNS[1:], row[1:], strict=True)) + "."
            for row in rows
        ),
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=rows)


def _row(gpu: int, memory: RankMemory) -> tuple[str, ...]:
    amounts = (*_amounts(memory).values(), memory.gathered_bytes, memory.total_bytes)
    return (str(gpu + 1), *(f"{amount / GB:.1f} GB" for amount in amounts))


def _drawn_as(state: State) -> str:
    """How many layers are drawn, where every layer is cut."""
    cut = state.way in ("zero-3", "tp")
    return f" ({catalogue.model(state.model).num_layers} layers, drawn as {STRIPES})" if cut else ""


def _finding(way: str) -> str:
    return {
        "ddp": "everything four times",
        "zero-1": "each GPU updates its quarter",
        "zero-2": "each GPU keeps a quarter of the gradients",
        "zero-3": "every layer in four parts, whole only at work",
        "tp": "every layer in four parts, and its activations too",
        "pp": "whole layers, in four groups",
    }[way]
