"""Character text: a text that every Python brings along, as numbers, and what a model that counts pairs makes of it.

The text is `pydoc_data.topics`, the reference pages behind `help("TOPIC")`. It changes a little from one Python to the
next, so losses are compared on one Python only. The 96 symbols do not change: printable ASCII and the line's end.

>>> read_back(numbered("for x in y:")), len(SYMBOLS)
('for x in y:', 96)
"""

import functools
import platform

import torch
from torch import Tensor

SYMBOLS = "\n" + "".join(map(chr, range(32, 127)))
PLACES = {symbol: place for place, symbol in enumerate(SYMBOLS)}
UNKNOWN = PLACES["?"]
# One block of ten is held out. A block is longer than any context that the models see.
BLOCK, EVERY = 4096, 10
PYTHON = platform.python_version()


def numbered(text: str) -> list[int]:
    """Each character as its number; what is no symbol of ours becomes a question mark."""
    return [PLACES.get(character, UNKNOWN) for character in text]


def read_back(numbers: list[int]) -> str:
    """The text again."""
    return "".join(SYMBOLS[number] for number in numbers)


@functools.cache
def topics() -> str:
    """All pages of the language reference that this Python carries, one after the other, without indents: runs of
    spaces are formatting, and a model would spend its size on them.
    """
    from pydoc_data.topics import topics as pages

    lines = "\n".join(pages[name] for name in sorted(pages)).splitlines()
    return "\n".join(" ".join(line.split()) for line in lines)


@functools.cache
def split() -> tuple[Tensor, Tensor]:
    """(text to learn from, text held out), as numbers: every tenth block is held out."""
    blocks = torch.tensor(numbered(topics())).split(BLOCK)
    kept = [block for place, block in enumerate(blocks) if place % EVERY != EVERY - 1]
    held_out = [block for place, block in enumerate(blocks) if place % EVERY == EVERY - 1]
    return torch.cat(kept), torch.cat(held_out)
