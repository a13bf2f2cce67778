"""The same sheets and key as LaTeX, to be put into an exam of one's own: an article that pdfLaTeX, XeLaTeX and LuaLaTeX
set, with nothing but what every distribution has.

>>> escaped("50 % of 2^10 < x_1")
'50 \\\\% of 2\\\\textasciicircum{}10 \\\\textless{} x\\\\_1'
"""

import re
from collections.abc import Sequence

from threeloops import units
from threeloops.paper import quiz as quizzes
from threeloops.paper.printed import KEY_NOTE, head, how, identity, right
from threeloops.paper.quiz import Asked, Quiz, Version

GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "λ": "lambda",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "phi",
    "ω": "omega",
}
# Character -> what LaTeX is told. Letters with accents need nothing.
SYMBOLS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{one: f"\\{one}" for one in "{}$&#_%"},
    "\u00a0": "~",
    "×": r"\(\times\)",
    "−": r"\(-\)",
    "±": r"\(\pm\)",
    "·": r"\(\cdot\)",
    "÷": r"\(\div\)",
    "√": r"\(\surd\)",
    "≈": r"\(\approx\)",
    "≤": r"\(\leq\)",
    "≥": r"\(\geq\)",
    "≠": r"\(\neq\)",
    "∞": r"\(\infty\)",
    "→": r"\(\rightarrow\)",
    "⌊": r"\(\lfloor\)",
    "⌋": r"\(\rfloor\)",
    "⌈": r"\(\lceil\)",
    "⌉": r"\(\rceil\)",
    "°": r"\textdegree{}",
    "µ": r"\textmu{}",
    "€": r"\texteuro{}",
    "…": r"\ldots{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}",
    "“": r"\textquotedblleft{}",
    "”": r"\textquotedblright{}",
    "ᵀ": r"\textsuperscript{T}",
    **{one: rf"\textsuperscript{{{number}}}" for number, one in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{one: rf"\textsubscript{{{number}}}" for number, one in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{one: rf"\(\{name}\)" for one, name in GREEK.items()},
}
LIGATURES = re.compile(r"([-,'`?!])(?=[-,'`])")  # what would be set as one sign
LATIN = range(0xC0, 0x180)  # letters with accents, as T1 has them
PREAMBLE = r"""\documentclass[11pt,a4paper]{article}
\usepackage{iftex}
\ifPDFTeX
  \usepackage[T1]{fontenc}
  \usepackage[utf8]{inputenc}
  \usepackage{textcomp}
\fi
\usepackage[margin=18mm]{geometry}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt}
\begin{document}
"""


def escaped(text: str) -> str:
    """Text as LaTeX sets it, to the letter, on one line.

    Raises:   ValueError, in one sentence, for a character that its usual fonts have not
    """
    for one in text:
        if not (one in SYMBOLS or (one.isascii() and one.isprintable()) or ord(one) in LATIN):
            raise ValueError(
                f"LaTeX's usual fonts have no {one!r} (in {text[:40]!r}); write it otherwise, or take docx"
            )
    return "".join(SYMBOLS.get(one, one) for one in LIGATURES.sub("\\1\ue000", text)).replace("\ue000", "{}")


def paragraph(text: str) -> str:
    """Lines as they are, each with its indentation.

    >>> print(paragraph("Which?\\n  A  1 GB"))
    Which?\\newline
    \\hspace*{1em}A  1 GB
    """
    lines = []
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        indent = rf"\hspace*{{{(len(line) - len(inner)) / 2:g}em}}" if len(line) > len(inner) else ""
        lines.append(indent + (escaped(inner) or r"\mbox{}"))
    return "\\newline\n".join(lines)


def _article(blocks: Sequence[str]) -> str:
    return PREAMBLE + "\n\n".join(blocks) + "\n\n\\end{document}\n"


def sheets(quiz: Quiz, versions: Sequence[Version], *, space_m: float) -> str:
    """All versions in one file, each beginning on a page of its own, with so many metres for each answer."""
    blocks = []
    for version in versions:
        blocks += [r"\clearpage"] * (version is not versions[0])
        blocks += [
            rf"\section*{{{escaped(head(quiz, version))}}}",
            r"Name: \rule{70mm}{0.4pt}\quad Id: \rule{35mm}{0.4pt}",
            escaped(how(quiz, version)),
        ]
        for place, asked in enumerate(version.questions, start=1):
            blocks.append(_question(place, asked, space_m))
    return _article(blocks)


def _question(place: int, asked: Asked, space_m: float) -> str:
    """A question that keeps to one page."""
    return "\n\n".join(
        [
            r"\begin{minipage}{\linewidth}\setlength{\parskip}{4pt}",
            rf"\subsection*{{{place}. {escaped(asked.question.title)}}}",
            paragraph(asked.question.text),
            "Answer:",
            rf"\vspace*{{{space_m / units.mm:g}mm}}\hrule",
            rf"{{\footnotesize {escaped(identity(asked))}}}",
            r"\end{minipage}",
        ]
    )


def key(quiz: Quiz, versions: Sequence[Version]) -> str:
    """The key to all versions, in a file of its own."""
    blocks = [escaped(f"{KEY_NOTE} Quiz seed: {quiz.seed}")]
    for version in versions:
        blocks += [r"\clearpage"] * (version is not versions[0])
        blocks.append(rf"\section*{{{escaped(head(quiz, version) + ' · KEY')}}}")
        for place, asked in enumerate(version.questions, start=1):
            blocks += [
                rf"\subsection*{{{place}. {escaped(asked.question.title)}: {escaped(right(asked))}}}",
                rf"{{\small\ttfamily\raggedright {paragraph(asked.question.working)}\par}}",
                *(f"Would have written {escaped(wrong)}: {escaped(story)}" for wrong, story in quizzes.slips(asked)),
                rf"{{\footnotesize {escaped(identity(asked))}}}",
            ]
    return _article(blocks)
