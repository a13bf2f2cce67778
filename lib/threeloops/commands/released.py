"""Names of released checkpoints: whose model they are, what their ending says about how the weights are stored, and
what only says when they came out.

>>> read_release("Qwen/Qwen2.5-14B-Instruct-GPTQ-Int4")
Release(base='Qwen/Qwen2.5-14B-Instruct', ending='GPTQ-Int4', stored='gptq', date='')
>>> read_release("DeepSeek-R1-0528")
Release(base='DeepSeek-R1', ending='', stored='', date='0528')
"""

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path

from threeloops import dtypes, spelling
from threeloops.commands.working import Working
from threeloops.models import catalogue
from threeloops.models.architecture import Model
from threeloops.product_loop.sizing.stored_weights import BITSANDBYTES, FORMATS, GROUPED, LAYERS_ONLY

# How an ending names a format -> the format that is counted here; empty where none is.
_ENDINGS = {
    r"fp8(?:-(?:dynamic|static|block|kv|perchannel|pertensor))*": "fp8",
    r"(?:nv)?fp4": "nvfp4",
    r"mxfp4": "mxfp4",
    r"mxfp8": "mxfp8",
    r"awq(?:-(?:int4|4bit|w4a16|marlin))?": "awq",
    r"gptq(?:-(?:int4|4bit|w4a16))?": "gptq",
    r"mlx-(?:\dbit|bf16|fp16)": "",
    r"(?:gptq-)?(?:int8|8bit|w8a8|w8a16)|quantized\.w8a(?:8|16)": "int8",
    r"bf16": "bf16",
    r"fp16": "fp16",
    r"unsloth-bnb-4bit": "",  # some layers are left wide
    r"bnb-4bit": "nf4",
    r"(?:quantized\.)?w4a16": "w4a16",
    r"int4|[2-6]bit|q4f16|gguf|exl2|exl3|mlx": "",
}
_GGUF_TYPE = r"i?q\d(?:_[a-z0-9]+)+"
_DATE = r"(?:2\d(?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])[0-3]\d)"  # 2507 is July 2025, 0528 the 28th of May
_PLACES = ("./", "../", "/", "~/", ".\\")  # how a path begins and no name does
# The flag of each command that says how weights are stored.
_STORED_BY = {"kv": "weights", "fit": "weights", "roofline": "weights", "serve": "weights"}

