"""What a config.json says about how its checkpoint's weights are stored.

>>> said_stored({"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}})
SaidStored(words='awq, 4 bits', counted_as='awq', left=(), by_module=(), head='')
>>> said_stored({"quantization_config": "fp8"})
Traceback (most recent call last):
    ...
ValueError: quantization_config='fp8' must be an object, like {"quant_method": "fp8"}, or be left out

Source: utils/quantization_config.py of Hugging Face transformers 5.23.0, https://github.com/huggingface/transformers
        (quant_method; bits; load_in_4bit, which bitsandbytes wrote without it); compressed-tensors,
        https://github.com/vllm-project/compressed-tensors (format); NVIDIA TensorRT Model Optimizer,
        https://github.com/NVIDIA/TensorRT-Model-Optimizer (quant_algo)
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from threeloops import checks, dtypes


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidStored:
    """How a checkpoint's weights are stored, in its config's words."""

    words: str = ""  # empty where nothing is said
    counted_as: str = ""  # the format that is counted here; empty where none is
    left: tuple[str, ...] = ()  # modules that it leaves in 16 bits, as its list names them
    # of a checkpoint in several formats: each with its modules, the narrowest first; what none names has 16 bits
    by_module: tuple[tuple[str, tuple[str, ...]], ...] = ()
    head: str = ""  # the format of its output head; empty where that stays in 16 bits


# What a config says, whatever else it says -> the format that is counted here.
_COUNTED = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "mxfp4": "mxfp4",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
    "float-quantized": "fp8",
    "nvfp4-pack-quantized": "nvfp4",
    "mxfp4-pack-quantized": "mxfp4",
    "int-quantized": "int8",
}
# Counted with a scale and a zero for every group of these sizes; the first is the usual one, which a name leaves out.
_IN_FOUR_BITS = {"awq": (128, 32, 64), "gptq": (128, 16, 32, 64, 256, 512, 1024)}
_BITSANDBYTES = {"load_in_8bit": "int8", "load_in_4bit": "nf4"}
_PACKED = {128: "w4a16", 32: "w4a16-g32", 64: "w4a16-g64"}  # size of a group -> the format
# Under what names programs list modules that stay as they are, and what no list has to say: it is never converted here.
_LEFT = ("modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "llm_int8_skip_modules")
_OUTSIDE = re.compile(r"norm|vis(?:ion|ual)|projector|lm_head|embed_tokens|e_score_correction_bias|^mtp")
_PARTS = ("text_config", "thinker_config")
_NAME = 40  # letters of a name at most


def said_stored(config: Mapping[str, Any]) -> SaidStored:
    """How the weights are stored, by a config or its text's own part; nothing where neither says.

    Raises: ValueError for what no program writes there: another thing than an object, a method that is no name, a
            width that is no whole number
    """
    for name in ("quantization_config", "compression_config", "quantization"):
        if config.get(name) is not None:
            return _read(name, config[name])
    for part in _PARTS:
        inner = config.get(part)
        if isinstance(inner, Mapping) and (said := said_stored(inner)).words:
            return said
    return SaidStored()


def _read(field: str, said: object) -> SaidStored:
    if not isinstance(said, Mapping):
        example = said if _printable(said) else "fp8"
        raise ValueError(
            f'{field}={checks.shortened(said)} must be an object, like {{"quant_method": "{example}"}}, or be left out'
        )
    loaded = [name for name in _BITSANDBYTES if said.get(name) is True]
    method = said.get("quant_method")
    if method is None:
        method = "bitsandbytes" if loaded else ""
    elif not _printable(method):
        raise ValueError(
            f'{field} has quant_method={checks.shortened(method)}, which must be one method\'s name, like "fp8" or'
            ' "awq"; or take the field out'
        )
    bits = said.get("bits")
    if bits is not None:
        checks.positive(**{f"{field}.bits": bits})
    detail = next((said[name] for name in ("quant_algo", "format") if _printable(said.get(name))), "")
    left = _left_wide(said)
    if loaded:
        counted = _BITSANDBYTES[loaded[0]]
        if counted == "nf4" and said.get("bnb_4bit_use_double_quant") is not True:
            counted = "nf4-single"
        return SaidStored(words=f"{method}, {loaded[0]}", counted_as=counted, left=left)
    if by_module := _by_module(said):
        formats = " and ".join(counted for counted, _ in by_module)
        words = f"{method or 'modelopt'}, {formats} by a list of layers"
        head = _listed_head(said)
        words += f", the head in {head}" if head else ""
        return SaidStored(words=words, counted_as=by_module[0][0], by_module=by_module, head=head)
    width = f"{bits} bits" if bits else ""
    words = ", ".join(filter(None, (method, detail, width))) or "a format of its own"
    counted = _counted(method, detail, said)
    if said.get("lm_head") is not True:  # GPTQModel's and AutoRound's switch
        return SaidStored(words=words, counted_as=counted, left=left)
    return SaidStored(words=f"{words}, its head too", counted_as=counted, left=left, head=counted)


# NVIDIA's names for the format of one layer -> the format that is counted here.
_OF_A_LAYER = {
    "NVFP4": "nvfp4", "W4A16_NVFP4": "nvfp4", "MXFP8": "mxfp8", "FP8": "fp8", "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "FP8_PB_WO": "fp8-block", "FP8_BLOCK_SCALES": "fp8-block",
}  # fmt: skip


def _by_module(said: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The modules of a checkpoint in several formats, by format; nothing where one of them is not counted here."""
    listed = said.get("quantized_layers")
    if str(said.get("quant_algo")).upper() != "MIXED_PRECISION" or not isinstance(listed, Mapping):
        return ()
    found: dict[str, list[str]] = {counted: [] for counted in _OF_A_LAYER.values()}
    for module, one in listed.items():
        algo = str(one.get("quant_algo") if isinstance(one, Mapping) else one).upper()
        head = _is_head(module)
        if algo == "UNQUANTIZED" or (_OUTSIDE.search(module) and not head):
            continue
        if algo not in _OF_A_LAYER:
            return ()
        if head:
            continue
        found[_OF_A_LAYER[algo]].append(module)
    narrowest_first = sorted(found.items(), key=lambda one: dtypes.BITS[one[0]])
    return tuple((counted, tuple(modules)) for counted, modules in narrowest_first if modules)


