"""Words as a search compares them: small letters, American where the two spellings differ, without the s of a plural, a
compound also as one word. static/finding.js does the same to what is looked for; a test holds the two together.

>>> tokens("All-reduce, and the quantisation of two matrices")
['all', 'reduce', 'allreduce', 'and', 'the', 'quantization', 'of', 'two', 'matrice']
"""

import re
import unicodedata

WORD = re.compile(r"[^\W_]+(?:[-/.'\N{RIGHT SINGLE QUOTATION MARK}][^\W_]+)*")
PARTS = re.compile(r"[-/.'\N{RIGHT SINGLE QUOTATION MARK}]")
# British ending -> American; in this order.
ENDINGS = (
    ("isation", "ization"),
    ("isations", "izations"),
    ("ising", "izing"),
    ("ised", "ized"),
    ("iser", "izer"),
    ("ise", "ize"),
    ("yse", "yze"),
    ("ysed", "yzed"),
    ("our", "or"),
    ("ours", "ors"),
    ("ouring", "oring"),
    ("tre", "ter"),
    ("elling", "eling"),
    ("elled", "eled"),
    ("ogue", "og"),
)
LONGEST_PLAIN = 4  # letters of a word that keeps its end


def spelt(word: str) -> str:
    """One word, in its one spelling.

    >>> spelt("Behaviours"), spelt("GPUs"), spelt("loss"), spelt("modelling")
    ('behavior', 'gpu', 'loss', 'modeling')
    """
    made = unicodedata.normalize("NFKC", word).lower()
    if len(made) > 2 and made.endswith("s") and not made.endswith(("ss", "is")):
        made = made[:-1]
    if len(made) > LONGEST_PLAIN:
        for british, american in ENDINGS:
            if made.endswith(british):
                return made.removesuffix(british) + american
    return made


def tokens(text: str) -> list[str]:
    """The words of a text in their order; behind the parts of a compound the whole of it."""
    found = []
    for match in WORD.finditer(text):
        parts = [spelt(part) for part in PARTS.split(match[0])]
        found += [*parts, "".join(parts)] if len(parts) > 1 else parts
    return found


def joined(text: str) -> str:
    """A name as one word: "tensor parallel" and "tensor-parallel" are the same.

    >>> joined("All reduce"), joined("all-reduce")
    ('allreduce', 'allreduce')
    """
    return "".join(spelt(part) for match in WORD.finditer(text) for part in PARTS.split(match[0]))
