"""Interview draws of the training loop: the numbers of parallelism, pipelines and failure that interviewers like. One
more chapter of band_draws.
"""

from itertools import product

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.units import billion, trillion


def _shape(key: str) -> dict[str, int]:
    model = catalogued.model(key)
    return {"hidden": model.hidden, "layers": model.num_layers}


def _bubbles() -> tuple[Draw, ...]:
    return tuple(drawn(pp=pp, m=m) for pp, m in product((4, 8, 16), (8, 16, 32, 64)) if m >= pp)


def _pipelined() -> tuple[Draw, ...]:
    return tuple(
        drawn(pp=pp, m=m, compute_s=compute_s)
        for (pp, m), compute_s in product(((4, 8), (8, 32), (16, 64)), (2.0, 10.0))
    )


def _batches() -> tuple[Draw, ...]:
    return tuple(drawn(pp=8, dp=dp, m=m, b=b) for dp, m, b in ((8, 32, 2), (16, 64, 2), (64, 16, 4)))


def _scaled() -> tuple[Draw, ...]:
    return tuple(
        drawn(few=few, many=many, few_min=first, many_min=second)
        for few, many, first, second in ((8, 64, 120, 20), (8, 256, 840, 40), (64, 512, 300, 50))
    )


def _days() -> tuple[Draw, ...]:
    h100 = catalogued.part("h100-sxm5")
    card = {"part": h100.name, "peak": h100.peak_flops_per_s("bf16"), "sparse": 2 * h100.peak_flops_per_s("bf16")}
    runs = ((70, 15, 2048, 40), (8, 15, 1024, 40), (405, 15.6, 16384, 40), (70, 2, 1024, 50))
    return tuple(
        drawn(**card, parameters=billions * billion, tokens=trillions * trillion, gpus=gpus, percent=mfu)
        for billions, trillions, gpus, mfu in runs
    )


def _saves() -> tuple[Draw, ...]:
    return tuple(
        drawn(gpus=gpus, gpu_years=years, save_s=save_s)
        for gpus, years, save_s in ((1024, 5, 60), (8192, 5, 60), (16384, 6, 30))
    )


def _slowest() -> tuple[Draw, ...]:
    return tuple(drawn(ranks=ranks, base_s=0.5, delay_s=delay_s) for ranks, delay_s in ((4, 0.1), (8, 0.1), (8, 0.25)))


def _tensor() -> tuple[Draw, ...]:
    return tuple(
        drawn(**_shape(key), tokens=8192, tp=tp, bytes_per_element=2)
        for key, tp in product(("llama-3-8b", "llama-3-70b"), (2, 4, 8))
    )


def _replicas() -> tuple[Draw, ...]:
    return tuple(
        drawn(tp=8, pp=pp, cp=cp, gpus=gpus, size=size, runs=runs)
        for pp, cp, gpus, size, runs in ((8, 2, 1024, 2, 32), (4, 2, 512, 2, 16), (16, 2, 2048, 2, 64))
    )


TRAINING = {
    "pipeline-bubble-share": _bubbles,
    "pipeline-step-time": _pipelined,
    "pipeline-global-batch": _batches,
    "step-scaling-efficiency": _scaled,
    "step-days-of-training": _days,
    "failure-save-interval": _saves,
    "failure-slowest-rank": _slowest,
    "tensor-bytes-sent": _tensor,
    "layout-replicas": _replicas,
}
