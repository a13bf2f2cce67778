"""Stored weights: how many of a model's weights take how many bits in the format that it is downloaded in.

Source: llama.cpp, src/llama-quant.cpp (what a GGUF file keeps in which blocks); OCP Microscaling Formats (MX) v1.0,
        2023; NVIDIA, Introducing NVFP4, 2025 (scales of blocks); Frantar et al., 2022, arXiv:2210.17323 (GPTQ's
        groups); llm-awq, awq/quantize/qmodule.py (a scale of 16 bits and a zero of 4 for each group), and GPTQModel,
        gptqmodel/nn_modules/qlinear (SUPPORTS_GROUP_SIZE: which groups kernels take); Hugging Face, transformers,
        docs/source/en/quantization/mxfp4.md (modules_to_not_convert of gpt-oss); Dettmers et al., 2023,
        arXiv:2305.14314, section 3 (NF4 and its scales)
"""

from collections.abc import Mapping
from dataclasses import replace

from threeloops import checks, dtypes, units
from threeloops.models.architecture import Model, MoeMlp
from threeloops.models.parameters import model_parameters
from threeloops.product_loop.compression import Groups
from threeloops.product_loop.gguf_files import file_weights
from threeloops.product_loop.gguf_formats import GGUF_FORMATS
from threeloops.product_loop.gguf_recipes import FILE_TYPES
from threeloops.product_loop.sizing.left_wide import by_module, left_wide
from threeloops.training_loop.updates.adapters import nf4_bits

WHOLE = ("fp32", "bf16", "fp16")  # every parameter alike
LAYERS_ONLY = (
    "fp8",
    "fp8-block",
    "int8",
    "mxfp8",
    "mxfp6",
    "mxfp4",
    "nvfp4",
)  # tables, norms and routers stay in 16 bits
EXPERTS_ONLY = ("mxfp4",)  # of a model that has them: attention stays in 16 bits, too, as gpt-oss is published
GROUPS = Groups(element_bits=4, group=128, scale_bits=16, zero_bits=4)  # what AWQ and GPTQ checkpoints use
# The same with groups of other sizes: zeros are stored where the grid is symmetric, too.
GROUPED = {
    f"{method}-g{size}": replace(GROUPS, group=size)
    for method, sizes in (("awq", (32, 64)), ("gptq", (16, 32, 64, 256, 512, 1024)))
    for size in sizes
}
# compressed-tensors' packed whole numbers: a scale for every group, and no zero.
PACKED = {
    "w4a16": replace(GROUPS, zero_bits=0),
    **{f"w4a16-g{size}": replace(GROUPS, group=size, zero_bits=0) for size in (32, 64)},
}
GROUPED |= PACKED
# bitsandbytes' 4 bits: the scale of 64 weights in 8 bits, or ("single") in 32.
BITSANDBYTES = {"nf4": nf4_bits(), "nf4-single": 4 + 32 / 64}
FORMATS = (*WHOLE, *LAYERS_ONLY, "awq", "gptq", *GROUPED, *BITSANDBYTES, *(name.lower() for name in FILE_TYPES))
WIDE = "tables, norms, routers"
BESIDE_EXPERTS = "all but the experts' matrices"
LEFT_WIDE = "what its config leaves wide"
WIDER = (WIDE, BESIDE_EXPERTS, LEFT_WIDE)  # no names of formats

Weights = Mapping[str, tuple[int, float]]  # what they are -> how many, bits of each


def weights_in(model: Model, wanted: str) -> Weights:
    """How many weights take how many bits each when the model is stored in this format.

    >>> from threeloops.models.catalogue import model
    >>> weights_in(model("llama-3-8b"), "nvfp4")
    {'nvfp4': (6979321856, 4.5), 'tables, norms, routers': (1050939392, 16.0)}
    >>> weights_in(model("llama-3-8b"), "gptq-g32")["gptq-g32"]
    (6979321856, 4.625)
    """
    checks.one_of(FORMATS, format=wanted)
    parameters = model_parameters(model)
    if wanted.upper() in FILE_TYPES:
        held = file_weights(model, file_type=wanted.upper())
        return {name: (number, GGUF_FORMATS[name].bits_per_weight) for name, number in held.items()}
    if wanted in WHOLE:
        return {wanted: (parameters.total, dtypes.BITS[wanted])}
    routers = sum(layer.router * count for layer, count in parameters.layers)
    narrow, wide, left = parameters.attention + parameters.mlp - routers, WIDE, 0
    if wanted in EXPERTS_ONLY and parameters.routed_experts:
        narrow, wide = _expert_matrices(model), BESIDE_EXPERTS
    elif wanted == model.stored.counted_as:
        left = left_wide(model)
    bits = dtypes.BITS[wanted] if wanted in LAYERS_ONLY else BITSANDBYTES.get(wanted)
    bits = bits or GROUPED.get(wanted, GROUPS).bits_per_weight
    head = parameters.head_matrix if (of_head := _head_format(model, wanted)) else 0
    rest = {wide: (parameters.total - narrow - head, dtypes.BITS["bf16"])}
    if wanted == model.stored.counted_as and (several := by_module(model)):
        left = narrow - sum(several.values())
        if left < 0:
            raise ValueError(
                f"the config of {model.name} lists some layers in two formats: ask for one of all, like bf16"
            )
        held = several | ({of_head: several.get(of_head, 0) + head} if of_head else {})
        formats: dict[str, tuple[int, float]] = {name: (count, dtypes.BITS[name]) for name, count in held.items()}
        return {**formats, LEFT_WIDE: (left, dtypes.BITS["bf16"]), **rest}
    kept = {LEFT_WIDE: (left, dtypes.BITS["bf16"])} if left else {}
    return {wanted: (narrow - left + head, bits), **kept, **rest}


