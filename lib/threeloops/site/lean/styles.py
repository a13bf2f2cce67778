"""Styles: the rules of a style sheet that can apply to some page. Sphinx's theme brings those of a whole framework, of
which these pages use a sixth.

>>> used(".a, .b:not(.c) { color: red } .d { color: blue }", {"b"})
'.b:not(.c){color: red}'
>>> used("@media print { .d { top: 0 } p { margin: 0 } }", set())
'@media print{p{margin: 0}}'

Source:   W3C, CSS Syntax Module Level 3, 2021, section 5 (parsing), https://www.w3.org/TR/css-syntax-3/
"""

import re
from collections.abc import Iterator, Set

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
OPTIONAL = re.compile(r":(?:not|is|where|has)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
QUOTED = re.compile(r"\[[^\]]*\]")
NAME = re.compile(r"[.#]((?:[\w-]|\\.)+)")
WITHIN = ("@media", "@supports", "@container", "@layer")  # what holds rules of its own
ICONS = re.compile(r"font-?\s?awesome", re.IGNORECASE)  # a font of thousands of icons; site.css draws those in use
SPECIAL = re.compile(r"""["'{};()\[\]]|\\.""", re.DOTALL)


def used(css: str, names: Set[str]) -> str:
    """The rules whose classes and names are among these, or that need none."""
    return "".join(_kept(prelude, body, names) for prelude, body in rules(COMMENT.sub("", css)))


def _kept(prelude: str, body: str | None, names: Set[str]) -> str:
    if body is None:
        return "" if prelude.startswith("@charset") else f"{prelude};"
    if prelude.startswith(WITHIN):
        inner = used(body, names)
        return f"{prelude}{{{inner}}}" if inner else ""
    if prelude.startswith("@"):
        return "" if prelude.startswith("@font-face") and ICONS.search(body) else f"{prelude}{{{body}}}"
    chosen = [one for one in parted(prelude) if applies(one, names)]
    return f"{','.join(chosen)}{{{body}}}" if chosen else ""


def applies(selector: str, names: Set[str]) -> bool:
    """Whether every class and name that a selector asks for is among these.

    >>> applies("a.b > #c[href='x.d']", {"b", "c"}), applies(".b .e", {"b", "c"})
    (True, False)
    """
    return all(name in names for name in NAME.findall(QUOTED.sub("", OPTIONAL.sub("", selector))))


def parted(prelude: str) -> list[str]:
    """The selectors of a rule.

    >>> parted("a, b:is(c, d)")
    ['a', 'b:is(c, d)']
    """
    parts, depth = [""], 0
    for letter in prelude:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def rules(css: str) -> Iterator[tuple[str, str | None]]:
    """(what stands before the brace, what stands within) of each rule; None within for a statement.

    >>> list(rules('@import "a;b"; p { content: "}" } @media x { p { top: 0 } }'))
    [('@import "a;b"', None), ('p', 'content: "}"'), ('@media x', 'p { top: 0 }')]
    """
    start, depth, opened, quote, round_ = 0, 0, 0, "", 0
    for match in SPECIAL.finditer(css):
        sign, place = match[0], match.start()
        if quote:
            quote = "" if sign == quote else quote
        elif sign in ('"', "'"):
            quote = sign
        elif sign in "([":
            round_ += 1
        elif sign in ")]":
            round_ -= 1
        elif round_:  # an address may hold what would end a rule
            continue
        elif sign == "{":
            opened = opened if depth else place
            depth += 1
        elif sign == "}":
            depth -= 1
            if not depth:
                yield css[start:opened].strip(), css[opened + 1 : place].strip()
                start = place + 1
        elif sign == ";" and not depth:
            yield css[start:place].strip(), None
            start = place + 1
