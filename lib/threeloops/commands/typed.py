"""What people type after a flag, as a number; and the flag that a refused value came from."""

import argparse
import re
from collections.abc import Iterator, Sequence

from threeloops.units import KiB

_EVERY_S = {"s": 1, "min": 60, "h": 3600, "d": 86400, "day": 86400}
_LINE = re.compile(r"\bline \d+: ")
_LARGE = {"": 1, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
# What the library calls a value where that is not the flag's own name.
OTHERWISE = {
    "part": "hardware",
    "size_bytes": "size",
    "bytes_per_s_one_way": "bandwidth",
    "alpha_s": "alpha",
    "launch_overhead_s": "launch",
    "global_batch": "batch",
    "domain_gpus": "node",
    "zero_stage": "zero",
    "origin": "ceilings",
    "drill_set": "set",
    "memory_utilisation": "share",
    "itl_s": "itl",
    "drafted": "draft_tokens",
    "accepted_share": "acceptance",
}


def whole(text: str) -> int:
    """A whole number as people write it: 8192 or 8,192."""
    try:
        return int(text.replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, like 8192") from None


def workers(text: str) -> int | str:
    """How many at once, or the address of a scheduler of Dask's.

    >>> workers("4"), workers("tcp://grader:8786")
    (4, 'tcp://grader:8786')
    """
    return int(text) if text.isdecimal() else text


def context(text: str) -> int:
    """Tokens as people write a context: 8192, 8,192, 32k or 32Ki, which are 32 × 1,024, or 1M.

    >>> context("32k"), context("8Ki"), context("1M"), context("8,192")
    (32768, 8192, 1048576, 8192)
    """
    written = re.fullmatch(r"(\d+) ?([kKmM])i?", text)
    if written:
        return int(written[1]) * {"k": KiB, "m": KiB**2}[written[2].lower()]
    try:
        return whole(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of tokens, like 8192, 8,192 or 8k") from None


def amount(text: str) -> float:
    """A large number as people write what a model was trained on: 15T, 300B, 2e12 or 1,000,000.

    >>> amount("15T"), amount("1.4e12")
    (15000000000000.0, 1400000000000.0)
    """
    written = re.fullmatch(r"(\d[\d,]*(?:\.\d+)?(?:[eE]\+?\d{1,2})?)\s*([kKmMbBtT]?)", text.strip())
    if not written:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, like 15T, 300B or 2e12")
    return float(written[1].replace(",", "")) * _LARGE[written[2].lower()]


def price(text: str) -> float:
    """Dollars, with or without their sign.

    >>> price("$2.50")
    2.5
    """
    try:
        return float(text.removeprefix("$"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be dollars for an hour of one GPU, like 2.50") from None


def quantity(text: str, like: str) -> float:
    """A number with a unit, in base SI; `like` is the unit that it must be one of the kind of."""
    # brings a units library that the other flags need not wait for
    from threeloops.drills.engine.answers import parse

    return parse(text, like=like).value


def rate(text: str) -> float:
    """Requests a second, as people write a load.

    >>> rate("50/s"), rate("600/min"), rate("1.2 req/s")
    (50.0, 10.0, 1.2)
    """
    written = re.fullmatch(r"(\d[\d,]*(?:\.\d+)?)\s*(?:req|requests|request)?\s*/\s*(s|min|h|d|day)", text.strip())
    if not written:
        raise argparse.ArgumentTypeError(f"{text!r} must be requests in a time, like 50/s, 600/min or 10,000/h")
    return float(written[1].replace(",", "")) / _EVERY_S[written[2]]


def share(text: str) -> float:
    """A share, as a fraction or in percent.

    >>> share("0.6"), share("60%")
    (0.6, 0.6)
    """
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a share from 0 to 1, like 0.6 or 60%")
    return value


def in_flags(sentence: str, command: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """A refusal of the library, with each value under the flag that it came from, by the name that was typed; what
    stands in a line of a file came from no flag.

    >>> parser = argparse.ArgumentParser()
    >>> _ = parser.add_argument("--weights", "--format")
    >>> in_flags("weights='q9' is not known, as bits=9", parser, ["--format", "q9"])
    "--format 'q9' is not known, as bits=9"
    """
    if _LINE.search(sentence):
        return sentence
    flags, typed = {}, {word.partition("=")[0] for word in words}
    for option in _options(command, words):
        first = f"--{option.dest}" if f"--{option.dest}" in option.option_strings else option.option_strings[0]
        flags[option.dest] = first
        if first not in typed:
            flags[option.dest] = next((other for other in option.option_strings if other in typed), first)
            sentence = sentence.replace(f"{first} ", f"{flags[option.dest]} ")

    def named(value: re.Match[str]) -> str:
        name = value[1] if value[1] in flags else OTHERWISE.get(value[1])
        return f"{flags[name]} " if name in flags else value[0]

    return re.sub(r"(?<![*\w])([a-z_]+)=(?=\S)", named, sentence)


def _options(command: argparse.ArgumentParser, words: Sequence[str]) -> Iterator[argparse.Action]:
    """The flags of the command that the words name, or of its own command."""
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            named = next((word for word in words if word in action.choices), None)
            if named is not None:
                yield from _options(action.choices[named], words[words.index(named) + 1 :])
        elif action.option_strings and action.default != argparse.SUPPRESS:
            yield action
