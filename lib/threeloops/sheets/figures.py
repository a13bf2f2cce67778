"""Every figure of the interview sheet, by name: its words ask for {kv_token}, and what stands there was computed when
the sheet was made. Those of attention and of serving stand in `figures_serving`, of pages in `figures_reading`.
"""

import functools

from threeloops import units
from threeloops.driving import latency_budget, stage_work
from threeloops.dtypes import bytes_per_element
from threeloops.facts import frame_rates
from threeloops.facts.hardware import part
from threeloops.inner_loop import fusion, launches, number_formats, scaling
from threeloops.inner_loop.block_formats import BlockFormat
from threeloops.models import catalogue, model_flops
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.models.parameters import model_parameters
from threeloops.operations import roofline
from threeloops.sheets import figures_reading, figures_serving
from threeloops.sheets.figures_serving import (
    ACCEPTED,
    BF16,
    BLOCK,
    CHUNK,
    DRAFT_COST,
    DRAFTED,
    H100,
    LAUNCH_S,
    OLD,
    TOKENS,
    USERS,
    bytes_shown,
    times,
)
from threeloops.training_loop.memory import in_flight, rank_states
from threeloops.training_loop.memory.activations import per_layer
from threeloops.training_loop.network import collectives, traffic
from threeloops.training_loop.parallelism import pipelines
from threeloops.training_loop.updates import optimisers

A100 = "a100-sxm4-80gb"
GPUS, GROUP = 8, 128
KERNELS = 50  # per layer: the interview's round number
GRADIENT_BYTES = 14 * units.GB  # what people say for 7 billion parameters in two bytes
STAGES, MICRO_BATCHES = 4, 16
SHARES = {"waiting": 0.3, "exposed": 0.2, "launching": 0.15, "attention": 0.1}
SPEED_KM_H, FRAME_S = 120, 33 * units.ms
FP32 = bytes_per_element("fp32")
# BEVFormer in FP32 on an RTX 3090, frames/s in PyTorch and in TensorRT: DerryHub/BEVFormer_tensorrt, commit 303d314
ENGINE_FRAMES = {"tiny": (15.9, 40.0), "base": (2.4, 3.0)}


@functools.cache
def values() -> dict[str, str]:
    """Name -> figure as it is printed."""
    serving = figures_serving.values(gpus=GPUS, int4_bits=_int4().bits_per_element)
    return {
        **_machines(),
        **_memory(),
        **_training(),
        **_changed(),
        **serving,
        **figures_reading.values(),
        **_shares(),
        **_givens(),
    }


