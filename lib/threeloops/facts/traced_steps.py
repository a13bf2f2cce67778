"""Traced steps: the kernels of one step on a GPU, by torch's profiler, added up by what they are for.

>>> step = traced_step("train_compiled-bf16-layers24-hidden1024-heads16-vocabulary50304-tokens1024-batch8", "h100-sxm5")
>>> list(step)[:3], step["products"].kernels > 400
(['products', 'attention', 'loss'], True)

Source: a recording of our own (`threeloops record --traces`), with its stamp
"""

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

from threeloops import checks
from threeloops.facts.recorded import Stamp, parsed_stamp

FORMAT = 1
# What a kernel is for, from words of its name, in this order: the first that fits.
CAUSES = {
    "optimiser": ("multi_tensor", "FusedOptimizer"),
    "attention": ("sdpa", "flash", "compute_dot_do_o", "convert_dq", "lean_reduction"),
    "products": ("nvjet", "gemm", "cutlass", "splitKreduce"),
    "loss": ("SoftMax", "softmax", "nll_loss"),
    "norms": ("layer_norm", "LayerNorm", "GammaBeta", "rms_norm"),
    "casts and copies": ("copy", "Memcpy", "Memset"),
}
REST = "other vector work"
ORDER = ("products", "attention", "loss", "optimiser", "norms", "casts and copies", REST)


class Traced(NamedTuple):
    """The kernels of one cause."""

    kernels: int
    seconds: float  # on the GPU, added up


def cause_of(kernel: str) -> str:
    """What a kernel is for.

    >>> cause_of("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"), cause_of("triton_poi_fused_gelu_2")
    ('products', 'other vector work')
    """
    return next((cause for cause, words in CAUSES.items() if any(word in kernel for word in words)), REST)


def traced_step(case: str, part: str) -> dict[str, Traced]:
    """One step, by cause, in ORDER; causes without a kernel are left out.

    Raises:   ValueError for a part or a case of which no step was traced
    """
    checks.one_of(_traced(), part=part)
    steps = _traced()[part][1]
    checks.one_of(steps, case=case)
    return steps[case]


def traced_stamp(part: str) -> Stamp:
    """On what, with what and when."""
    checks.one_of(_traced(), part=part)
    return _traced()[part][0]


@functools.cache
def _traced() -> dict[str, tuple[Stamp, dict[str, dict[str, Traced]]]]:
    """By part."""
    folder = resources.files("threeloops.facts") / "traced"
    found = {}
    for entry in sorted((one for one in folder.iterdir() if one.name.endswith(".json")), key=lambda one: one.name):
        content = json.loads(entry.read_text(encoding="utf-8"))
        stamp = parsed_stamp(content["stamp"])
        steps = {
            case: {cause: Traced(*by_cause[cause]) for cause in ORDER if cause in by_cause}
            for case, by_cause in content["steps"].items()
        }
        found[stamp.part] = (stamp, steps)
    return found


def traces_as_text(stamp: Stamp, steps: Mapping[str, Mapping[str, Traced]]) -> str:
    """The file of a recording, a line for each step."""
    rows = {case: {cause: [one.kernels, one.seconds] for cause, one in step.items()} for case, step in steps.items()}
    lines = ",\n".join(f"  {json.dumps(case)}: {json.dumps(row)}" for case, row in rows.items())
    fields = json.dumps(stamp.fields, ensure_ascii=False)
    return f'{{\n "format": {FORMAT},\n "stamp": {fields},\n "steps": {{\n{lines}\n }}\n}}\n'
