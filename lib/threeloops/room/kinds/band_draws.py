"""What interviewers really ask: 8 GPUs, models and parts that are well known, 8k of context. For each drill its
interview draws, from the catalogue.

The draws hold the same numbers by the same names as the drill's own; formulas, slips and words stay the drill's.
"""

import functools
from collections.abc import Callable
from itertools import product
from typing import Any

from threeloops.drills.all_reduce.ring import engineering
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.kv_cache.contexts import real_shape
from threeloops.drills.roofline.intensity import dense
from threeloops.models.architecture import Attention
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds.band_driving import DRIVING
from threeloops.room.kinds.band_serving import SERVING
from threeloops.room.kinds.band_training import TRAINING
from threeloops.units import GB, MB, TB, MHz, billion, ms, us

Draws = Callable[[], tuple[Draw, ...]]

CHATTY = ("llama-3-8b", "llama-3-70b", "llama-2-7b", "qwen2.5-7b")
TRAINED = ("llama-2-7b", "llama-3-8b", "llama-2-13b", "llama-3-70b")
CARDS = ("a100-sxm4-80gb", "h100-sxm5", "h200-sxm")


def parameters(key: str) -> int:
    """Of a catalogued model, all of them."""
    return model_parameters(catalogued.model(key)).total


def shape(key: str) -> dict[str, Any]:
    """What a model's cache depends on, in 16 bits."""
    return real_shape(key) | {"bytes_per_element": 2}


def block(key: str) -> dict[str, Any]:
    """Layers, heads and width of a catalogued model."""
    model = catalogued.model(key)
    attention = model.groups[0][0].attention
    assert isinstance(attention, Attention)
    return {
        "name": catalogued.model_name(key),
        "layers": model.num_layers,
        "heads": attention.num_heads,
        "hidden": model.hidden,
    }


def _ring_bytes() -> tuple[Draw, ...]:
    return tuple(
        drawn(
            ranks=ranks,
            parameters=billions * billion,
            bytes_per_element=4,
            size=4 * billions * billion,
            rate=1,
            alpha=0,
        )
        for billions, ranks in product((7, 8, 70), (8, 64))
    )


def _ring_time() -> tuple[Draw, ...]:
    return tuple(
        drawn(
            ranks=ranks,
            size=size * GB,
            rate=catalogued.part(link)["bytes_per_s_one_way"],
            link=catalogued.part(link).name,
            alpha=0,
        )
        for (link, ranks), size in product((("nvlink-4", 8), ("nvlink-3", 8), ("infiniband-ndr", 32)), (2, 14, 16))
    )


def _two_levels() -> tuple[Draw, ...]:
    rates = {
        "inside": catalogued.part("nvlink-4")["bytes_per_s_one_way"],
        "between": catalogued.part("infiniband-ndr")["bytes_per_s_one_way"],
    }
    names = {"gpu": "H100", "card": catalogued.part("infiniband-ndr").name}
    return tuple(
        drawn(**rates, **names, per_node=8, nodes=nodes, size=size * GB) for nodes, size in product((4, 8), (14, 16))
    )


def _busbw() -> tuple[Draw, ...]:
    return tuple(drawn(ranks=8, size=size * GB, seconds=seconds * ms) for size, seconds in ((1, 4), (8, 40), (4, 20)))


def _kv_per_token() -> tuple[Draw, ...]:
    return tuple(drawn(**(shape(key) | {"bytes_per_element": 1})) for key in (*CHATTY, "llama-3-405b"))


def _kv_requests() -> tuple[Draw, ...]:
    return tuple(
        drawn(**shape(key), prompt=7168, generated=1024, requests=requests)
        for key, requests in product(CHATTY, (8, 32, 64))
    )


def _kv_fit() -> tuple[Draw, ...]:
    pairs = (
        ("llama-3-8b", "h100-sxm5"),
        ("llama-3-8b", "a100-sxm4-80gb"),
        ("llama-2-7b", "h100-sxm5"),
        ("llama-3-70b", "b200-hgx"),
        ("llama-3-8b", "l40s"),
    )
    return tuple(
        drawn(
            **shape(key),
            weights_bytes=2 * parameters(key),
            card=catalogued.part(card).name,
            memory_bytes=catalogued.part(card)["usable_bytes"],
            share=0.9,
            tokens=tokens,
        )
        for (key, card), tokens in product(pairs, (2048, 4096))
    )


def _kv_outweighs() -> tuple[Draw, ...]:
    return tuple(
        drawn(**shape(key), weights_bytes=2 * parameters(key), requests=requests)
        for key, requests in product(CHATTY, (8, 16, 64))
    )