def filled(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Words with their figures put in."""
    known = values()
    return tuple(tuple(cell.format(**known) for cell in row) for row in rows)


def _givens() -> dict[str, str]:
    """What the questions take for granted."""
    return {
        "tokens": f"{TOKENS:,}",
        "gpus": f"{GPUS}",
        "group": f"{GROUP}",
        "block": f"{BLOCK}",
        "kernels": f"{KERNELS}",
        "launch": units.fmt_seconds(LAUNCH_S),
        "gradients": bytes_shown(GRADIENT_BYTES, 10),
        "accepted": units.fmt_percent(ACCEPTED),
        "drafted": f"{DRAFTED}",
        "draft_cost": units.fmt_percent(DRAFT_COST),
        "users": f"{USERS}",
        "chunk": f"{CHUNK}",
        "stages": f"{STAGES}",
        "micro_batches": f"{MICRO_BATCHES}",
        "speed": f"{SPEED_KM_H}",
        "frame": units.fmt_seconds(FRAME_S),
        **{name: units.fmt_percent(share) for name, share in SHARES.items()},
    }


def _machines() -> dict[str, str]:
    h100, a100 = part(H100), part(A100)
    peak, bandwidth = h100.peak_flops_per_s("bf16"), h100["memory_bytes_per_s"]
    seconds = {
        key: collectives.collective_time(
            op="all_reduce",
            algorithm="ring",
            size_bytes=GRADIENT_BYTES,
            ranks=GPUS,
            alpha_s=0.0,
            bytes_per_s_one_way=part(key)["bytes_per_s_one_way"],
        )
        for key in ("nvlink-3", "nvlink-4", "infiniband-ndr")
    }
    return {
        "peak": units.fmt_si(peak, "FLOP/s"),
        "generation": times(peak / a100.peak_flops_per_s("bf16")),
        "bandwidth": units.fmt_si(bandwidth, "B/s"),
        "ridge": units.fmt(roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=bandwidth), "FLOP/B"),
        "bf16_speed": times(peak / h100.peak_flops_per_s("tf32")),
        "int8_speed": times(h100.peak_flops_per_s("int8") / peak),
        "nvlink_a100": units.fmt_si(part("nvlink-3")["bytes_per_s_one_way"], "B/s"),
        "nvlink_a100_printed": units.fmt_si(part("nvlink-3")["advertised_bytes_per_s"], "B/s"),
        "nvlink_h100": units.fmt_si(part("nvlink-4")["bytes_per_s_one_way"], "B/s"),
        "nvlink_h100_printed": units.fmt_si(part("nvlink-4")["advertised_bytes_per_s"], "B/s"),
        "infiniband": units.fmt_si(part("infiniband-ndr")["bytes_per_s_one_way"], "B/s"),
        "infiniband_bits": units.fmt_si(part("infiniband-ndr")["bytes_per_s_one_way"] * units.BITS_PER_BYTE, "bit/s"),
        "pcie": units.fmt_si(part("pcie-5-x16")["bytes_per_s_one_way"], "B/s"),
        "nvlink_over_pcie": times(part("nvlink-4")["bytes_per_s_one_way"] / part("pcie-5-x16")["bytes_per_s_one_way"]),
        "ring_sent": bytes_shown(seconds["nvlink-4"].sent_bytes_per_rank, 10),
        "ring_a100": units.fmt_seconds(seconds["nvlink-3"].bandwidth_s),
        "ring_h100": units.fmt_seconds(seconds["nvlink-4"].bandwidth_s),
        "ring_network": units.fmt_seconds(seconds["infiniband-ndr"].bandwidth_s),
        "network_slower": times(seconds["infiniband-ndr"].bandwidth_s / seconds["nvlink-4"].bandwidth_s),
        "launching_s": units.fmt_seconds(KERNELS * LAUNCH_S),
        "hidden_bytes": bytes_shown(launches.break_even_bytes(issue_s=LAUNCH_S, memory_bytes_per_s=bandwidth), 10),
        "metres": (
            f"{latency_budget.distance_m(speed_m_per_s=SPEED_KM_H * units.km / units.hour, seconds=FRAME_S):.2g} m"
        ),
    }


def _memory() -> dict[str, str]:
    count = model_parameters(catalogue.model(OLD)).total
    buckets = ParameterBuckets.plain(count)
    states = {
        (recipe, stage): (
            rank_states.model_states(
                parameters=buckets, recipe=recipe, zero_stage=stage, dp=GPUS, tp=1, pp=1
            ).total_bytes
        )
        for recipe, stage in (("zero-paper", 0), ("zero-paper", 3), ("fp32", 0))
    }
    sent = [
        traffic.data_parallel_traffic(
            zero_stage=stage, num_parameters=count, dp=GPUS, bytes_per_gradient=BF16, bytes_per_parameter=BF16
        ).total_bytes
        for stage in (0, 3)
    ]
    int4 = _int4()
    return {
        "states": f"{states['zero-paper', 0] / count:g} bytes",
        "states_fp32": f"{states['fp32', 0] / count:g}",
        "states_model": bytes_shown(states["zero-paper", 0], 10),
        "states_shared": bytes_shown(states["zero-paper", 3], 10),
        "sharding_traffic": times(sent[1] / sent[0]),
        "int8_smaller": times(BF16 / bytes_per_element("int8")),
        "int8_fp32": times(bytes_per_element("fp32") / bytes_per_element("int8")),
        "int4_bits": f"{int4.bits_per_element:.4g}",
        "int4_smaller": times(number_formats.BF16.bits / int4.bits_per_element),
        "int4_fp32": times(number_formats.FP32.bits / int4.bits_per_element),
    }


def _changed() -> dict[str, str]:
    """What another optimiser, engine or network brings."""
    count = model_parameters(catalogue.model(OLD)).total
    update, apart = (
        optimisers.update_bytes(num_parameters=count, kernels=kernels, bytes_per_element=FP32)
        for kernels in ("one", "separate")
    )
    sent = traffic.data_parallel_traffic(
        zero_stage=0, num_parameters=count, dp=GPUS, bytes_per_gradient=BF16, bytes_per_parameter=BF16
    )
    whole, half = (
        stage_work.convolutions(((channels, channels, 3, 1),), height=64, width=64)[0].flops for channels in (128, 64)
    )
    dense, sparse = (
        frame_rates.frame_rate(key).frames_per_s["maxn"].value
        for key in ("orin-dla-resnet-34", "orin-dla-resnet-34-sparse")
    )
    small, large = (model_parameters(catalogue.model(key)).total for key in ("llama-3.2-3b", "llama-3-8b"))
    return {
        "adam_s": units.fmt_seconds(update / part(H100)["memory_bytes_per_s"]),
        "adam_less": times(apart / update),
        "ddp_sent": bytes_shown(sent.total_bytes, 10),
        "engine_least": times(ENGINE_FRAMES["base"][1] / ENGINE_FRAMES["base"][0]),
        "engine_most": times(ENGINE_FRAMES["tiny"][1] / ENGINE_FRAMES["tiny"][0]),
        "pruned_less": times(whole / half),
        "sparse_speed": times(sparse / dense),
        "student_less": times(large / small),
    }


def _int4() -> BlockFormat:
    """A format with as many bits per element as INT4."""
    return BlockFormat(name="INT4", element=number_formats.E2M1, block=GROUP, scale=number_formats.FP16)


def _kept(recompute: str) -> int:
    """Activations of one layer of the older model."""
    model = catalogue.model(OLD)
    return per_layer(
        model.groups[0][0],
        hidden=model.hidden,
        sequence=TOKENS,
        micro_batch=1,
        bytes_per_element=2,
        kernels="fused",
        dropout=False,
        recompute=recompute,
    ).total_bytes


def _training() -> dict[str, str]:
    model = catalogue.model(OLD)
    work = model_flops.training_flops(model, batch=1, sequence=TOKENS, causal="half", recompute="full")
    again = (work.model + work.recomputed) / work.model
    kept = {recompute: _kept(recompute) for recompute in ("none", "full")}
    chain = [fusion.Operation("one", ("in",)), fusion.Operation("two", ("one",)), fusion.Operation("three", ("two",))]
    sizes = dict.fromkeys(("in", "one", "two", "three"), 1.0)
    saved = fusion.separate_bytes(chain, sizes=sizes) / fusion.fused_bytes(chain, sizes=sizes, needed=("three",))
    halves = traffic.tensor_parallel_traffic(
        tokens=TOKENS,
        hidden=model.hidden,
        num_layers=1,
        tp=GPUS,
        bytes_per_element=BF16,
        sequence_parallel=False,
        regather_input=False,
    )
    return {
        "again": times(again),
        "again_speed": times(1 / again),
        "kept": bytes_shown(kept["none"], 2),
        "kept_full": bytes_shown(kept["full"], 2),
        "kept_less": times(kept["none"] / kept["full"]),
        "fused": times(saved),
        "tensor_sent": bytes_shown(halves.total_bytes, 10),
        "tensor_step": bytes_shown(model.num_layers * halves.total_bytes, 10),
        "idle": units.fmt_percent(
            pipelines.bubble(
                schedule="1f1b",
                pp=STAGES,
                micro_batches=MICRO_BATCHES,
                forward_s=1,
                input_gradient_s=1,
                weight_gradient_s=1,
            ).share_of_step
        ),
        "in_flight": (
            f"{in_flight.micro_batches_in_flight(schedule='1f1b', stage=0, pp=STAGES, micro_batches=MICRO_BATCHES):g}"
        ),
        "six": f"{model_flops.six_n_d(num_parameters=1, tokens=1):g}",
    }


def _shares() -> dict[str, str]:
    """The most that removing a share of the time can win."""
    return {f"{name}_at_most": times(scaling.amdahl_limit(accelerated_share=share)) for name, share in SHARES.items()}


def factors() -> dict[str, tuple[float, float]]:
    """Technique and what it shrinks -> (times faster, times less memory), figures above; see techniques.factors."""
    known = {name: float(told.rstrip("×")) for name, told in values().items() if told.endswith("×")}
    return {
        "BF16: activations": (known["bf16_speed"], bytes_per_element("fp32") / BF16),
        "recomputing: activations": (known["again_speed"], known["kept_less"]),
        "INT8: weights": (known["int8_speed"], known["int8_smaller"]),
        "INT4: weights": (known["int4_smaller"], known["int4_smaller"]),
        "shared KV heads: cache": (known["gqa_speed"], known["kv_shared"]),
        "speculation: weights": (known["drafting"], 1 / (1 + DRAFT_COST)),
    }
