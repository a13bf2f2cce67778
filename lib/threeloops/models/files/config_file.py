"""A config.json as it lies on a disk: in any Unicode, and told apart from what is downloaded in its place.

>>> said_instead(b"version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 7\\n")
'is a Git LFS pointer and not the file itself: `git lfs pull` fetches that'
>>> unicode_text("{}".encode("utf-16"))
'{}'

Source: RFC 8259, 2019 (JSON is UTF-8, without comments and trailing commas); what the repositories of checkpoints hold
        beside config.json: Hugging Face transformers 5.23.0, peft, diffusers, https://github.com/huggingface
"""

import codecs
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from threeloops.models.files.gguf_header import MAGIC, gguf_config
from threeloops.units import MiB

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BINARY = {  # how a file begins -> what it is
    b"PK": "is a zip archive or a checkpoint of torch, the weights themselves: give the config.json beside it",
    b"\x1f\x8b": "is a gzip archive: unpack it, and give the config.json",
}
_WEB_ANSWERS = ("entry not found", "repository not found", "not found", "404", "invalid username", "access to model")
LARGEST_BYTES = 16 * MiB  # of a config.json; the largest known has some hundred thousand
# Fields by which a file that lies beside a config.json is known -> what it is. The first that has them all.
_BESIDE: dict[tuple[str, ...], str] = {
    ("weight_map",): "lists which file holds which weight (model.safetensors.index.json)",
    ("dim", "n_layers"): "is the params.json of the weights' first release, with other names for everything",
    ("log_history",): "is the record of a training run (trainer_state.json)",
    ("_diffusers_version",): "describes a part of a pipeline of diffusers, not a language model",
    ("image_processor_type",): "says how images are prepared (preprocessor_config.json)",
    ("processor_class", "feature_extractor_type"): "says how inputs are prepared (preprocessor_config.json)",
    ("added_tokens", "model"): "is a tokenizer (tokenizer.json)",
    ("word_embedding_dimension",): "says how sentence-transformers pools a text's tokens (1_Pooling/config.json)",
    ("__version__", "similarity_fn_name"): "describes sentence-transformers' use (config_sentence_transformers.json)",
    ("max_seq_length", "do_lower_case"): "says how sentence-transformers cuts texts (sentence_bert_config.json)",
    ("added_tokens_decoder",): "is a tokenizer's config (tokenizer_config.json)",
    ("tokenizer_class", "model_max_length"): "is a tokenizer's config (tokenizer_config.json)",
    ("zero_optimization",): "is a config of DeepSpeed",
    ("producer", "quantization"): "says how weights were quantised (hf_quant_config.json)",
    ("bits", "group_size"): "says how weights were quantised (quantize_config.json)",
    ("_from_model_config",): "says how text is generated (generation_config.json)",
    ("temperature",): "says how text is generated (generation_config.json)",
    ("do_sample",): "says how text is generated (generation_config.json)",
    ("eos_token_id", "transformers_version"): "says how text is generated (generation_config.json)",
    ("bos_token", "eos_token"): "lists special tokens (special_tokens_map.json)",
}


def read_config(path: Path) -> tuple[Mapping[str, Any], str]:
    """The object in a config.json, given the file or the folder that holds it, and a name for it; of a GGUF file, what
    its header says in its place.

    Raises: ValueError in one sentence for what is none, saying what it is instead where that shows
    """
    path = path.expanduser()
    file = path / "config.json" if path.is_dir() else path
    if path.is_dir() and not file.exists() and (others := sorted(path.glob("*.gguf"))):
        raise ValueError(f"{str(path)!r} holds no config.json but {others[0].name}: give that file")
    try:
        if _begins(file, MAGIC):
            return gguf_config(file), path.stem
        if file.stat().st_size > LARGEST_BYTES:
            raise ValueError(
                f"{str(file)!r} {_too_large(file)}; give the config.json of the model, which is some kilobytes"
            )
        raw = file.read_bytes()
    except OSError as error:
        raise ValueError(
            f"{str(file)!r} cannot be read ({error.strerror}); give a config.json or the folder that holds one"
        ) from error
    if instead := said_instead(raw):
        raise ValueError(f"{str(file)!r} {instead}")
    try:
        text = unicode_text(raw)
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(file)!r} is not text, in UTF-8 or UTF-16; give a config.json") from error
    try:
        content = json.loads(text, object_pairs_hook=_once)
    except _TwiceError as error:
        raise ValueError(f"{str(file)!r} {error}") from error
    except (ValueError, RecursionError) as error:
        hint = "" if isinstance(error, RecursionError) else _would_do(text)
        if file.suffix.lower() == ".gguf":
            raise ValueError(f"{str(file)!r} does not begin as a GGUF file does: download it again") from error
        raise ValueError(f"{str(file)!r} is not JSON: {_in_words(error)}{hint}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{str(file)!r} holds no object with fields but {str(content)[:40]!r}; give a config.json")
    return content, path.name if path.is_dir() else path.stem