def _states() -> tuple[Draw, ...]:
    return tuple(
        drawn(name=catalogued.model_name(key), parameters=parameters(key), dp=1)
        for key in (*TRAINED, "gpt3-175b", "llama-3-405b")
    )


def _zero() -> tuple[Draw, ...]:
    return tuple(drawn(parameters=billions * billion, dp=dp) for billions, dp in product((7, 8, 13, 70), (8, 64)))


def _zero_3() -> tuple[Draw, ...]:
    rows = []
    for key, dp in product(("llama-2-70b", "llama-3-70b"), (32, 64, 128)):
        total = model_parameters(catalogued.model(key))
        ((layer, _),) = total.layers
        rows.append(
            drawn(
                name=catalogued.model_name(key),
                parameters=total.total,
                layers=catalogued.model(key).num_layers,
                layer=layer.total,
                gathered=2,
                dp=dp,
            )
        )
    return tuple(rows)


def _logits() -> tuple[Draw, ...]:
    rows = ("llama-3-8b", "llama-2-7b", "llama-3-70b")
    shapes = [
        {
            "name": catalogued.model_name(key),
            "vocab": catalogued.model(key).vocab,
            "hidden": catalogued.model(key).hidden,
            "norm": "rmsnorm",
        }
        for key in rows
    ]
    return tuple(drawn(**names, tokens=8192, batch=batch) for names, batch in product(shapes, (2, 4)))


def _activations() -> tuple[Draw, ...]:
    return tuple(
        drawn(**block(key), tokens=tokens, batch=batch)
        for key, (tokens, batch) in product(("gpt2-xl", "gpt3-175b"), ((1024, 8), (2048, 4)))
    )


def _ridge() -> tuple[Draw, ...]:
    rows = []
    for key, dtype in (("a100-sxm4-80gb", "bf16"), ("h100-sxm5", "bf16"), ("b200-hgx", "bf16"), ("h100-sxm5", "fp8")):
        part = catalogued.part(key)
        rates = {
            "sparse": part.sparse_peak_flops_per_s(dtype),
            "fp32": part.peak_flops_per_s("fp32"),
            "memory": part["memory_bytes_per_s"],
        }
        rows.append(drawn(part=part.name, dtype=dtype.upper(), **rates, link=2 * part["link_bytes_per_s_one_way"]))
    return tuple(rows)


def _gemm() -> tuple[Draw, ...]:
    return tuple(
        drawn(m=m, k=k, n=n, bytes_per_element=2)
        for m, (k, n) in product((16, 64, 4096, 8192), ((4096, 4096), (4096, 14336), (8192, 28672)))
    )


def _gemm_time() -> tuple[Draw, ...]:
    return tuple(
        drawn(**dense(card), m=m, k=4096, n=14336, bytes_per_element=2) for card, m in product(CARDS, (16, 64, 8192))
    )


def _mfu() -> tuple[Draw, ...]:
    runs = (
        ("h100-sxm5", 8, "llama-3-8b", 80_000),
        ("h100-sxm5", 512, "llama-3-70b", 500_000),
        ("a100-sxm4-80gb", 64, "llama-2-7b", 200_000),
    )
    return tuple(
        drawn(**dense(card), gpus=gpus, parameters=parameters(key), tokens_per_s=rate) for card, gpus, key, rate in runs
    )


def _launch() -> tuple[Draw, ...]:
    rows = []
    for key, card in product(("gpt2-xl", "gpt2-large", "llama-3-8b"), ("h100-sxm5", "a100-sxm4-80gb")):
        names = {
            "name": catalogued.model_name(key),
            "layers": catalogued.model(key).num_layers,
            "parameters": parameters(key),
        }
        rows.append(drawn(**names, **dense(card), launches=12, launch_s=5 * us))
    return tuple(rows)


def _scores() -> tuple[Draw, ...]:
    return tuple(
        drawn(**names, batch=4, tokens=tokens)
        for names, tokens in product(map(_heads, ("llama-3-8b", "llama-2-7b", "llama-3-70b")), (8192, 32768))
    )


def _heads(key: str) -> dict[str, Any]:
    numbers = shape(key)
    return {
        "heads": numbers["query_heads"],
        "kv_heads": numbers["kv_heads"],
        "head_dim": numbers["head_dim"],
        "bytes_per_element": 2,
    }


