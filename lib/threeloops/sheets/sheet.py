"""Sheets by name: as text, or as HTML to print.

>>> print(names().splitlines()[0])
threeloops sheet inner       numbers and formulas of the inner loop
"""

from threeloops import checks
from threeloops.sheets import layout
from threeloops.sheets.layout import Page

SHEETS = {
    "inner": "numbers and formulas of the inner loop",
    "training": "numbers and formulas of the training loop",
    "product": "numbers and formulas of the product loop",
    "driving": "numbers and formulas of driving",
    "interview": "techniques, thirteen numbers, a cluster's closed forms, priorities, symptoms, reading",
    "coding": "four things to write by hand, against the clock; --answers shows how they are marked",
    "terms": "one thing, many names: ours, the papers' and the tools'",
    "references": "every source of the book, made from what its library cites",
}


def names() -> str:
    """What there is, a line each."""
    width = max(map(len, SHEETS))
    return "\n".join(f"threeloops sheet {name:<{width}}  {told}" for name, told in SHEETS.items())


def pages(name: str, *, answers: bool) -> tuple[Page, ...]:
    """The pages of one sheet.

    Raises:   ValueError for an unknown sheet, and for answers where nothing is asked
    """
    checks.one_of(SHEETS, sheet=name)
    if name == "coding":
        from threeloops.sheets import coding

        return coding.pages(answers=answers)
    if answers:
        raise ValueError(f"the {name} sheet asks nothing; --answers belongs to coding")
    if name == "interview":
        from threeloops.sheets import interview

        return interview.pages()
    if name == "terms":
        from threeloops.sheets import terms

        return terms.pages()
    if name == "references":
        from threeloops.sheets import references

        return references.pages()
    from threeloops.sheets import formulas, numbers

    return numbers.page(name), formulas.page(name)


def as_text(name: str, *, answers: bool) -> str:
    """For a terminal."""
    return "\n\n\n".join(layout.as_text(page) for page in pages(name, answers=answers))


def as_html(name: str, *, answers: bool) -> str:
    """To print, a page each."""
    return layout.as_html(f"Three Loops: {SHEETS.get(name, name)}", pages(name, answers=answers))
