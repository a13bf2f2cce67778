"""`threeloops memory`: what one GPU holds that trains every weight."""

import argparse

from threeloops import dtypes
from threeloops.commands.memory import adapted
from threeloops.commands.memory.verdict import MOMENTS, said_of_fit
from threeloops.commands.named import memory_named, model_named
from threeloops.commands.working import Line, Working, plain, said_of_positions, share_of_memory
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Model, MoeMlp
from threeloops.models.parameter_buckets import layers_on_stage
from threeloops.training_loop.memory.fit import (
    RankMemory,
    Training,
    largest_micro_batch,
    largest_rank_memory,
    largest_sequence,
)
from threeloops.training_loop.memory.recipes import Recipe, recipe_named
from threeloops.training_loop.memory.stage_states import stage_states
from threeloops.units import fmt_bytes

CONTEXT = "Llama team, 2024, arXiv:2407.21783, section 3.3.2 (pieces of a sequence on context ranks)"
ZERO_OFFLOAD = "Ren et al., 2021, arXiv:2101.06840, section 4 (what waits on the host)"
HOST = {
    "optimiser": ZERO_OFFLOAD,
    "gradients": ZERO_OFFLOAD,
    "weights": "Rajbhandari et al., 2021, arXiv:2104.07857, section 5 (weights on the host, too)",
}
TASKS = "Hugging Face transformers 5.23.0, modeling_layers.py, GenericForSequenceClassification (a head for classes)"
HEADS = ("none: the last token's output is an embedding", "one score", "{} classes")


def working(training: Training, *, micro_batch: int, sequence: int, part: Part | None, share: float) -> Working:
    """The fullest stage of a training set-up, part by part; with an accelerator, the largest micro-batch and sequence
    that fit.
    """
    memory = largest_rank_memory(training, micro_batch=micro_batch, sequence=sequence)
    recipe = training.recipe if isinstance(training.recipe, Recipe) else recipe_named(training.recipe)
    host_bytes = stage_states(training, stage=memory.stage).total_bytes - memory.states.total_bytes
    return Working(
        title=f"Training memory of {training.model.name}, per GPU"
        + (f" of stage {memory.stage + 1} of {training.pp}, the fullest" if training.pp > 1 else ""),
        inputs={
            "recipe": f"{recipe.name}: {recipe.assumes}",
            "parallel": (
                f"dp {training.dp}, tp {training.tp}, pp {training.pp},"
                f"{f' cp {training.cp},' if training.cp > 1 else ''} ep {training.ep}; ZeRO stage {training.zero_stage}"
            ),
            **({} if training.classes is None else {"head": HEADS[min(training.classes, 2)].format(training.classes)}),
            **_on_the_host(host_bytes, training),
            "micro-batch": (
                f"{micro_batch} × {sequence:,} tokens{_here(sequence, training)}, {training.schedule},"
                f" {memory.in_flight:g} in flight"
            ),
            "worst moment": MOMENTS[memory.moment],
            "kernels": (
                f"{training.kernels}, recompute {training.recompute}, dropout {'on' if training.dropout else 'off'}"
            ),
        },
        lines=tuple(_lines(training, memory, recipe)),
        conclusion=_conclusion(training, memory, micro_batch=micro_batch, sequence=sequence, part=part, share=share)
        + said_of_positions(training.model, sequence),
        table=(
            (("one layer keeps", "bytes"), *((name, fmt_bytes(size, base=2)) for name, size in memory.saved_rows))
            if memory.saved_rows
            else ()
        ),
        assumes=memory.assumes,
        sources=(
            recipe.source,
            "Rajbhandari et al., 2019, arXiv:1910.02054 (ZeRO)",
            "Korthikanti et al., 2022, arXiv:2205.05198 (activations)",
            *((CONTEXT,) if training.cp > 1 else ()),
            *((HOST[training.offload],) if training.offload != "nothing" else ()),
            *((TASKS,) if training.classes is not None else ()),
        ),
        data={"stage": memory.stage, "host_bytes": host_bytes},
    )


def _here(sequence: int, training: Training) -> str:
    return f", {sequence // training.cp:,} of them here" if training.cp > 1 else ""


def _on_the_host(host_bytes: float, training: Training) -> dict[str, str]:
    if training.offload == "nothing":
        return {}
    return {"on the host": f"{fmt_bytes(host_bytes, base=2)} for this GPU ({training.offload})"}


