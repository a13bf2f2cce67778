"""Models and parts by the name that stands after a flag, in any spelling."""

import re
from dataclasses import dataclass

from threeloops import checks, units
from threeloops.commands.measured.by_class import counted_on_its_class
from threeloops.commands.released import is_path, known_name
from threeloops.commands.typed import quantity
from threeloops.facts import hardware
from threeloops.facts.hardware import Part
from threeloops.models import catalogue, hf_config
from threeloops.models.architecture import Model

MODEL_HELP = "a model's name in any spelling (llama3 8b), or the path of a config.json or .gguf"
HARDWARE_HELP = "an accelerator's name in any spelling: h100-sxm5, H200, 4090"
MEMORY_HELP = f"{HARDWARE_HELP}; or only its memory, like 24564MiB"


def model_named(name: str, overlay: str | None) -> Model:
    """A model by its name, also by that of a release of it (…-Instruct-FP8), or from the path of a config.json or its
    folder; one whose type has no reader is counted on its class, where that is installed.
    """
    if re.match(r"(?:https?://|hf\.co/|huggingface\.co/).*\.(?:json|gguf)$", name):
        raise ValueError(
            f"--model {name}: nothing is fetched from the web; download the file and give its path, or name the model"
        )
    if is_path(name):
        try:
            return hf_config.from_hf_config(name)
        except hf_config.UnreadTypeError as refused:
            return counted_on_its_class(name, refused)
    if name in hardware.part_keys(overlay=overlay):
        raise ValueError(f"--model {name}: that is a part, not a model; `threeloops sources --keys` lists both")
    known = known_name(name, overlay)
    try:
        return catalogue.model(known, overlay=overlay)
    except ValueError as error:
        if catalogue.fitting_keys(known, overlay=overlay):
            raise
        raise ValueError(f"{error} The path of a config.json is taken, too.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenMemory(Part):
    """A card of which nothing is known but its memory, as it was typed."""

    typed_bytes: float

    def capacity_bytes(self) -> float:
        """What was typed."""
        return self.typed_bytes


_MEMORY = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?B)", re.IGNORECASE)


def memory_named(name: str, overlay: str | None) -> Part:
    """An accelerator by its name, or any other by its memory, as its driver reports that: 24564MiB.

    >>> memory_named("96GiB", None).capacity_bytes() / 2**30
    96.0
    >>> memory_named("24GB", None)
    Traceback (most recent call last):
        ...
    ValueError: --hardware 24GB: a card that is sold so has about 24GiB, and 24GB are 22.4 GiB; give 24GiB, or ...
    """
    written = _MEMORY.fullmatch(name.strip())
    if not written:
        try:
            return part_named("hardware", name, overlay)
        except ValueError as error:
            if "is not known" not in str(error):
                raise
            said = str(error).removesuffix(".")
            raise ValueError(f"{said}. What its driver reports as memory is taken, too, like 24564MiB.") from error
    size = quantity(name, "B")
    if size <= 0:
        raise ValueError(f"--hardware {name}: a card's memory must be greater than 0; give it like 24564MiB")
    if "i" not in written[2].lower():
        binary = f"{written[1]}{written[2][0].upper()}iB"
        raise ValueError(
            f"--hardware {name}: a card that is sold so has about {binary}, and {name} are"
            f" {units.fmt_bytes(size, base=2)}; give {binary}, or what nvidia-smi prints, like 24564MiB"
        )
    return GivenMemory(key="", name=f"a card with {name}", vendor="", family="", facts={}, typed_bytes=size)


def part_named(flag: str, name: str, overlay: str | None) -> Part:
    """A part by its name; a link where an accelerator is meant, or the other way round, is refused."""
    if name not in hardware.part_keys(overlay=overlay):
        return hardware.part(hardware.part_key(name, kind=flag, overlay=overlay), overlay=overlay)
    part = hardware.part(name, overlay=overlay)
    is_link = "bytes_per_s_one_way" in part.facts
    if flag == "link" and not is_link:
        raise ValueError(
            f"--link {name}: that is no link; give one like nvlink-4, pcie-5-x16 or infiniband-ndr, or its rate with"
            " --bandwidth"
        )
    if flag == "hardware" and (is_link or not (part.peaks or part.engines or "usable_bytes" in part.facts)):
        raise ValueError(f"--hardware {name}: that has no arithmetic of its own; give an accelerator like h100-sxm5")
    return part


def rate_named(flag: str, text: str, overlay: str | None) -> float:
    """A one-way rate, given as such or as the name of a link."""
    if re.match(r"[\d.]+\s*\D*/|[\d.]+$", text):  # 400g is a name, 50GB/s and a bare 50 are none
        rate = quantity(text, "B/s")
        checks.positive(**{flag: rate})
        return rate
    try:
        key = hardware.part_key(text, kind="link", overlay=overlay)
    except ValueError as error:
        raise ValueError(str(error).replace("link=", f"{flag}=", 1)) from None
    part = hardware.part(key, overlay=overlay)
    if "bytes_per_s_one_way" not in part.facts:
        raise ValueError(f"--{flag} {text}: that is no link; give one like infiniband-ndr, or a rate like 50GB/s")
    return part["bytes_per_s_one_way"]
