"""What the set on roofline asks to be written as a function, each with a limit case."""

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.functions import FunctionDrill
from threeloops.drills.engine.limit_cases import with_numbers

FUNCTIONS: tuple[FunctionDrill, ...] = (
    FunctionDrill(
        drill=DRILLS["roofline-time-bound"],
        takes=("m", "k", "n", "bytes_per_element", "peak", "memory"),
        limit=with_numbers("roofline-time-bound", m=16_000, k=8_000, n=8_000),
        limit_case="a matmul so large that arithmetic takes longer than memory",
    ),
    FunctionDrill(
        drill=DRILLS["roofline-grouped-convolution"],
        takes=("cameras", "groups", "in_channels", "out_channels", "height", "width", "kernel", "stride"),
        limit=with_numbers("roofline-grouped-convolution", height=135, width=241),
        limit_case="a map whose height and width are odd",
    ),
    FunctionDrill(
        drill=DRILLS["roofline-launch-bound"],
        takes=("layers", "launches", "launch_s", "parameters", "memory"),
        limit=with_numbers("roofline-launch-bound", launches=1),
        limit_case="one fused kernel per layer",
    ),
)
