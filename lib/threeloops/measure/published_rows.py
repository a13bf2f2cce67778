"""Published rows: the kernel times in a clone of NVIDIA's AIConfigurator, as rows of our families.

Read with pyarrow, which nothing else of this book needs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops import dtypes
from threeloops.facts.kernel_times import (
    DECODE,
    DELTA_SCAN,
    EXCHANGES,
    EXPERTS,
    LATENT_DECODE,
    LATENT_PREFILL,
    MATMUL,
    PREFILL,
    SIZES,
    STATE_SCAN,
    TimedRow,
)
from threeloops.units import ms

SYSTEMS = Path("aic-core/src/aiconfigurator_core/systems/data")
ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "nvfp4"}
# Products in fp8 by blocks, the input's quantising inside. vLLM's rows were timed call by call: a hundred microseconds
# of each are the host's. SGLang's on Blackwell bring the weights' scales into the kernel's order at every call, 7 to
# 10 µs that a server spends once; on H200 they scatter by 10 %, and of L40S and RTX PRO 6000 there are none.
BLOCKS, BLOCKS_THERE, BLOCKS_RELEASE = "fp8-block", "fp8_block", "trtllm/1.3.0rc20"
# Not read: whole numbers of 8 bits, which TensorRT-LLM 1.0.0 has on A100 and L40S. Its own profiler timed them, in
# steps of 1.024 µs.
# Experts in fp8 are those of checkpoints whose weights have a scale for each block.
EXPERT_FORMATS = {"bfloat16": "bf16", "fp8_block": "fp8", "nvfp4": "nvfp4", "w4a16_mxfp4": "mxfp4"}
LATENT_FORMATS = {"bfloat16": "bf16", "fp8_block": "fp8"}  # of the projections
# Devices whose latent blocks are read. On B300, GB200 and GB300 each takes 35 to 65 µs longer than on a B200 at every
# size, which no difference of theirs explains: perhaps their kernels were not replayed as one graph. Whether those of
# H100 and H200 were is not said either. Nobody serves such a model on L40S.
READ_BLOCKS = ("h100_sxm", "h200_sxm", "b200_sxm")
ROUTED, ONE_NODE = "power_law_1.01", 8
# Scans: how their kernels' names begin, and a release that is not the device's: of Mamba 2 one release on one device
# has the scan; all others have the convolution before it.
DELTA_KERNEL, STATE_KERNEL = "chunk_gated_delta_rule", "mamba_chunk_scan_combined"
STATE_RELEASE = ("b200_sxm", "trtllm/1.3.0rc15")
SCAN_COLUMNS = {
    "batch": "batch_size",
    "key_heads": "num_k_heads",
    "value_heads": "num_v_heads",
    "key_head_dim": "head_k_dim",
    "value_head_dim": "head_v_dim",
    "num_heads": "nheads",
    "head_dim": "head_dim",
    "state_dim": "d_state",
    "groups": "n_groups",
    "chunk": "chunk_size",
    "tokens": "seq_len",
}
LEAST_PRODUCTS = 14  # different m: a few samples make no table


@dataclass(frozen=True, slots=True)
class Device:
    """A part of the catalogue, its folder there, and the releases that were read."""

    part: str
    folder: str
    engine: str  # its folder: name and version
    nccl: str
    blocks: bool = True  # are there products in fp8 by blocks?

    @property
    def engine_said(self) -> str:
        return said(self.engine)

    def engine_of(self, family: str, format: str) -> str:
        """Whose kernels of a family were timed, in words."""
        if format == BLOCKS:
            return said(BLOCKS_RELEASE)
        return said(STATE_RELEASE[1]) if family == STATE_SCAN else self.engine_said


def said(engine: str) -> str:
    """A release's folder in words.

    >>> said("vllm/0.24.0")
    'vLLM 0.24.0'
    """
    return " ".join(ENGINES.get(word, word) for word in engine.split("/"))


def table_rows(folder: Path, device: Device) -> Iterator[tuple[str, str, list[str], list[TimedRow]]]:
    """Family, format, kernels and rows of everything that one device's files have for us."""
    products = read(folder, device, f"gemm/{device.engine}/gemm_perf.parquet")
    for there, ours in FORMATS.items():
        chosen = [row for row in products if row["gemm_dtype"] == there]
        if len({row["m"] for row in chosen}) > LEAST_PRODUCTS:
            yield MATMUL, ours, _kernels(chosen), [_row(row, SIZES[MATMUL]) for row in chosen]
    if device.blocks:
        products = read(folder, device, f"gemm/{BLOCKS_RELEASE}/gemm_perf.parquet")
        chosen = [row for row in products if row["gemm_dtype"] == BLOCKS_THERE]
        yield MATMUL, BLOCKS, _kernels(chosen), [_row(row, SIZES[MATMUL]) for row in chosen]
    for family, name in ((PREFILL, "context"), (DECODE, "generation")):
        calls = read(folder, device, f"attention/{device.engine}/{name}_attention_perf.parquet")
        for there, ours in (("bfloat16", "bf16"), ("fp8", "fp8")):
            chosen = [row for row in calls if row["kv_cache_dtype"] == there and _whole(row)]
            if chosen:
                yield family, ours, _kernels(chosen), [_attention_row(family, row) for row in chosen]
    # SGLang's of 2025 on the A100 follow their sizes less: 16 % off in the median, 71 % in one of ten
    layers = [] if "sglang" in device.engine else read(folder, device, f"moe/{device.engine}/moe_perf.parquet")
    for there, ours in EXPERT_FORMATS.items():
        chosen = [row for row in layers if row["moe_dtype"] == there and _in_a_node(row)]
        if chosen:
            yield EXPERTS, ours, _kernels(chosen), [_experts_row(row) for row in chosen]
    blocks = _latent_blocks(folder, device) if device.folder in READ_BLOCKS else []
    for family, rows_of in blocks:
        for there, ours in LATENT_FORMATS.items():
            chosen = [row for row in rows_of if row["gemm_type"] == there and row["kv_cache_dtype"] == "bfloat16"]
            if chosen:
                yield family, ours, _kernels(chosen), [_latent_row(family, row) for row in chosen]
    yield from _scans(folder, device)
    exchanges = read(folder, device, f"comm/nccl/{device.nccl}/nccl_perf.parquet")
    for op in EXCHANGES:
        chosen = [row for row in exchanges if row["op_name"] == op.replace("all_to_all", "alltoall")]
        chosen = [row for row in chosen if row["nccl_dtype"] == "half"]
        two = int(dtypes.bytes_per_element("fp16"))
        rows: list[TimedRow] = [((row["num_gpus"], row["message_size"] * two), row["latency"] * ms) for row in chosen]
        yield op, "bf16", [f"NCCL {device.nccl}"], rows


