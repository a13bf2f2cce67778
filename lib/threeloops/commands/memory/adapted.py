"""`threeloops memory --lora`: what one GPU holds that trains adapters beside frozen weights."""

import argparse

from threeloops import checks
from threeloops.commands.memory.verdict import MOMENTS, said_of_fit
from threeloops.commands.named import memory_named, model_named
from threeloops.commands.working import Line, Working, plain, said_of_positions, share_of_memory
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Model
from threeloops.models.parameter_buckets import stage_buckets
from threeloops.training_loop.updates.adapted_memory import (
    AdaptedMemory,
    adapted_memory,
    largest_adapted_micro_batch,
    largest_adapted_sequence,
)
from threeloops.training_loop.updates.adapted_setup import BASES, AdapterTraining
from threeloops.training_loop.updates.adapters import ATTENTION, MLP, layer_matrices
from threeloops.units import fmt_bytes

# What a flag of --targets may say: our names, those of transformers' modules, and groups of them.
TARGETS = {
    **{name: (name,) for name in ATTENTION + MLP},
    **dict(zip(("q_proj", "k_proj", "v_proj", "o_proj"), ((name,) for name in ATTENTION), strict=True)),
    **dict(zip(("gate_proj", "up_proj", "down_proj"), ((name,) for name in MLP), strict=True)),
    "attention": ATTENTION,
    "mlp": MLP,
    "all": ATTENTION + MLP,
}
# Flag -> what it does, for whoever gives it without --lora.
ONLY_ADAPTERS = {
    "targets": "--targets says which matrices carry adapters",
    "base": "--base says how frozen weights are stored",
    "adapter_dropout": "--adapter-dropout is dropout before adapters",
    "dora": "--dora adds magnitudes to adapters",
}


def refuse_without_rank(given: argparse.Namespace) -> None:
    """Say of a flag about adapters that it needs their rank."""
    for name, what in ONLY_ADAPTERS.items():
        if getattr(given, name):
            raise ValueError(f"{what}: give their rank too, for example --lora 16")


def from_flags(given: argparse.Namespace, *, bytes_per_element: int) -> Working:
    """The set-up that the flags describe, and what it holds."""
    if not given.targets or not given.base:
        missing = "--targets, which matrices carry adapters, for example --targets query,value or --targets all"
        stored = "--base, how frozen weights are stored: bf16 (LoRA) or nf4 (QLoRA)"
        raise ValueError(f"--lora needs {missing if not given.targets else stored}")
    split = [f"--{name}" for name in ("tp", "pp", "cp", "ep") if getattr(given, name) > 1] + ["--sp"] * given.sp
    split += ["--classes"] * (given.classes is not None)
    split += ["--offload"] * (given.offload != "nothing")
    split += ["--vocab-multiple"] * bool(given.vocab_multiple)
    if split:
        raise ValueError(f"adapters are counted for data parallelism and ZeRO (--dp, --zero), not for {split[0]}")
    model = model_named(given.model, given.catalog)
    training = AdapterTraining(
        model=model,
        rank=given.lora,
        targets=targets(given.targets, model),
        base=given.base,
        recipe=given.recipe,
        bytes_per_element=bytes_per_element,
        kernels=given.kernels,
        recompute=given.recompute,
        zero_stage=given.zero,
        dp=given.dp,
        dropout=given.dropout,
        adapter_dropout=given.adapter_dropout,
        magnitudes=given.dora,
        gathered_layers=given.gathered if given.zero == 3 else None,
        cross_entropy=given.cross_entropy,
    )
    part = memory_named(given.hardware, given.catalog) if given.hardware else None
    return working(training, micro_batch=given.micro_batch, sequence=given.sequence, part=part, share=given.share)


def targets(typed: str, model: Model) -> tuple[str, ...]:
    """Matrices by the names that people give them; of a group those that the model has."""
    had = _matrices_of(model)
    found: list[str] = []
    for word in typed.replace(" ", "").split(","):
        checks.one_of(TARGETS, targets=word)
        named = TARGETS[word]
        missing = [name for name in named if name not in had]
        if missing and (len(named) == 1 or not set(missing) <= {"gate"}):
            raise ValueError(
                f"--targets {word}: {model.name} has no such matrix to carry an adapter"
                f"{' (adapters on experts are not counted)' if had == set(ATTENTION) else ''}; it has"
                f" {', '.join(name for name in ATTENTION + MLP if name in had)}"
            )
        found += [name for name in named if name in had]
    return tuple(dict.fromkeys(found))


def _matrices_of(model: Model) -> set[str]:
    return {name for layer, _ in model.groups for name in layer_matrices(layer, hidden=model.hidden)}