def _head_format(model: Model, wanted: str) -> str:
    """The format of an output head that the checkpoint has in fewer bits; empty where it stays in 16."""
    said = model.stored.head if wanted == model.stored.counted_as else ""
    if said and not model_parameters(model).head:
        raise ValueError(
            f"the config of {model.name} has the head in {said}, and the head is the input table, which stays in 16"
            " bits: ask for a format of all its weights, like bf16"
        )
    return said


def _expert_matrices(model: Model) -> int:
    """Elements of all routed experts, without their biases."""
    if model.counted:
        return model.counted.experts
    return sum(
        count * moe.num_experts * moe.expert.num_matrices * (moe.latent or model.hidden) * moe.expert.intermediate
        for layer, count in model.groups
        if isinstance(moe := layer.mlp, MoeMlp)
    )


def weights_bytes_in(model: Model, wanted: str) -> float:
    """Bytes of the model's weights in this format, scales included."""
    return sum(number * bits for number, bits in weights_in(model, wanted).values()) / units.BITS_PER_BYTE


ROUNDED = (256, 128)  # hidden width and an expert's, to multiples of which vLLM's Marlin kernels for MXFP4 round up


def weights_bytes_rounded(model: Model) -> float:
    """Bytes of the model's weights in MXFP4 where an engine rounds both widths of its experts up.

    Source: vLLM, vllm/model_executor/layers/quantization/mxfp4.py (create_weights), 2025

    >>> from threeloops.models.catalogue import model
    >>> round(weights_bytes_rounded(model("gpt-oss-120b")) / 2**30, 2)  # vLLM's log says 65.9651
    65.89
    """
    up_hidden, up_expert = ROUNDED
    added = sum(
        count
        * moe.num_experts
        * moe.expert.num_matrices
        * (-(-hidden // up_hidden) * up_hidden * (-(-wide // up_expert) * up_expert) - hidden * wide)
        for layer, count in model.groups
        if isinstance(moe := layer.mlp, MoeMlp)
        for hidden, wide in [(moe.latent or model.hidden, moe.expert.intermediate)]
    )
    return weights_bytes_in(model, "mxfp4") + added * dtypes.bytes_per_element("mxfp4")


def experts_bytes_in(model: Model, wanted: str) -> float:
    """Bytes of all routed experts in this format; of a GGUF file at its mean width."""
    routed = model_parameters(model).routed_experts
    if wanted.upper() in FILE_TYPES:
        return routed * mean_weight_bytes(model, wanted)
    return routed * weights_in(model, wanted)[wanted][1] / units.BITS_PER_BYTE


def table_bytes_in(model: Model, wanted: str) -> tuple[float, float]:
    """Bytes of the input table and of the head in this format; of a GGUF file at its mean width.

    >>> from threeloops.models.catalogue import model
    >>> table_bytes_in(model("llama-3-8b"), "fp8")
    (1050673152.0, 1050673152.0)
    """
    parameters = model_parameters(model)
    if wanted.upper() in FILE_TYPES:
        width = mean_weight_bytes(model, wanted)
    else:
        width = dtypes.bytes_per_element(wanted if wanted in WHOLE else "bf16")
    if of_head := _head_format(model, wanted):
        bits = weights_in(model, wanted)[of_head][1]
        return parameters.embedding * width, parameters.head_matrix * bits / units.BITS_PER_BYTE
    return parameters.embedding * width, parameters.head_matrix * width


def mean_weight_bytes(model: Model, wanted: str) -> float:
    """Bytes of a weight in this format, on average over the model.

    >>> from threeloops.models.catalogue import model
    >>> round(mean_weight_bytes(model("llama-3-8b"), "awq"), 3)
    0.713
    """
    return weights_bytes_in(model, wanted) / model_parameters(model).total
