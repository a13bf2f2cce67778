"""What is said of a sum of bytes beside a card, and of the moment at which it is largest."""

from threeloops.facts.hardware import Part
from threeloops.units import fmt_bytes

MOMENTS = {
    "forward": "the loss is there, at the end of the forward pass",
    "loss": "the loss begins the backward pass",
    "backward": "the backward pass reaches the last layer",
    "handed out": "the gradients of the last unit, whole, are handed out to their shards",
}


def said_of_fit(
    total_bytes: float, part: Part, usable_bytes: float, *, largest: int, longest: int, micro_batch: int, sequence: int
) -> str:
    """Whether the bytes fit, and what is the most that would."""
    verdict = "fits" if total_bytes <= usable_bytes else "does not fit"
    if 0.9 * usable_bytes < total_bytes <= usable_bytes:
        verdict = "fits, with less than a tenth to spare for what is not counted,"
    needed, there_is = fmt_bytes(total_bytes, base=2), fmt_bytes(usable_bytes, base=2)
    return (
        f"{needed} {verdict} in {there_is} of {part.name}. Largest micro-batch at {sequence:,} tokens: {largest}."
        f" Longest sequence at micro-batch {micro_batch}: {longest:,} tokens."
    )
