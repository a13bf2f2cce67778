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

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from threeloops import checks

TUNED = {"instruct", "chat", "it", "base", "hf"}
_MOST_CANDIDATES = 6

Word = list[str]  # in pieces, letters and numbers apart: sxm5 is sxm and 5


def key_of(known: Mapping[str, Iterable[str]], *, see: str = "", **value: str) -> str:
    """The key that a name means; `known` has for every key its other names.

    Raises:   ValueError with the candidates for a name that fits several keys; for one that fits none with the nearest,
              which of a long list (one that `see` tells where to read) have its numbers and as many words: others are
              other things

    >>> key_of({"llama-3-70b": ("Llama 3 70B",), "llama-2-70b": ()}, model="meta-llama/Llama-3-70B-Instruct")
    'llama-3-70b'
    >>> key_of({"qwen2.5-7b": (), "gpt2": ()}, see="A page lists all.", model="qwen2.5-vl-7b")
    Traceback (most recent call last):
        ...
    ValueError: model='qwen2.5-vl-7b' is not known. A page lists all.
    """
    ((what, typed),) = value.items()
    found = candidates(known, typed)
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(which_of(found, what=what, typed=typed))
    between = "_" if any("_" in key for key in known) else "-"
    read_as = re.sub("[^a-z0-9.]+", between, _own(typed))
    meant = [key for key in known if _alike(key, typed)] if see else None
    raise ValueError(checks.unknown(known, what=what, value=typed, read_as=read_as, see=see, meant=meant))


def which_of(found: Iterable[str], *, what: str, typed: str, besides: str = "") -> str:
    """The sentence for a name that fits all that was found; `besides` are words for what it could mean, too.

    >>> which_of(["mistral-7b"], what="model", typed="mistral", besides="another of that name")
    "model='mistral' may be 'mistral-7b' or another of that name; say which"
    """
    keys = list(found)
    shown, others = [repr(key) for key in keys[:_MOST_CANDIDATES]], len(keys) - _MOST_CANDIDATES
    shown += [f"{others} more"] * (others > 0) + [besides] * bool(besides)
    return f"{what}={typed!r} may be {', '.join(shown[:-1])} or {shown[-1]}; say which"


def candidates(known: Mapping[str, Iterable[str]], typed: str, *, by_key_first: bool = True) -> list[str]:
    """The keys that a name may mean: the one that it spells; else, if `by_key_first`, those whose key has all its
    words; else all that have them in any of their names.

    >>> released = {"llama-3.1-8b": (), "llama-3-405b": ("Llama 3.1 405B",), "llama-3-8b": ()}
    >>> candidates(released, "llama3.1"), candidates(released, "llama3.1", by_key_first=False)
    (['llama-3.1-8b'], ['llama-3.1-8b', 'llama-3-405b'])
    """
    if typed in known:
        return [typed]
    words = _words(typed)
    squeezed = _squeezed(words)
    same = [key for key, names in known.items() if squeezed in {_squeezed(_words(name)) for name in (key, *names)}]
    by_key = [key for key in known if words and all(_said(word, [key]) for word in words)]
    by_name = [key for key, names in known.items() if words and all(_said(word, [key, *names]) for word in words)]
    return same or (by_key if by_key_first else []) or by_name


def says_all_of(typed: str, name: str) -> bool:
    """Whether what was typed leaves out no number of a model's name and none of its last words: what is left out could
    be another's. How many parameters are active follows from the whole, and may be left out.

    >>> says_all_of("qwen3 235b", "qwen3-235b-a22b"), says_all_of("r1 distill 7b", "deepseek-r1-distill-qwen-7b")
    (True, True)
    >>> says_all_of("mistral", "mistral-7b"), says_all_of("llama 7b", "llama-2-7b"), says_all_of("phi-3", "phi-3-mini")
    (False, False, False)
    """
    pieces, missing = _pieces(name), left_out(typed, name)
    return bool(pieces) and not any(piece[0].isdigit() for piece in missing) and pieces[-1] not in missing


def left_out(typed: str, name: str) -> list[str]:
    """What a name has that was not typed, the count of active parameters apart.

    >>> left_out("qwen3 30b", "qwen3-30b-a3b"), left_out("qwen3 30b", "qwen3-coder-30b-a3b")
    ([], ['coder'])
    """
    return list((Counter(_pieces(name)) - Counter(_pieces(typed))).elements())


def _alike(key: str, typed: str) -> bool:
    """Whether two names have the same numbers (the key may end in more), and words that differ by letters only."""
    (numbers, words), (typed_numbers, typed_words) = _numbers_and_words(key), _numbers_and_words(typed)
    return (
        numbers[: len(typed_numbers)] == typed_numbers
        and bool(typed_numbers) == bool(numbers)
        and len(words) == len(typed_words)
        and all(
            difflib.SequenceMatcher(None, one, other).ratio() >= _ALIKE
            for one, other in zip(words, typed_words, strict=True)
        )
    )


_ALIKE = 0.6


def _numbers_and_words(name: str) -> tuple[list[str], list[str]]:
    pieces = [piece for word in _words(name) for piece in word]
    numbers = [piece for piece in pieces if piece[0].isdigit()]
    return numbers, [piece for piece in pieces if not piece[0].isdigit()]


def _pieces(name: str) -> list[str]:
    return [piece for word in _words(name) if not _is_active_count(word) for piece in word]


def _is_active_count(word: Word) -> bool:
    return len(word) == 3 and word[0] == "a" and word[2] == "b"


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