def _whole(row: Mapping[str, Any]) -> bool:
    """Attention to everything before, by bf16 queries."""
    return not row.get("window_size") and row["attn_dtype"] == "bfloat16"


def _attention_row(family: str, row: Mapping[str, Any]) -> TimedRow:
    heads = (row["batch_size"], row["num_heads"], row["num_key_value_heads"] or row["num_heads"], row["head_dim"])
    # a step of generation has `step` tokens in the cache, and its own
    return (*heads, row["isl"] if family == PREFILL else row["step"] + 1), row["latency"] * ms


def _in_a_node(row: Mapping[str, Any]) -> bool:
    """Experts of one node's GPUs, chosen as ROUTED says."""
    return row["distribution"] == ROUTED and row["moe_ep_size"] <= ONE_NODE


def _experts_row(row: Mapping[str, Any]) -> TimedRow:
    names = ("num_tokens", "num_experts", "topk", "hidden_size")
    here = row["inter_size"] // row["moe_tp_size"]  # of each expert's width
    return (*(row[name] for name in names), here, row["moe_ep_size"]), row["latency"] * ms


def _latent_blocks(folder: Path, device: Device) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        (family, read(folder, device, f"mla/{device.engine}/mla_{name}_module_perf.parquet"))
        for family, name in ((LATENT_PREFILL, "context"), (LATENT_DECODE, "generation"))
    ]


def _latent_row(family: str, row: Mapping[str, Any]) -> TimedRow:
    tokens = row["isl"] if family == LATENT_PREFILL else row["step"] + 1
    return (row["batch_size"], row["num_heads"], tokens), row["latency"] * ms


def _scans(folder: Path, device: Device) -> Iterator[tuple[str, str, list[str], list[TimedRow]]]:
    """Scans of recurrent layers over whole sequences, by 16-bit numbers."""
    places = {DELTA_SCAN: (f"{device.engine}/gdn_perf", DELTA_KERNEL)}
    if device.folder == STATE_RELEASE[0]:
        places[STATE_SCAN] = (f"{STATE_RELEASE[1]}/mamba2_perf", STATE_KERNEL)
    for family, (name, kernel) in places.items():
        scans = read(folder, device, f"linear_attention/{name}.parquet")
        chosen = [row for row in scans if row["kernel_source"].startswith(kernel) and row["phase"] == "context"]
        if chosen:
            sizes = [SCAN_COLUMNS[name] for name in SIZES[family]]
            yield family, "bf16", _kernels(chosen), [_row(row, sizes) for row in chosen]


def _row(row: Mapping[str, Any], names: Sequence[str]) -> TimedRow:
    return tuple(row[name] for name in names), row["latency"] * ms


def _kernels(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted({row["kernel_source"] for row in rows})


def read(folder: Path, device: Device, name: str) -> list[dict[str, Any]]:
    """One file of a device, a mapping a row."""
    from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

    found: list[dict[str, Any]] = parquet.read_table(folder / SYSTEMS / device.folder / name).to_pylist()
    return found