def working(training: AdapterTraining, *, micro_batch: int, sequence: int, part: Part | None, share: float) -> Working:
    """What one GPU holds at its fullest, part by part; with an accelerator, the largest micro-batch and sequence that
    fit.
    """
    memory, model = adapted_memory(training, micro_batch=micro_batch, sequence=sequence), training.model
    recipe, dora = training.used_recipe, training.magnitudes
    how = f"rank {training.rank} on {', '.join(training.targets)}" + (", with magnitudes (DoRA)" if dora else "")
    return Working(
        title=f"Training memory of adapters on {model.name}, per GPU",
        inputs={
            "adapters": how + (", dropout before each" if training.adapter_dropout else ""),
            "base": f"{training.base}: {BASES[training.base][1]}; frozen",
            "recipe": f"{recipe.name}: {recipe.assumes}",
            "parallel": f"dp {training.dp}; ZeRO stage {training.zero_stage}",
            "micro-batch": f"{micro_batch} × {sequence:,} tokens",
            "worst moment": MOMENTS[memory.moment],
            "kernels": (
                f"{training.kernels}, recompute {training.recompute}, dropout {'on' if training.dropout else 'off'}"
            ),
        },
        lines=tuple(_lines(training, memory)),
        conclusion=_conclusion(training, memory, micro_batch=micro_batch, sequence=sequence, part=part, share=share)
        + said_of_positions(training.model, sequence),
        table=(("one layer keeps", "bytes"), *((name, fmt_bytes(size, base=2)) for name, size in memory.saved_rows)),
        assumes=training.assumes,
        sources=(
            recipe.source,
            "Hu et al., 2021, arXiv:2106.09685 (LoRA)",
            *(("Dettmers et al., 2023, arXiv:2305.14314 (QLoRA)",) if training.quantised else ()),
            *(("Liu et al., 2024, arXiv:2402.09353 (DoRA)",) if dora else ()),
            "Korthikanti et al., 2022, arXiv:2205.05198 (activations)",
        ),
    )


def _lines(training: AdapterTraining, memory: AdaptedMemory) -> list[Line]:
    """Trained parameters, every kind of bytes, and their sum."""
    rows = [
        ("frozen weights", *_frozen(training), memory.frozen_bytes),
        *_states(training, memory),
        (
            "activations of the layers",
            "layers × saved per layer",
            " + ".join(f"{count} × {plain(kept.total_bytes)}" for kept, count in memory.layer_kinds),
            memory.layer_activations_bytes,
        ),
        ("look-up", "what a norm or dropout behind the table keeps", "", memory.embedding_bytes),
        ("head and loss", "final norm, logits and loss with what they are turned into", "", memory.head_bytes),
        ("brought back by recompute", "one layer's activations less what is stored of it", "", memory.recomputed_bytes),
        ("dequantised matrix", "the largest, as its matmul reads it", "", memory.dequantised_bytes),
        ("gathered weights", "ZeRO 3: whole layers at once, and the tables", "", memory.gathered_bytes),
        ("autocast's copies of adapters", "16-bit copies of both matrices", "", memory.weight_copies_bytes),
    ]
    lines = [
        Line(name=name, formula=formula, numbers=numbers or plain(value), value=value, unit="B", binary=True)
        for name, formula, numbers, value in rows
        if value
    ]
    total = " + ".join(plain(line.value) for line in lines)
    return [
        _trained(training),
        *lines,
        Line(name="total", formula="sum", numbers=total, value=memory.total_bytes, unit="B", binary=True),
    ]


def _trained(training: AdapterTraining) -> Line:
    rank = training.rank
    terms = [f"{count} × {rank} × ({plain(i)} + {plain(o)})" for i, o, count in training.matrices]
    terms += [f"{count} × {plain(o)}" for _, o, count in training.matrices] if training.magnitudes else []
    return Line(
        name="trained parameters",
        formula="layers × rank × (inputs + outputs), matrix by matrix"
        + (", and layers × outputs" if training.magnitudes else ""),
        numbers=" + ".join(terms),
        value=training.trained_parameters,
        unit="",
    )


def _frozen(training: AdapterTraining) -> tuple[str, str]:
    held, (bits, _) = stage_buckets(training.model, stage=0, pp=1), BASES[training.base]
    rest = held.total - held.matrices
    formula = "matrices of the layers × bits / 8 + the rest × bytes of an activation"
    numbers = f"{plain(held.matrices)} × {bits:.12g} / 8 + {plain(rest)} × {training.bytes_per_element}"
    if training.zero_stage < 3 or training.dp == 1:
        return formula, numbers
    return f"({formula}) / dp", f"({numbers}) / {training.dp}"


def _states(training: AdapterTraining, memory: AdaptedMemory) -> list[tuple[str, str, str, float]]:
    """Weights, gradients and optimiser state of what is trained, each over the ranks that share it."""
    states, each = memory.adapters, training.used_recipe.others
    rows = (
        ("adapters", "weight", each.weight_bytes, 3, states.weights_bytes),
        ("gradients", "gradient", each.gradient_bytes, 2, states.gradients_bytes),
        ("optimiser", "master, copy and moment", each.optimiser_bytes, 1, states.optimiser_bytes),
    )
    return [
        (
            name,
            f"trained parameters × {what} bytes" + (" / dp" if shared else ""),
            f"{plain(training.trained_parameters)} × {size:g}" + (f" / {training.dp}" if shared else ""),
            value,
        )
        for name, what, size, stage, value in rows
        for shared in (training.dp > 1 and training.zero_stage >= stage,)
    ]


def _conclusion(
    training: AdapterTraining,
    memory: AdaptedMemory,
    *,
    micro_batch: int,
    sequence: int,
    part: Part | None,
    share: float,
) -> str:
    needed = fmt_bytes(memory.total_bytes, base=2)
    if part is None:
        return f"Adapters need {needed} per GPU."
    usable = part.capacity_bytes() * share_of_memory(share)
    largest = largest_adapted_micro_batch(training, sequence=sequence, usable_bytes=usable)
    longest = largest_adapted_sequence(training, micro_batch=micro_batch, usable_bytes=usable)
    return said_of_fit(
        memory.total_bytes, part, usable, largest=largest, longest=longest, micro_batch=micro_batch, sequence=sequence
    )
