"""The header of a GGUF file, read as the config that it was converted from: sizes, and what its tensors say besides.

Source: ggml, docs/gguf.md (the layout, version 3); llama.cpp, gguf-py/gguf/constants.py (names of fields and tensors)
"""

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from threeloops.models.files.gguf_hybrids import HYBRIDS, READ_BY_LAYER, hybrid_fields

MAGIC = b"GGUF"
ELEMENTS = "_tensor_elements"  # of all tensors, where the file is whole: what the count is held against
VERSIONS = (2, 3)
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LONGEST = 2**31  # bytes of a string, elements of an array
# The file's architecture -> the model_type whose class it was converted from; with experts, another.
_TYPES = {
    "llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen3moe": "qwen3_moe", "gemma": "gemma",
    "gemma2": "gemma2", "gemma3": "gemma3_text", "phi3": "phi3", "gpt-oss": "gpt_oss", "granite": "granite",
    "smollm3": "smollm3", "seed_oss": "seed_oss", "olmo2": "olmo2", "arcee": "arcee",
}  # fmt: skip
_TYPES |= {architecture: model_type for architecture, (model_type, _) in HYBRIDS.items()}
_WITH_EXPERTS = {"llama": "mixtral"}
# The file's field, without its architecture -> the config's.
_FIELDS = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "feed_forward_length": "intermediate_size",
    "expert_count": "num_local_experts",
    "expert_used_count": "num_experts_per_tok",
    "attention.sliding_window": "sliding_window",
}
_NEEDED = ("embedding_length", "block_count", "attention.head_count")  # without which nothing is known
_EXPERT_WIDTH = {"qwen3_moe": "moe_intermediate_size", "gpt_oss": "intermediate_size"}
# hidden / heads in their classes
_NO_HEAD_DIM = ("phi3", "olmo2", "granite", "smollm3", "lfm2", "granitemoehybrid", "jamba")
_READS_WINDOW = ("gemma2", "gemma3_text", "gpt_oss")


def gguf_config(path: Path) -> dict[str, Any]:
    """The fields of a config.json that the header of this file says, and how many elements its tensors have.

    Assumes:  the window of a type that llama.cpp reads without one (Mistral 7B as llama) is not in the file
    Raises:   ValueError for a cut-off header, a version or an architecture that is not read, and keys and values of
              unequal width
    """
    try:
        with path.open("rb") as opened:
            fields, tensors = _header(opened)
    except (struct.error, UnicodeDecodeError, EOFError) as error:
        raise ValueError(f"{str(path)!r} is a GGUF file whose header is cut off or damaged") from error
    architecture = str(fields.get("general.architecture"))
    if architecture not in _TYPES:
        raise ValueError(
            f"{str(path)!r} is a GGUF file of the architecture {architecture!r}, whose header is not read; give the"
            " config.json that it was made from"
        )
    return _as_config(fields, tensors, architecture, str(path))


def _as_config(
    fields: Mapping[str, Any], tensors: Mapping[str, tuple[int, ...]], architecture: str, path: str
) -> dict[str, Any]:
    def said(name: str) -> Any:
        return fields.get(f"{architecture}.{name}")

    missing = [f"{architecture}.{name}" for name in _NEEDED if said(name) is None]
    if missing:
        raise ValueError(f"{path!r} is a GGUF file without {' and '.join(missing)}; give the config.json instead")
    model_type = _WITH_EXPERTS.get(architecture, _TYPES[architecture]) if said("expert_count") else _TYPES[architecture]
    config: dict[str, Any] = {"model_type": model_type}
    for name, own in _FIELDS.items():
        value = said(name)
        if isinstance(value, list) and architecture in HYBRIDS and name in READ_BY_LAYER:
            continue
        if isinstance(value, list):  # a number for each layer
            if len(set(value)) != 1:
                raise ValueError(f"{path!r} has layers of unequal {name}, which is not read")
            value = value[0]
        if value is not None and (value or name != "expert_count"):
            config[own] = value
    if model_type not in _READS_WINDOW:
        config.pop("sliding_window", None)
        config |= {"sliding_window": None} if model_type in ("mixtral", "phi3") else {}
    if model_type in _EXPERT_WIDTH and said("expert_feed_forward_length"):
        config[_EXPERT_WIDTH[model_type]] = said("expert_feed_forward_length")
    key, value = said("attention.key_length"), said("attention.value_length")
    if key != value:
        raise ValueError(f"{path!r} has keys of {key} and values of {value}, which are not read apart")
    even = config["hidden_size"] / config["num_attention_heads"] if key else None
    if key and (key != even or model_type not in _NO_HEAD_DIM):
        config["head_dim"] = key
    if "token_embd.weight" in tensors:
        config["vocab_size"] = tensors["token_embd.weight"][-1]
        config["tie_word_embeddings"] = "output.weight" not in tensors
    if model_type in ("llama", "qwen3", "seed_oss"):
        config["attention_bias"] = "blk.0.attn_q.bias" in tensors
    if architecture in HYBRIDS:
        try:
            config |= hybrid_fields(architecture, said, tensors, whole=fields.get("split.count", 0) <= 1)
        except ValueError as error:
            raise ValueError(
                f"{path!r} is a GGUF file that is not understood: {error}; give the config.json"
            ) from error
    if fields.get("split.count", 0) <= 1:
        config[ELEMENTS] = sum(math.prod(dims) for name, dims in tensors.items() if not _no_parameter(name))
    return config


def _no_parameter(name: str) -> bool:
    """Tables of rotary factors, and the correction of a router's choice, which a model keeps as a buffer."""
    return name.startswith("rope_") or ".exp_probs_b" in name


def _header(opened: BinaryIO) -> tuple[dict[str, Any], dict[str, tuple[int, ...]]]:
    """Fields, and the dimensions of every tensor."""
    if opened.read(4) != MAGIC:
        raise EOFError
    (version,) = _read(opened, "I")
    if version not in VERSIONS:
        raise ValueError(f"a GGUF file of version {version} is not read; versions {VERSIONS[0]} and {VERSIONS[1]} are")
    number_of_tensors, number_of_fields = _read(opened, "QQ")
    fields = {}
    for _ in range(number_of_fields):
        name = _text(opened)
        (kind,) = _read(opened, "I")
        fields[name] = _value(opened, kind)
    tensors = {}
    for _ in range(number_of_tensors):
        name = _text(opened)
        (dimensions,) = _read(opened, "I")
        tensors[name] = _read(opened, f"{dimensions}Q")
        _read(opened, "IQ")  # type and place
    return fields, tensors


def _read(opened: BinaryIO, what: str) -> tuple[Any, ...]:
    return struct.unpack(f"<{what}", opened.read(struct.calcsize(f"<{what}")))


def _text(opened: BinaryIO) -> str:
    (length,) = _read(opened, "Q")
    raw = opened.read(min(length, _LONGEST))
    if len(raw) < length:
        raise EOFError
    return raw.decode("utf-8", "replace")


def _value(opened: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _text(opened)
    if kind != _ARRAY:
        if kind not in _NUMBERS:
            raise EOFError
        return _read(opened, _NUMBERS[kind])[0]
    (inner,), (length,) = _read(opened, "I"), _read(opened, "Q")
    if length > _LONGEST:
        raise EOFError
    return [_value(opened, inner) for _ in range(length)]