class _TwiceError(Exception):
    """A field with two values."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a field may stand there twice only if it says the same."""
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content and content[name] != value:
            raise _TwiceError(f"says {name!r} twice, as {content[name]!r} and as {value!r}: take one of them out")
        content[name] = value
    return content


def unicode_text(raw: bytes) -> str:
    """The text of a file in UTF-8 or, if it says so by its first bytes, in UTF-16 or UTF-32; a mark is left out.

    Raises: UnicodeDecodeError for what is neither
    """
    for mark, encoding in _MARKS.items():
        if raw.startswith(mark):
            return raw.decode(encoding)
    if raw[:1] == b"{" and raw[1:2] == b"\0":
        return raw.decode("utf-16-le")
    if raw[:2] == b"\0{":
        return raw.decode("utf-16-be")
    return raw.decode("utf-8")


def _in_words(error: ValueError | RecursionError) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def said_instead(raw: bytes) -> str:
    """What a file is that is no JSON, by its beginning; empty if that does not show."""
    start = raw[:400].lstrip(codecs.BOM_UTF8).lstrip()
    if not start:
        return "is empty; give a config.json"
    for begins, what in _BINARY.items():
        if start.startswith(begins):
            return what
    if re.match(rb".{6}\0\0\{\"", raw[:10], re.DOTALL):  # the length of its header, then the header
        return "is a safetensors file, the weights themselves: give the config.json beside it"
    low = start.lower()
    if low.startswith(b"version https://git-lfs"):
        return "is a Git LFS pointer and not the file itself: `git lfs pull` fetches that"
    if low.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return "is a web page: download the file itself, at its address with /resolve/ or /raw/ for /blob/"
    if low.startswith(tuple(answer.encode() for answer in _WEB_ANSWERS)):
        line = low.splitlines()[0][:60].decode("ascii", "replace")
        return f"holds a host's answer, {line!r}, and not the file: check its address, and whether it needs a login"
    return ""


def what_lies_beside(content: Mapping[str, Any]) -> str:
    """What a JSON file without a model_type is, and what to give in its place; empty if that does not show.

    >>> what_lies_beside({"peft_type": "LORA", "base_model_name_or_path": "google/gemma-2-9b"})
    "is the config of an adapter (LORA) of 'google/gemma-2-9b': give that model, or its config.json"
    """
    if "peft_type" in content:
        base = content.get("base_model_name_or_path")
        of = f" of {base!r}: give that model, or its config.json" if base else ": give the config.json of its base"
        return f"is the config of an adapter ({content['peft_type']}){of}"
    if "lora_alpha" in content:
        return "is the config of an adapter, without its base model: give that model, or its config.json"
    if isinstance(content.get("error"), str):
        return f"holds a host's answer, {content['error'][:60]!r}, and not the file: check its address and your login"
    if "architectures" in content and content.keys() & {"hidden_size", "n_embd"}:
        return ""  # a config.json that lacks its type
    for fields, what in _BESIDE.items():
        if all(name in content for name in fields):
            return f"{what}: give the config.json beside it"
    for name, inner in content.items():
        if isinstance(inner, Mapping) and isinstance(inner.get("model_type"), str) and not name.endswith("_config"):
            return f"keeps the fields of a config within {name!r}: give what stands there as a file of its own"
    return ""


def _begins(file: Path, with_what: bytes) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(with_what)) == with_what


def _too_large(file: Path) -> str:
    with file.open("rb") as opened:
        return said_instead(opened.read(400)).split(":", maxsplit=1)[0] or "is too large for a config.json"


def _would_do(text: str) -> str:
    """What stands in the way, if it is one of the things that JSON lacks and people write."""
    if re.match(r"\s*\w+Config \{", text):
        return "; it begins with the name of a class, as a program prints a config: take that out"
    if re.match(r"\s*\{\s*'", text):
        return "; it is a dictionary of Python: JSON has double quotes, and true, false and null in small letters"
    if len(re.findall(r"^\s*\w+:\s", text, flags=re.MULTILINE)) > 1 and not text.lstrip().startswith("{"):
        return "; it looks like YAML: give the config.json that the checkpoint ships with"
    strings = r'"(?:[^"\\\n]|\\.)*"'
    bare = re.sub(rf"({strings})|//[^\n]*|/\*.*?\*/|#[^\n]*", lambda found: found[1] or "", text, flags=re.DOTALL)
    plain = re.sub(rf"({strings})|,(\s*[}}\]])", lambda found: found[1] or found[2], bare)
    try:
        json.loads(plain)
    except (ValueError, RecursionError):
        return ""
    commented, trailing = bare != text, plain != bare
    said = ["comments, which JSON does not have"] * commented + ["a comma before a closing bracket"] * trailing
    return f"; it has {' and '.join(said)}: take {'them' if commented else 'it'} out" if said else ""
