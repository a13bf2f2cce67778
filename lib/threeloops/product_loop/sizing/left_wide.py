"""Left wide: what a checkpoint in fewer bits keeps in 16, by the names that its config lists.

A list names modules: whole (`model.layers.0.self_attn.q_proj`), from their beginning (`model.layers.0.self_attn*`), or
by a regular expression (`re:.*shared_experts.*`). A part of a layer counts as left wide when the matrix that brings its
result back to the width of the model is.

>>> from threeloops.models.catalogue import model
>>> covered_layers(("re:.*self_attn.*", "model.layers.0*"), "attention", layers=range(3))
3
>>> covered_layers(("re:.*self_attn.*", "model.layers.0*"), "dense", layers=range(3))
1

Source: which lists there are and how they are matched: Hugging Face transformers 5.23.0,
        src/transformers/quantizers/quantizers_utils.py (should_convert_module),
        https://github.com/huggingface/transformers; compressed-tensors, src/compressed_tensors/utils/match.py,
        https://github.com/vllm-project/compressed-tensors; NVIDIA Model Optimizer, as vLLM reads its files,
        vllm/model_executor/layers/quantization/modelopt.py (is_layer_excluded),
        https://github.com/vllm-project/vllm
"""

import fnmatch
import functools
import re
from collections.abc import Callable

from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.layers.parameter_counts import LayerParameters
from threeloops.models.layers.states import KimiDelta
from threeloops.models.parameters import model_parameters

# What stands before and after a layer's number in the names of checkpoints.
_BEFORE: tuple[str, ...] = (
    "model.layers.",
    "model.language_model.layers.",
    "language_model.model.layers.",
    "layers.",
    "backbone.layers.",
    "language_model.backbone.layers.",
)
_OUT_OF: dict[str, tuple[str, ...]] = {
    "attention": ("self_attn.o_proj", "attn.o_proj", "attn.wo_b", "attention.dense", "mixer.o_proj"),
    "recurrent": ("linear_attn.out_proj", "mixer.out_proj", "mamba.out_proj", "conv.out_proj"),
    "dense": ("mlp.down_proj", "feed_forward.down_proj", "mixer.down_proj"),
    "shared": (
        "mlp.shared_experts.down_proj",
        "mlp.shared_expert.down_proj",
        "block_sparse_moe.shared_experts.down_proj",
        "feed_forward.shared_expert.down_proj",
        "mixer.shared_experts.down_proj",
        "ffn.shared_experts.w2",
    ),
    "experts": (
        "mlp.experts.0.down_proj",
        "mlp.experts.down_proj",
        "block_sparse_moe.experts.0.w2",
        "feed_forward.experts.0.down_proj",
        "feed_forward.experts.down_proj",
        "mixer.experts.0.down_proj",
        "mixer.experts.down_proj",
        "ffn.experts.0.w2",
    ),
}
_SIZES: dict[str, Callable[[LayerParameters], int]] = {
    "attention": lambda layer: layer.attention,
    "recurrent": lambda layer: layer.attention,
    "dense": lambda layer: layer.dense_mlp,
    "shared": lambda layer: layer.shared_experts,
    "experts": lambda layer: layer.routed_experts,
}


def left_wide(model: Model) -> int:
    """Weights of the layers that the model's checkpoint leaves in 16 bits.

    Formula:  sum over parts of (weights of the part in all layers) × (layers named) / (layers that have it)
    Assumes:  layers that have a part have it equally large where a list names some of them; no list splits a part, nor
              names the experts of all layers
    Source:   as the module
    Measured: tests.product_loop.sizing.test_left_wide.on_the_class

    >>> from threeloops.models.catalogue import model
    >>> left_wide(model("llama-3-8b"))
    0
    """
    named = model.stored.left
    return 0 if model.counted else _named(model, named, all_experts_mean_beside=True)


def by_module(model: Model) -> dict[str, int]:
    """Weights of the layers in each format of a checkpoint that has several, as its config lists modules by format.

    Assumes:  as `left_wide`
    Raises:   ValueError where the list names what no part of a layer is called here, or nothing of a format
    Source:   as the module (modelopt.py, ModelOptMixedPrecisionConfig)
    Counted:  tests.product_loop.sizing.test_left_wide.on_the_class

    >>> from threeloops.models.catalogue import model
    >>> by_module(model("llama-3-8b"))
    {}
    """
    listed = model.stored.by_module
    if listed and model.counted:
        raise ValueError(f"{model.name} is counted on its class, which does not say which layers are {listed[0][0]}")
    found = {stored: _named(model, modules, all_experts_mean_beside=False) for stored, modules in listed}
    for stored, modules in listed:
        strange = [module for module in modules if not _is_of_a_layer(module)]
        if strange or not found[stored]:
            raise ValueError(
                f"the config of {model.name} lists {(strange or modules)[0]!r} in {stored}, and no weights of a layer"
                " that are counted here are called so: ask for a format of all its weights, like bf16"
            )
    return found


_NUMBER = re.compile(r"\.\d+(?=\.|$)")


