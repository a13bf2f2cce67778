"""Recorded step: what is expected of the training step that `threeloops record` takes, cause by cause, beside what a
profiler saw of it.

>>> rows = {row.cause: row for row in recorded_step("train_compiled", part="h100-sxm5")}
>>> round(rows["matmuls"].traced_s / rows["matmuls"].expected_s, 2)
1.0

Source: training_loop/parallelism/expected_step.py (expected); facts/traced_steps.py (traced)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.facts import hardware
from threeloops.facts.recorded_cases import Case
from threeloops.facts.recorded_suite import suite
from threeloops.facts.traced_steps import traced_step
from threeloops.models.architecture import Model
from threeloops.models.recorded_work import train_layer
from threeloops.training_loop.parallelism.expected_step import expected_step
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.software import Software

CASES = {case.kind: case for case in suite(device="cuda", quick=False) if case.kind.startswith("train_")}
WAYS = ("train_eager", "train_compiled")
VECTOR = "vector work"  # norms, casts, copies, activations, residuals
SEEN = {"matmuls": "matmuls", "attention": "attention", "loss": "loss", "optimiser": "optimiser"}
PLAIN = Software(attention="cudnn", loss="plain", gradient_bytes_moved=0, overlaps_tensor=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseRow:
    """One cause of a step's time."""

    cause: str
    expected_s: float
    traced_s: float


def recorded_step(way: str, *, part: str) -> list[CauseRow]:
    """The causes of a recorded step, expected by kernels and bytes, and traced.

    Assumes:  one GPU; torch's attention by cuDNN, a loss that is not fused; few steps, so that no clock falls: what
              is expected of products under load is left out
    Raises:   ValueError for a way that is not in WAYS, or a part of which no step was traced
    """
    checks.one_of(WAYS, way=way)
    case = CASES[way]
    seen = traced_step(case.name, part)
    parts = _expected_parts(case, part)
    rows = [CauseRow(cause=cause, expected_s=parts[cause], traced_s=seen[name].seconds) for cause, name in SEEN.items()]
    rest_s = sum(one.seconds for name, one in seen.items() if name not in SEEN.values())
    return [*rows, CauseRow(cause=VECTOR, expected_s=parts[VECTOR], traced_s=rest_s)]


def _expected_parts(case: Case, part: str) -> dict[str, float]:
    sizes, card = case.sizes, hardware.part(part)
    model = Model(
        name="GPT-2 medium",
        hidden=sizes["hidden"],
        vocab=sizes["vocabulary"],
        groups=((train_layer(case), sizes["layers"]),),
        tied_head=False,
        max_context=sizes["tokens"],
    )
    layout = Layout(
        dp=1,
        tp=1,
        pp=1,
        cp=1,
        ep=1,
        micro_batch=sizes["batch"],
        zero_stage=0,
        recompute="none",
        schedule="1f1b",
        chunks=1,
    )
    job = Job(
        model=model,
        sequence=sizes["tokens"],
        global_batch=sizes["batch"],
        recipe="autocast",
        kernels="fused",
        causal="half",
        sequence_parallel=False,
        dropout=False,
        tables_as_layers=False,
        expert_tp=1,
        dispatch_bytes=2,
    )
    best = card["best_gemm_flops_per_s_bf16"]
    link = card["link_bytes_per_s_one_way"]  # never used: one GPU sends nothing
    cluster = Cluster(
        num_gpus=1,
        domain_gpus=1,
        peak_flops_per_s=card.peak_flops_per_s("bf16"),
        gemm_flops_per_s=best,
        attention_flops_per_s=best,
        memory_bytes_per_s=card["memory_bytes_per_s"],
        usable_bytes=card.capacity_bytes(),
        fast_bytes_per_s_one_way=link,
        slow_bytes_per_s_one_way=link,
        link_efficiency=1.0,
        alpha_s=0.0,
    )
    step = expected_step(layout, job=job, cluster=cluster, part=part, format="bf16", software=PLAIN)
    return step.parts