def _lines(training: Training, memory: RankMemory, recipe: Recipe) -> list[Line]:
    """Every kind of bytes, then their sum."""
    states, layers = (
        memory.states,
        layers_on_stage(num_layers=training.model.num_layers, stage=memory.stage, pp=training.pp),
    )
    per_layer = memory.layer_activations_bytes / (memory.in_flight * layers) if memory.layer_activations_bytes else 0
    each = recipe.hidden_matrices
    rows = [
        (
            "weights",
            "parameters held here × weight bytes",
            _held(states.weights_bytes, each.weight_bytes, recipe),
            states.weights_bytes,
        ),
        (
            "gradients",
            "parameters held here × gradient bytes",
            _held(states.gradients_bytes, each.gradient_bytes, recipe),
            states.gradients_bytes,
        ),
        (
            "optimiser",
            "parameters held here × (master + copy + moments)",
            _held(states.optimiser_bytes, each.optimiser_bytes, recipe),
            states.optimiser_bytes,
        ),
        (
            "activations of the layers",
            "micro-batches in flight × layers × saved per layer",
            f"{plain(memory.in_flight)} × {layers} × {plain(per_layer)}",
            memory.layer_activations_bytes,
        ),
        (
            "embedding and head",
            "token look-up in flight + final norm, logits and loss with what they are turned into",
            f"{plain(memory.embedding_bytes)} + {plain(memory.head_bytes)}",
            memory.embedding_bytes + memory.head_bytes,
        ),
        (
            "brought back by recompute",
            "one layer's full activations less what is stored of it",
            plain(memory.recomputed_bytes),
            memory.recomputed_bytes,
        ),
        (
            "gathered weights",
            "ZeRO 3: whole layers at once, and the tables",
            plain(memory.gathered_bytes),
            memory.gathered_bytes,
        ),
        (
            "gradients handed out",
            "parameters of a unit × (gradient as made + as added up), and the head's that wait",
            plain(memory.handed_out_bytes),
            memory.handed_out_bytes,
        ),
        (
            "autocast's copies of weights",
            "16-bit copies that wait for the backward pass",
            plain(memory.weight_copies_bytes),
            memory.weight_copies_bytes,
        ),
    ]
    lines = [
        Line(name=name, formula=formula, numbers=numbers, value=value, unit="B", binary=True)
        for name, formula, numbers, value in rows
        if value
    ]
    total = " + ".join(plain(line.value) for line in lines)
    return [*lines, Line(name="total", formula="sum", numbers=total, value=memory.total_bytes, unit="B", binary=True)]


def _held(num_bytes: float, bytes_each: float, recipe: Recipe) -> str:
    """Parameters × bytes where the recipe treats all parameters alike; else the sum as it is."""
    return f"{plain(num_bytes / bytes_each)} × {bytes_each:g}" if recipe.uniform and bytes_each else plain(num_bytes)


def _conclusion(
    training: Training, memory: RankMemory, *, micro_batch: int, sequence: int, part: Part | None, share: float
) -> str:
    if part is None:
        return f"The fullest stage needs {fmt_bytes(memory.total_bytes, base=2)} per GPU."
    usable = part.capacity_bytes() * share_of_memory(share)
    largest = largest_micro_batch(training, sequence=sequence, usable_bytes=usable)
    longest = largest_sequence(training, micro_batch=micro_batch, usable_bytes=usable)
    return said_of_fit(
        memory.total_bytes, part, usable, largest=largest, longest=longest, micro_batch=micro_batch, sequence=sequence
    )


def from_flags(given: argparse.Namespace) -> Working:
    """The set-up that the flags describe, and what it holds."""
    dtype = dtypes.dtype_named(dtype=given.dtype)
    if dtype not in ("bf16", "fp16", "fp32"):
        raise ValueError(f"--dtype {given.dtype}: activations are counted in bf16, fp16 or fp32")
    if given.lora is not None:
        return adapted.from_flags(given, bytes_per_element=int(dtypes.bytes_per_element(dtype)))
    adapted.refuse_without_rank(given)
    if given.pp > 1 and given.micro_batches is None:
        raise ValueError(
            "a pipeline needs --micro-batches, how many run per step: they decide how many wait on the first stage, for"
            " example --micro-batches 16"
        )
    model = model_named(given.model, given.catalog)
    training = Training(
        model=model,
        recipe=given.recipe,
        zero_stage=given.zero,
        dp=given.dp,
        tp=given.tp,
        pp=given.pp,
        ep=given.ep,
        expert_tp=_expert_tp(given, model),
        sequence_parallel=given.sp,
        schedule=given.schedule,
        micro_batches=given.micro_batches or 1,
        chunks=given.chunks,
        bytes_per_element=int(dtypes.bytes_per_element(dtype)),
        kernels=given.kernels,
        dropout=given.dropout,
        recompute=given.recompute,
        gathered_layers=given.gathered if given.zero == 3 else None,
        vocab_multiple=given.vocab_multiple,
        cross_entropy=given.cross_entropy,
        cp=given.cp,
        offload=given.offload,
        classes=given.classes,
    )
    part = memory_named(given.hardware, given.catalog) if given.hardware else None
    return working(training, micro_batch=given.micro_batch, sequence=given.sequence, part=part, share=given.share)


def _expert_tp(given: argparse.Namespace, model: Model) -> int | None:
    """Tensor ranks of an expert; where there is one tensor rank there is nothing to choose."""
    if given.expert_tp is None and any(isinstance(layer.mlp, MoeMlp) for layer, _ in model.groups):
        if given.tp > 1:
            raise ValueError(
                f"--expert-tp must say how tensor ranks hold experts: 1 keeps each expert whole, {given.tp} splits it"
                " as the dense matrices are split"
            )
        return 1
    expert_tp: int | None = given.expert_tp
    return expert_tp
