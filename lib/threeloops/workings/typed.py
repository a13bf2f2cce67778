"""What people type after a flag, as a number."""

import argparse


def whole(text: str) -> int:
    """A whole number as people write it: 8192 or 8,192."""
    try:
        return int(text.replace(",", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, like 8192") from None


def quantity(text: str, like: str) -> float:
    """A number with a unit, in base SI; `like` is the unit that it must be one of the kind of."""
    # brings a units library that the other flags need not wait for
    from threeloops.drills.engine.answers import parse

    return parse(text, like=like).value
