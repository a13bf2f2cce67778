"""The page of formulas of each loop: what the library computes with, and drills worked once with the numbers of one
draw.
"""

from collections.abc import Callable
from typing import Any

from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import seeded
from threeloops.driving import (
    data_age,
    latency_budget,
    response_time,
    sensor_data,
    tail_samples,
)
from threeloops.foundations import instruction_pipelines
from threeloops.inner_loop import attention_io, block_formats, gemm_tiles, latency_hiding, launches, scaling
from threeloops.models import model_flops, utilisation
from threeloops.operations import roofline
from threeloops.product_loop import kv_cache, queueing, serving, speculative
from threeloops.sheets.layout import Page, Table
from threeloops.sheets.stated import stated
from threeloops.training_loop.memory import rank_states
from threeloops.training_loop.network import collectives, traffic
from threeloops.training_loop.parallelism import context_parallel, expert_load
from threeloops.training_loop.updates import loss_scaling

Formula = Callable[..., Any]
FORMULAS: dict[str, tuple[Formula, ...]] = {
    "inner": (
        roofline.ridge_point,
        roofline.attainable_flops_per_s,
        roofline.time,
        gemm_tiles.tile_intensity,
        gemm_tiles.tile_quantisation,
        latency_hiding.bytes_in_flight,
        attention_io.score_matrix_bytes,
        attention_io.row_statistics_bytes,
        attention_io.queries_outside_bytes,
        launches.queued_s,
        block_formats.stored_bytes,
        instruction_pipelines.pipelined_cycles,
        scaling.amdahl_speedup,
        scaling.amdahl_limit,
    ),
    "training": (
        model_flops.six_n_d,
        model_flops.training_flops,
        utilisation.utilisation,
        rank_states.model_states,
        collectives.bus_factor,
        collectives.hierarchical_all_reduce,
        traffic.tensor_parallel_traffic,
        context_parallel.contiguous_slowdown,
        expert_load.auxiliary_loss,
        loss_scaling.vanishes_up_to,
        scaling.scaled_speedup,
        scaling.efficiency,
    ),
    "product": (
        kv_cache.kv_bytes_per_token,
        serving.largest_batch_within_itl,
        serving.prefill_s,
        serving.decode_step_s,
        serving.request_s,
        serving.tpot_s,
        queueing.littles_law,
        serving.replicas,
        serving.dollars_per_million_tokens,
        serving.prefilled_tokens,
        queueing.mm1_wait_s,
        queueing.mg1_wait_s,
        queueing.mmc_late_share,
        speculative.tokens_per_check,
        speculative.speedup,
    ),
    "driving": (
        latency_budget.stopping_distance_m,
        latency_budget.highest_speed_m_per_s,
        sensor_data.camera_bytes_per_s,
        latency_budget.pipeline_frames_per_s,
        latency_budget.oldest_picture_s,
        latency_budget.speedup_needed,
        latency_budget.any_late_share,
        sensor_data.stamp_error_m,
        data_age.worst_reaction_s,
        response_time.response_time,
        tail_samples.frames_to_see,
    ),
}
WORKED = {
    "inner": ("roofline-gemm-intensity", "gpu-waves", "attention-kept-statistics", "amdahl-one-part"),
    "training": ("memory-zero-1", "ring-time", "two-level-all-reduce"),
    "product": ("kv-bytes-per-token", "kv-paged-blocks", "kv-scales", "kv-largest-batch"),
    "driving": (
        "latency-stopping-distance",
        "latency-oldest-picture",
        "latency-any-late",
        "sensor-time-stamp",
        "deadlines-chain",
        "deadlines-response",
    ),
}
INTRO = (
    "Say each aloud with its assumption: the assumption is what an interviewer asks about next. Base units inside:"
    " bytes, seconds, FLOP, metres."
)


def page(loop: str) -> Page:
    """The formulas of one loop."""
    found = [stated(function) for function in FORMULAS[loop]]
    sources = list(dict.fromkeys(one.source for one in found if one.source and not one.by_definition))
    table = Table(
        title="",
        head=("what", "formula", "assumes", "source"),
        rows=tuple(
            (
                one.says,
                one.formula,
                one.assumes or "–",
                f"[{sources.index(one.source) + 1}]" if one.source in sources else "–",
            )
            for one in found
        ),
    )
    return Page(
        title=f"Formulas of the {loop} loop" if loop != "driving" else "Formulas of driving",
        intro=INTRO,
        tables=(table, worked(loop)),
        sources=tuple(f"[{number}] {source}" for number, source in enumerate(sources, start=1)),
    )


def worked(loop: str) -> Table:
    """Some drills of the loop with the numbers of one draw put in."""
    rows = []
    for key in WORKED[loop]:
        drill = DRILLS[key]
        derivation = drill.derive(drill.draw(seeded("sheet", key)))
        rows.append((drill.title, derivation.formula, f"{derivation.in_numbers} = {drill.shown(derivation.value)}"))
    return Table(title="Worked once", head=("drill", "formula", "with numbers"), rows=tuple(rows))