def _peak_parts() -> tuple[Draw, ...]:
    parts = map(catalogued.part, ("v100-sxm2-32gb", "a100-sxm4-80gb", "h100-sxm5"))
    names = ("sms", "matrix_units_per_sm", "matrix_fmas_per_cycle_fp16")
    return tuple(
        drawn(
            **dict(zip(("sms", "units", "fmas"), (int(part[name]) for name in names), strict=True)),
            clock_mhz=round(part["boost_clock_hz"] / MHz),
        )
        for part in parts
    )


def _in_flight() -> tuple[Draw, ...]:
    parts = map(catalogued.part, ("v100-sxm2-32gb", "a100-sxm4-80gb", "h100-sxm5"))
    return tuple(
        drawn(
            sms=int(part["sms"]),
            tb=float(engineering(part["memory_bytes_per_s"] / TB)),
            cycles=int(part["memory_latency_cycles"]),
            clock_ghz=part["boost_clock_hz"] / GB,
        )
        for part in parts
    )


def _amdahl() -> tuple[Draw, ...]:
    return tuple(drawn(products=share, waiting=5, factor=factor) for share, factor in product((50, 80, 90), (2, 4)))


def _needed_factor() -> tuple[Draw, ...]:
    return tuple(drawn(products=share, speedup=speedup) for share, speedup in ((80, 2), (60, 1.5), (90, 4), (75, 2)))


def _workers() -> tuple[Draw, ...]:
    return tuple(
        drawn(batch=batch, decode_s=10 * ms, augment_s=augment * ms, step_s=step * ms)
        for batch, augment, step in ((256, 5, 100), (128, 10, 50), (256, 5, 250))
    )


def _graph() -> tuple[Draw, ...]:
    return tuple(
        drawn(layers=layers, ops=10, issue_s=10 * us, kernel_s=5 * us, gap_s=1 * us, launch_s=20 * us)
        for layers in (32, 40, 80)
    )


def _carbon() -> tuple[Draw, ...]:
    return tuple(
        drawn(gpus=gpus, days=days, power_w=700, overhead=1.2, kg_per_kwh=grid)
        for gpus, days, grid in ((1024, 30, 0.4), (512, 10, 0.4), (16384, 54, 0.4))
    )


def _paged() -> tuple[Draw, ...]:
    return tuple(drawn(block=16, tokens=tokens, per_token=131_072, requests=64) for tokens in (100, 500, 2000))


def _blocks() -> tuple[Draw, ...]:
    return tuple(drawn(element_bits=4, block=32, weights=billions * billion) for billions in (7, 8, 70))


def _bucket() -> tuple[Draw, ...]:
    return tuple(
        drawn(ranks=ranks, size=size * MB, alpha=5 * us, rate=50 * GB) for ranks, size in product((64, 1024), (1, 25))
    )


# By drill. The last five that stand here are asked for their order of magnitude only.
INTERVIEW: dict[str, Draws] = {
    "ring-bytes-per-rank": _ring_bytes,
    "ring-time": _ring_time,
    "two-level-all-reduce": _two_levels,
    "busbw": _busbw,
    "kv-bytes-per-token": _kv_per_token,
    "kv-whole-requests": _kv_requests,
    "kv-largest-batch": _kv_fit,
    "kv-outweighs-weights": _kv_outweighs,
    "kv-paged-blocks": _paged,
    "memory-model-states": _states,
    "memory-zero-1": _zero,
    "memory-zero-2": _zero,
    "memory-zero-3": _zero_3,
    "memory-logits": _logits,
    "memory-activations": _activations,
    "roofline-ridge-point": _ridge,
    "roofline-gemm-intensity": _gemm,
    "roofline-time-bound": _gemm_time,
    "roofline-mfu": _mfu,
    "attention-score-matrix": _scores,
    "gpu-peak-from-parts": _peak_parts,
    "amdahl-one-part": _amdahl,
    "amdahl-needed-factor": _needed_factor,
    "overheads-loader-workers": _workers,
    "format-block-bytes": _blocks,
    "gpu-bytes-in-flight": _in_flight,
    "roofline-launch-bound": _launch,
    "overheads-graph-replay": _graph,
    "ring-small-message": _bucket,
    "foundations-carbon": _carbon,
    **TRAINING,
    **SERVING,
    **DRIVING,
}
MAGNITUDE = (
    "gpu-bytes-in-flight",
    "roofline-launch-bound",
    "overheads-graph-replay",
    "ring-small-message",
    "foundations-carbon",
)


@functools.cache
def draws(key: str) -> tuple[Draw, ...]:
    """The interview draws of a drill."""
    return INTERVIEW[key]()
