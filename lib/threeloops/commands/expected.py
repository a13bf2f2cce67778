"""The expected time of a step, beside the planner's at best rates: for `threeloops plan` and `threeloops step`."""

from dataclasses import replace

from threeloops.commands.cluster import Asked
from threeloops.training_loop.parallelism.expected_step import CARRIED, ExpectedStep, expected_step
from threeloops.training_loop.parallelism.layouts import Layout
from threeloops.training_loop.parallelism.software import usual_software

EXPECTS = (
    "an expected time sums measured kernels, for a well-tuned program: a fused loss, gradients added up in fp32, tensor"
    " exchanges beside their matmuls, expert exchanges waited for; `threeloops measured steps` says how far such times"
    " are from published steps"
)
# The expected causes that stand beside each of the planner's.
BESIDE = {
    "forward and backward passes": (
        "matmuls",
        "clock under load",
        "attention",
        "scans",
        "vector work",
        "loss",
        "gradients added up",
    ),
    "exchange of gradients and weights": ("exchange of gradients and weights", "fewer SMs beside it"),
}


def expected_of(wanted: Asked, layout: Layout) -> ExpectedStep | str:
    """The expected step of a legal layout; where there is none, why not.

    Raises:   ValueError for an attention kernel that was asked for and is not timed on the part
    """
    part = wanted.part.key
    try:
        software = usual_software(CARRIED.get(part, part))
    except ValueError:
        return f"no expected time: the kernels of {wanted.part.name} are not timed for the catalogue"
    if wanted.attention:
        software = replace(software, attention=wanted.attention)
    try:
        return expected_step(
            layout, job=wanted.job, cluster=wanted.cluster, part=part, format=wanted.format, software=software
        )
    except ValueError as error:
        if wanted.attention:
            raise
        return f"no expected time: {error}"


def carried_over(expected: ExpectedStep | str) -> tuple[str, ...]:
    """In words, what another part's measured kernels stand in for; empty where all are its own."""
    if isinstance(expected, str) or not expected.carried:
        return ()
    return (f"expected times carried over from another part: {'; '.join(expected.carried)}",)


def beside(step: ExpectedStep, cause: str) -> float:
    """What is expected where the planner names a cause."""
    return sum(step.parts[one] for one in BESIDE.get(cause, (cause,)))