def _is_head(module: str) -> bool:
    return module.split(".")[-1] == "lm_head" and not module.startswith("mtp")


def _listed_head(said: Mapping[str, Any]) -> str:
    """The format in which a list of layers that `_by_module` read has the head; empty where it stays in 16 bits."""
    heads = [one for module, one in said["quantized_layers"].items() if _is_head(module)]
    algos = {str(one.get("quant_algo") if isinstance(one, Mapping) else one).upper() for one in heads}
    return _OF_A_LAYER[algos.pop()] if len(algos) == 1 and algos <= _OF_A_LAYER.keys() else ""


def _left_wide(said: Mapping[str, Any]) -> tuple[str, ...]:
    """The modules that a list names as not converted; GPTQModel's `dynamic` marks them by "-:" before an expression."""
    listed = [entry for name in _LEFT if isinstance(said.get(name), list | tuple) for entry in said[name]]
    dynamic = said.get("dynamic")
    listed += [f"re:{name[2:]}" for name in dynamic if name.startswith("-:")] if isinstance(dynamic, Mapping) else []
    return tuple(entry for entry in listed if isinstance(entry, str) and entry and not _OUTSIDE.search(entry))


def _packed(said: Mapping[str, Any]) -> str:
    """compressed-tensors' packed whole numbers, where all are of one width with scales alone."""
    groups = said.get("config_groups")
    found = [group.get("weights") for group in groups.values()] if isinstance(groups, Mapping) else []
    if len(found) != 1 or not isinstance(found[0], Mapping):
        return ""
    bits, group, symmetric = (found[0].get(name) for name in ("num_bits", "group_size", "symmetric"))
    return _PACKED.get(group, "") if bits == 4 and symmetric is True and type(group) is int else ""


def _counted(method: str, detail: str, said: Mapping[str, Any]) -> str:
    if method in _IN_FOUR_BITS:
        usual, *others = _IN_FOUR_BITS[method]
        group = said.get("group_size", usual)
        if said.get("bits", 4) != 4 or group not in (usual, *others):
            return ""
        return method if group == usual else f"{method}-g{group:g}"
    if detail == "pack-quantized":
        return _packed(said)
    return _COUNTED.get(detail.lower() or method.lower(), "")


def _printable(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= _NAME and name.isprintable()