@functools.cache
def _part_names() -> frozenset[str]:
    """What the parts of layers are called, with a sign in every number's place."""
    return frozenset(
        _NUMBER.sub(".#", f"{before}0.{out_of}") for before in _BEFORE for part in _OUT_OF.values() for out_of in part
    )


@functools.cache
def _is_of_a_layer(module: str) -> bool:
    """Whether a list's entry is a part that is known here, holds one, or is another matrix of one. Layers of which each
    has a `mixer` of its own kind are not told apart by that name alone.
    """
    if module.startswith("re:") or "*" in module:
        return any(covered_layers((module,), part, layers=range(1000)) for part in _OUT_OF)
    name = _NUMBER.sub(".#", module)
    beside = name.rpartition(".")[0]
    if any(known == name or (beside and known.rpartition(".")[0] == beside) for known in _part_names()):
        return not name.endswith(".mixer")
    whole = any(known.startswith(f"{name}.") for known in _part_names())
    return whole and not name.endswith(".mixer") and not name.startswith("backbone.layers.#")


def _named(model: Model, named: tuple[str, ...], *, all_experts_mean_beside: bool) -> int:
    if not named:
        return 0
    _refuse_some_mixers(model, named)
    sizes = model_parameters(model).layers
    with_experts = _with_experts(model)
    layers_named = {
        part: covered_layers(
            named, part, layers=with_experts if part in ("shared", "experts") else range(model.num_layers)
        )
        for part in _SIZES
    }
    if all_experts_mean_beside and layers_named["experts"] == len(
        with_experts
    ):  # it converts something: Gemma 4 calls what is beside experts `mlp`
        layers_named |= {"experts": 0, "shared": layers_named["dense"]}
    whole = 0
    for part, named_in in layers_named.items():
        held = [
            (_SIZES[part](size), count)
            for (layer, _), (size, count) in zip(model.groups, sizes, strict=True)
            if part in _parts_of(layer) and _SIZES[part](size)
        ]
        layers = sum(count for _, count in held)
        if layers:
            whole += round(sum(size * count for size, count in held) * min(layers, named_in) / layers)
    return whole


def _refuse_some_mixers(model: Model, named: tuple[str, ...]) -> None:
    """Refuse a list that names some layers whole where each has one part of three kinds, all called `mixer`: a `Model`
    does not say which layer has which.
    """
    if not any(layer.attention is None or layer.mlp is None for layer, _ in model.groups):
        return
    within = _covers(named)
    for before in _BEFORE:
        mixers = [f"{before}{layer}.mixer" for layer in range(model.num_layers)]
        whole = [mixer for mixer in mixers if within(f"{mixer}.o_proj") and within(f"{mixer}.out_proj")]
        if 0 < len(whole) < model.num_layers:
            raise ValueError(
                f"the config of {model.name} lists all of {whole[0]!r}, and which part that layer has is not known:"
                " ask for a format of all its weights, like bf16"
            )


def _with_experts(model: Model) -> range:
    """The layers that may have experts: those behind the dense ones, where these come first."""
    first, count = model.groups[0]
    sparse = any(isinstance(layer.mlp, MoeMlp) for layer, _ in model.groups)
    return range(count if sparse and isinstance(first.mlp, DenseMlp) else 0, model.num_layers)


def _parts_of(layer: Layer) -> tuple[str, ...]:
    """Which of the parts a layer may have: attention, or a state in its place."""
    attends = isinstance(layer.attention, Attention | LatentAttention | KimiDelta)  # which is called so there, too
    return ("attention" if attends else "recurrent", "dense", "shared", "experts")


@functools.cache
def covered_layers(named: tuple[str, ...], part: str, *, layers: range) -> int:
    """In how many of these layers the list names this part.

    Source:   as the module
    """
    within = _covers(named)
    return max(
        sum(within(f"{before}{layer}.{out_of}") for layer in layers) for before in _BEFORE for out_of in _OUT_OF[part]
    )


@functools.cache
def _covers(named: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a list names a module or what it lies in."""
    expressions = [entry.removeprefix("re:") for entry in named if entry.startswith("re:")]
    globs = [entry for entry in named if "*" in entry and not entry.startswith("re:")]
    beginnings = tuple(entry[:-1] for entry in globs if entry.find("*") == len(entry) - 1 and len(entry) > 1)
    expressions += [fnmatch.translate(entry) for entry in globs if not (entry[:-1] in beginnings and entry[-1] == "*")]
    compiled = [found for entry in expressions if (found := _compiled(entry))]
    plain = {entry for entry in named if "*" not in entry and not entry.startswith("re:")}
    within = [f".{entry}." for entry in plain if ".layers." not in entry]

    def covers(module: str) -> bool:
        parts = module.split(".")
        above = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return (
            module.startswith(beginnings)
            or not plain.isdisjoint(above)
            or any(entry in f".{module}." for entry in within)
            or any(found.match(name) for found in compiled for name in above)
        )

    return covers


def _compiled(expression: str) -> re.Pattern[str] | None:
    try:
        return re.compile(expression)
    except (re.error, OverflowError, RecursionError):
        return None