# Formats of checkpoints that may leave whole modules wide; gpt-oss' own is counted as it is published.
_MAY_LEAVE = {*LAYERS_ONLY, "awq", "gptq", *GROUPED, *BITSANDBYTES} - {"mxfp4"}
_LEFT_UNSAID = (
    "no name says which modules a checkpoint leaves in 16 bits (attention, first layers), its config.json does: give"
    " its path to count them so"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A checkpoint's name, taken apart."""

    base: str  # without what follows
    ending: str  # how its weights are stored, as it stands in the name
    stored: str  # the same as a format that is counted here; empty where the ending is none
    date: str


def read_release(typed: str) -> Release:
    """A name without its ending and its date; both are empty where it has none."""
    base, ending, stored = re.sub(r"(?:@[\w.-]+|:latest)$", "", typed.strip()), "", ""  # a revision says no shape
    file_type = re.search(rf"(?:[-_. ]qat)?[-_. :]({_GGUF_TYPE})(?:[-.]gguf)?$", base, re.IGNORECASE)
    if file_type and file_type[1].lower() in FORMATS:
        base, ending, stored = base[: file_type.start()], file_type[1], file_type[1].lower()
        base = re.sub(r"[-_. ]gguf$", "", base, flags=re.IGNORECASE)
    else:
        for pattern, name in _ENDINGS.items():
            found = re.search(rf"[-_. ]({pattern})$", base, re.IGNORECASE)
            if found:
                base, ending, stored = base[: found.start()], found[1], name
                break
    date = re.search(rf"[-_ ]({_DATE})$", base)
    return Release(
        base=base[: date.start()] if date else base, ending=ending, stored=stored, date=date[1] if date else ""
    )


def is_path(typed: str) -> bool:
    """Whether a file or a folder is meant, and no name."""
    return typed.lower().endswith(".json") or typed.startswith(_PLACES) or bool(typed and Path(typed).exists())


def known_name(typed: str, overlay: str | None) -> str:
    """The name as the catalogue may have it: without its ending, and without its date where that is not in it. What
    has no place there either way comes back as it is, as does a path.
    """
    if is_path(typed):
        return typed
    release = read_release(typed)
    dated = f"{release.base}-{release.date}"
    for name in (typed, *([dated] if release.date else []), release.base):
        if catalogue.fitting_keys(name, overlay=overlay):
            return name
    return typed


def read_as(command: str, given: argparse.Namespace, model: Model) -> str:
    """What was made of a name that says more than which model it is; empty for any other."""
    taken = known_name(given.model, given.catalog)
    if taken == given.model:
        return ""
    release = read_release(given.model)
    said = [f"{given.model} is read as {model.name}"]
    if release.date and taken == release.base:
        said.append(
            f"{release.date} is when it came out, and its context may be another than the {model.max_context:,} tokens"
            f" of {model.name}"
        )
    if release.ending:
        what = f"{release.ending} is how its weights are stored"
        said.append(_about_weights(command, given, what, release.stored))
    return "; ".join(said)


def with_model_said(command: str, working: Working, given: argparse.Namespace, model: Model) -> Working:
    """The working with what was made of the model's name, and what its checkpoint holds that is not counted."""
    said = read_as(command, given, model)
    if said:
        working = replace(
            working, inputs={"model": said, **working.inputs}, data=working.data | {"model_read_as": said}
        )
    if is_path(given.model) and model.stored.words:
        what = f"its config says that its weights are stored as {model.stored.words}"
        stored = _about_weights(command, given, what, model.stored.counted_as)
        working = replace(working, inputs={"weights stored": stored, **working.inputs})
        working = replace(working, data=working.data | {"weights_stored": stored})
    chosen = getattr(given, _STORED_BY.get(command, ""), None) or ""
    if not is_path(given.model) and chosen.lower() in _MAY_LEAVE and not model.stored.left:
        working = replace(working, assumes=(*working.assumes, _LEFT_UNSAID))
    if model.counted:
        working = replace(
            working,
            inputs={"counted on its class": model.counted.how, **working.inputs},
            data=working.data | {"counted_on_its_class": model.counted.how, "parameters": model.counted.total},
        )
    if model.not_counted:
        named = f"not counted of {model.name}: {', '.join(model.not_counted)}"
        working = replace(working, assumes=(*working.assumes, named))
    if model.noted:
        working = replace(working, assumes=(*working.assumes, *model.noted))
    if model.assumed:
        taken = f"left out of the config, so as the class of transformers has it: {', '.join(model.assumed)}"
        working = replace(working, assumes=(*working.assumes, taken))
    return working


def _about_weights(command: str, given: argparse.Namespace, what: str, stored: str) -> str:
    """Which flag counts weights as they are stored, and whether it was given; `what` says how they are."""
    flag = _STORED_BY.get(command)
    if flag is None:
        return f"{what} to be served, which this does not count"
    chosen = getattr(given, flag) or ""
    if not stored:
        return f"{what}, in a format that is not counted here" + (f": --{flag} {chosen} is" if chosen else "")
    if chosen and _same_format(chosen, stored):
        return f"{what}, as --{flag} {chosen} says"
    if chosen:
        return f"{what}, but --{flag} {chosen} is what is counted"
    beside = " beside --hardware" if command == "kv" else ""
    return f"{what}: --{flag} {stored}{beside} counts them"


def _same_format(one: str, other: str) -> bool:
    known = {name: dtypes.SPELLINGS.get(name, ()) for name in (*FORMATS, *dtypes.BITS)}
    return spelling.candidates(known, one) == [other]
