"""Budget: what of a card's memory the weights and caches may fill, by the flags that `kv` and `fit` have for it."""

import argparse
import re
from dataclasses import dataclass, replace

from threeloops import dtypes, spelling, units
from threeloops.commands.named import GivenMemory
from threeloops.commands.typed import quantity, whole
from threeloops.commands.working import Line, plain, share_of_memory
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Model
from threeloops.product_loop.sizing.stored_weights import (
    EXPERTS_ONLY,
    FORMATS,
    ROUNDED,
    WIDER,
    weights_bytes_in,
    weights_bytes_rounded,
    weights_in,
)

WEIGHTS_HELP = (
    "how the weights are stored: bf16, fp8, nvfp4, mxfp4, awq, gptq, gptq-g32 (groups of 32), nf4, q4_k_m, q8_0, …"
)

_KNOWN = (
    "Known: fp32, bf16, fp16, fp8, fp8-block, int8, mxfp8, mxfp6, mxfp4, nvfp4, awq, gptq, w4a16 (with their groups, as"
    " gptq-g32), nf4 and llama.cpp's types of files, iq1_s to q8_0."
)
# What says only how many bits -> what has as many.
_WIDTHS: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("int4", "4bit", "4bits", "w4"), ("awq", "gptq", "w4a16", "nf4", "nvfp4", "q4_k_m")
)
_WIDTHS |= dict.fromkeys(("8bit", "8bits", "w8"), ("fp8", "int8", "mxfp8", "q8_0"))

# What an engine keeps besides, under the flag that says how much.
_BESIDES = {
    "activations": "of each GPU, for the activations of an engine's largest step, like 2GiB (default none)",
    "graphs": "of each GPU, for CUDA graphs that the engine takes from its share (default none)",
    "other": "of each GPU, for all else: the context, buffers of exchanges (default none)",
}
ROOM_HINT = (
    "for an engine's own needs give --share, --activations, --graphs and --other, as its log prints them (vLLM with"
    " Llama 3.1 8B on an RTX 3090: 2.07 GiB of activations and 0.35 GiB besides)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An accelerator, the share of it that may be used, and what an engine takes of that before weights and caches."""

    part: Part
    share: float
    besides: dict[str, float]  # what for -> bytes, of what was given

    @property
    def room_bytes(self) -> float:
        """Of each GPU, for weights and caches."""
        return self.part.capacity_bytes() * share_of_memory(self.share) - sum(self.besides.values())

    @property
    def formula(self) -> str:
        return " - ".join(("memory × share", *self.besides))

    @property
    def numbers(self) -> str:
        return " - ".join((f"{plain(self.part.capacity_bytes())} × {self.share:g}", *map(plain, self.besides.values())))


def add_budget_flags(command: argparse.ArgumentParser) -> None:
    """What of the memory may be used, and how many GPUs share a model."""
    command.add_argument(
        "--gpus", "--tp", dest="tp", type=whole, default=1, help="that share the model, as tensor-parallel ranks"
    )
    add_share_flag(command)
    for name, what in _BESIDES.items():
        command.add_argument(f"--{name}", metavar="SIZE", help=what)


def add_share_flag(command: argparse.ArgumentParser, *, default: float = 1.0) -> None:
    """How much of each GPU's memory may be used."""
    command.add_argument(
        "--share",
        "--utilisation",
        dest="share",
        type=_portion,
        default=default,
        help=f"share of the memory that may be used, above 0 to 1, or in percent (default {default:g})",
    )


def _portion(text: str) -> float:
    """A share as 0.9 or 90%."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a share of the memory, like 0.9 or 90%") from None


def budget_of(given: argparse.Namespace, part: Part) -> Budget:
    """The budget that the flags give."""
    besides = {name: _size(name, size) for name in _BESIDES if (size := getattr(given, name)) is not None}
    return Budget(part=part, share=given.share, besides=besides)


def _size(name: str, typed: str) -> float:
    """Bytes, as typed behind a flag."""
    try:
        return quantity(typed, "B")
    except ValueError as error:
        raise ValueError(f"--{name} {typed}: {error}") from error


def besides_without_hardware(given: argparse.Namespace) -> str:
    """The first flag of these that was given and says nothing where there is no accelerator; empty for none."""
    return next((f"--{name}" for name in _BESIDES if getattr(given, name) is not None), "")


def weights_format(typed: str) -> str:
    """A format of weights by its name in any spelling; a width alone fits several."""
    if found := _WIDTHS.get(re.sub("[^a-z0-9]", "", typed.lower())):
        raise ValueError(spelling.which_of(found, what="weights", typed=typed))
    known = {name: dtypes.SPELLINGS.get(name, ()) for name in FORMATS}
    try:
        return spelling.key_of(known, weights=typed)
    except ValueError as error:  # all of them would fill a screen
        raise ValueError(re.sub(r"Known: .*", _KNOWN, str(error))) from None


def weight_lines(model: Model, wanted: str, *, tp: int) -> list[Line]:
    """The weights on each GPU, format by format, then their sum."""
    over, split = (" / GPUs", f" / {tp}") if tp > 1 else ("", "")
    lines = [
        size_line(
            f"weights in {name}" if name not in WIDER else name,
            f"weights × bits / 8{over}",
            f"{plain(number)} × {bits:g} / 8{split}",
            number * bits / units.BITS_PER_BYTE / tp,
        )
        for name, (number, bits) in weights_in(model, wanted).items()
    ]
    if len(lines) == 1:
        return [replace(lines[0], name="weights per GPU")]
    total = sum(line.value for line in lines)
    return [*lines, size_line("weights per GPU", "sum", " + ".join(plain(line.value) for line in lines), total)]


def rounded_words(model: Model, wanted: str, *, tp: int) -> tuple[str, ...]:
    """What an engine holds more that rounds its experts' widths up; nothing where that adds no hundredth."""
    if wanted not in EXPERTS_ONLY or model.counted or tp > 1:
        return ()
    plain_bytes, rounded = weights_bytes_in(model, wanted), weights_bytes_rounded(model)
    if rounded < 1.01 * plain_bytes:
        return ()
    hidden, expert = ROUNDED
    return (
        f"weights as the checkpoint has them: vLLM rounds widths of MXFP4 experts up to multiples of {hidden} and"
        f" {expert} for its Marlin kernels and then holds {units.fmt_bytes(rounded, base=2)}",
    )


def size_line(name: str, formula: str, numbers: str, value: float) -> Line:
    """A line of bytes."""
    return Line(name=name, formula=formula, numbers=numbers, value=value, unit="B", binary=True)


def capacity_words(part: Part) -> str:
    """How much memory a part has, and who says so."""
    if isinstance(part, GivenMemory):
        who = "as given"
    elif "usable_bytes" not in part.facts:
        who = "by its datasheet"
    elif part.facts["usable_bytes"].kind == "estimate":
        who = f"reckoned from another card, as no log of this one was opened: {part.facts['usable_bytes'].note}"
    else:
        who = "as the driver reports it"
    return f"{units.fmt(part.capacity_bytes(), 'B', binary=True)} {who}"
