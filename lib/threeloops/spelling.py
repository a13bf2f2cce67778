"""Spelling: what people call a thing, and the one name under which it is kept.

A name is compared by its words, whatever stands between them: "H100-SXM5", "h100 sxm" and "h100_sxm5" are one. Words
that only say how a model was tuned afterwards ("Instruct", "chat") change no shape, and an owner before a slash
("meta-llama/…") is no part of a name.

>>> cards = {"h100-sxm5": ("NVIDIA H100 SXM5 80GB",), "h100-pcie": ("NVIDIA H100 PCIe 80GB",), "rtx-4090": ()}
>>> key_of(cards, part="H100 SXM"), key_of(cards, part="4090")
('h100-sxm5', 'rtx-4090')
>>> key_of(cards, part="h100")
Traceback (most recent call last):
    ...
ValueError: part='h100' may be 'h100-sxm5' or 'h100-pcie'; say which
"""

import re
from collections.abc import Iterable, Mapping

from threeloops import checks

TUNED = {"instruct", "chat", "it", "base", "hf"}
_MOST_CANDIDATES = 6

Word = list[str]  # in pieces, letters and numbers apart: sxm5 is sxm and 5


def key_of(known: Mapping[str, Iterable[str]], *, see: str = "", **value: str) -> str:
    """The key that a name means; `known` has for every key its other names.

    Raises:   ValueError with the candidates for a name that fits several keys, with the nearest for one that fits none

    >>> key_of({"llama-3-70b": ("Llama 3 70B",), "llama-2-70b": ()}, model="meta-llama/Llama-3-70B-Instruct")
    'llama-3-70b'
    """
    ((what, typed),) = value.items()
    if typed in known:
        return typed
    words = _words(typed)
    squeezed = _squeezed(words)
    same = [key for key, names in known.items() if squeezed in {_squeezed(_words(name)) for name in (key, *names)}]
    by_key = [key for key in known if words and all(_said(word, [key]) for word in words)]
    by_name = [key for key, names in known.items() if words and all(_said(word, [key, *names]) for word in words)]
    found = same or by_key or by_name
    if len(found) == 1:
        return found[0]
    if found:
        shown = [repr(key) for key in found[:_MOST_CANDIDATES]]
        others = len(found) - len(shown)
        *most, last = [*shown, f"{others} more"] if others else shown
        raise ValueError(f"{what}={typed!r} may be {', '.join(most)} or {last}; say which")
    between = "_" if any("_" in key for key in known) else "-"
    read_as = re.sub("[^a-z0-9.]+", between, _own(typed))
    raise ValueError(checks.unknown(known, what=what, value=typed, read_as=read_as, see=see))


def _own(text: str) -> str:
    return text.lower().rstrip("/").rsplit("/", 1)[-1]


def _words(text: str) -> list[Word]:
    """A name's words without its owner and without what says how it was tuned."""
    words = re.findall(r"[a-z0-9]+(?:\.\d+[a-z0-9]*)*", _own(text))
    kept = [word for word in words if word not in TUNED] or words
    return [re.findall(r"[a-z]+|\d+(?:\.\d+)*", word) for word in kept]


def _squeezed(words: Iterable[Word]) -> str:
    return "".join("".join(word) for word in words)


def _said(word: Word, names: Iterable[str]) -> bool:
    """Whether one of the names says this word: from the beginning of a word of its own to the end of one. sxm stands
    for sxm5, but l40 never for l40s, which is another card.
    """
    return any(_begins(word, _words(name)[place:]) for name in names for place in range(len(_words(name))))


def _begins(word: Word, rest: list[Word]) -> bool:
    pieces = [(piece, place == len(one) - 1) for one in rest for place, piece in enumerate(one)]
    if [piece for piece, _ in pieces[: len(word)]] != word:
        return False
    _, ends = pieces[len(word) - 1]
    return ends or (word[-1].isalpha() and pieces[len(word)][0][0].isdigit())
