"""How much room a printed question leaves for its answer."""

import re

from threeloops import units

METRES = {"mm": units.mm, "cm": units.cm, "in": units.inch}
LARGEST_M = 0.18  # a question and its space stay on one page
USUAL_M = 0.03


def space_m(written: str | None) -> float:
    """The height in metres that was asked for; nothing asks for three centimetres.

    >>> space_m("5 cm"), space_m("2in"), space_m(None)
    (0.05, 0.0508, 0.03)

    Raises:   ValueError, in one sentence, for what is no length, or more than a page has beside a question
    """
    if written is None:
        return USUAL_M
    found = re.fullmatch(r"\s*(\d{1,4}(?:\.\d{1,4})?)\s*(mm|cm|in)\s*", written)
    if not found:
        raise ValueError(f"space={written!r} must be a length in mm, cm or in, like '5 cm'")
    height = float(found[1]) * METRES[found[2]]
    if not 0 < height <= LARGEST_M:
        raise ValueError(
            f"space={written!r} must be above 0 and at most {LARGEST_M / units.cm:g} cm: a question keeps to one page"
        )
    return height
