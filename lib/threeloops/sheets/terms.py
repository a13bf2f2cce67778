"""One thing, many names: our word, the papers', and the one that the tools print; and words given up.

>>> [row[0] for row in terms("inner").rows if "tensor pipe" in row[2]]
['tensor core']
>>> [word.field for word in FIELD if "under way" in word.retired]
[('in flight',)]
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.sheets.layout import Page, Table

# Our word, what papers call it, what tools call it.
INNER = (
    ("multiprocessor (SM)", "core, compute unit", "SM"),
    ("block", "thread block, work-group", "CUDA: thread block; CUTLASS, PTX: CTA"),
    ("warp, lane", "SIMD group; AMD: wavefront", "warp, lane"),
    ("cluster", "thread block cluster", "CUTLASS: ClusterShape"),
    ("shared memory", "scratchpad, SRAM", "CUTLASS: smem; Nsight Compute: Shared"),
    (
        "device memory",
        "HBM, DRAM, off-chip memory",
        "CUDA: global memory; CUTLASS: gmem; Nsight Compute: Device Memory, DRAM",
    ),
    ("sector (32 bytes)", "memory transaction", "Nsight Compute: sectors, sectors/request"),
    ("coalesced", "coalesced", "Nsight Compute: 4 sectors a request at fp32"),
    ("bank conflict, a turn more", "replay", "Nsight Compute: shared-memory bank conflicts, wavefronts"),
    ("divergence", "control-flow divergence", "Nsight Compute: average active threads per warp"),
    ("occupancy", "occupancy", "Nsight Compute: theoretical, achieved occupancy"),
    ("wave, last wave", "wave, tail", "Nsight Compute: waves per SM; NVIDIA's guides: tail effect"),
    (
        "tensor core",
        "matrix unit; TPU: MXU, a systolic array",
        "PTX: mma, wgmma, tcgen05.mma; Nsight Compute: tensor pipe",
    ),
    ("accumulators", "partial sums", "CUTLASS: accumulator"),
    ("block tile, warp tile", "macro-tile, register blocking", "CUTLASS: TileShape; Triton: BLOCK_M, BLOCK_N"),
    ("strip of A, of B", "panel", "CUTLASS: gA, gB; a step along it: k-tile, BLOCK_K"),
    ("stage", "double or multiple buffering", "CUTLASS: stages; Triton: num_stages"),
    ("producer, consumer warps", "warp specialisation", "CUTLASS: producer_acquire, consumer_wait"),
    ("copy of a whole tile", "bulk asynchronous copy", "TMA; PTX: cp.async.bulk.tensor"),
    ("layout", "data layout, index map", "CuTe: Layout, shape:stride, crd2idx"),
    ("swizzle of shared memory", "XOR permutation", "CuTe: Swizzle<B,M,S>"),
    ("order of blocks", "rasterisation", "CUTLASS: threadblock swizzle; Triton: grouped ordering"),
    ("split-K, Stream-K, persistent", "the same", "CUTLASS: tile schedulers of these names"),
    ("launch", "dispatch, issue", "torch.profiler, Nsight Systems: cudaLaunchKernel"),
    ("launch-bound", "CPU-bound, overhead-bound", "Nsight Systems: gaps in the kernels' row"),
    ("CUDA graph, replay", "graph capture and launch", 'torch.cuda.graph, graph.replay; mode="reduce-overhead"'),
    ("graph break", "graph break", "torch: explain().break_reasons, TORCH_LOGS=graph_breaks"),
    ("guard", "specialisation", "torch: TORCH_LOGS=recompiles, recompile_limit"),
    ("allocated, reserved", "live, cached memory", "torch: memory_allocated, memory_reserved"),
    ("own time, time with its callees", "exclusive, inclusive time", "torch.profiler: Self CPU, CPU total"),
    ("hidden share of communication", "overlap", "Holistic Trace Analysis: comm_comp_overlap"),
    ("busy SMs", "SM activity", "DCGM: SM_ACTIVE; nvidia-smi's utilisation says less"),
    ("busy tensor cores", "tensor activity", "DCGM: PIPE_TENSOR_ACTIVE"),
    ("waiting for device memory", "memory stall", "Nsight Compute: Stall Long Scoreboard"),
)
TRAINING = (
    ("replica, data parallelism", "data-parallel worker", "torch: DistributedDataParallel; Megatron: DP group"),
    ("bucket", "gradient bucket", "torch: bucket_cap_mb; Megatron: --ddp-bucket-size"),
    ("ZeRO stage 1, 2, 3", "P_os, P_os+g, P_os+g+p", "DeepSpeed: zero_optimization.stage; torch: fully_shard (3)"),
    ("stage 1 in Megatron", "distributed optimiser", "--use-distributed-optimizer"),
    ("sharding inside a group of replicas", "hybrid sharding, MiCS", "torch: HSDP, a mesh of two dimensions"),
    ("all-gather, reduce-scatter", "the same", "NCCL: AllGather, ReduceScatter; torch: all_gather_into_tensor"),
    ("tensor parallelism", "intra-layer model parallelism", "Megatron: --tensor-model-parallel-size"),
    ("columns first, then rows", "the same", "torch: ColwiseParallel, RowwiseParallel"),
    ("sequence parallelism", "Korthikanti: the same", "torch: SequenceParallel; Megatron: --sequence-parallel"),
    ("context parallelism", "sequence parallelism (Ulysses, ring attention)", "Megatron: --context-parallel-size"),
    ("zigzag", "zigzag; striped interleaves tokens", "the load balancing of context parallelism"),
    ("stage, cut", "inter-layer model parallelism, partition", "Megatron: --pipeline-model-parallel-size"),
    ("chunk", "virtual stage, model chunk", "torch: ScheduleInterleaved1F1B; Megatron: virtual pipeline"),
    ("1F1B", "PipeDream-Flush", "torch: Schedule1F1B"),
    ("D and W (input, weight gradient)", "B and W", "torch: ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble"),
    ("bubble, share of the step", "(p - 1) / m over the ideal time", "a profiler's idle share"),
    ("accumulation", "gradient accumulation", "torch: no_sync(); Megatron: --micro-batch-size, --global-batch-size"),
    ("expert parallelism", "the same (GShard)", "Megatron: --expert-model-parallel-size"),
    ("dispatch, combine", "all-to-all", "torch: all_to_all_single; DeepEP: dispatch, combine"),
    ("capacity factor, dropped", "expert capacity, token dropping", "Megatron: --moe-expert-capacity-factor"),
    ("recomputation: selective, full", "activation checkpointing, rematerialisation", "torch: checkpoint"),
    ("master copy", "fp32 master weights", "Megatron: main params; torch: MixedPrecisionPolicy's shards"),
    ("loss scale", "dynamic loss scaling", "torch: GradScaler"),
    ("amax, history, margin", "delayed scaling", "Transformer Engine: DelayedScaling"),
    ("alpha, bandwidth", "alpha-beta model", "NCCL: hwLat, hwBw"),
    ("algbw, busbw", "algorithm, bus bandwidth", "nccl-tests: columns of these names"),
    ("the switch adds", "in-network reduction, SHARP", "NCCL: NVLS, CollNet"),
    ("rail", "rail-optimised topology", "NCCL: PXN carries to the right rail"),
    ("taper", "oversubscription", "switch vendors: contention ratio"),
    ("network card", "NIC, HCA", "nvidia-smi topo -m; ibv_devinfo"),
    ("MFU, HFU", "model, hardware FLOPs utilisation", "Megatron: TFLOP/s/GPU, by FLOPs of its own"),
)
TERMS = {"inner": INNER, "training": TRAINING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What the field says, and what this book once said instead: a part that says the second says the first as well."""

    field: tuple[str, ...]  # any of these will do
    retired: tuple[str, ...]
    never: bool = False  # the retired word is not used at all


FIELD = (
    Word(field=("matmul", "GEMM"), retired=("product", "matrix product")),
    Word(field=("HBM",), retired=("device memory",)),
    Word(field=("SRAM",), retired=("shared memory",)),
    Word(field=("accumulator",), retired=("tile of sums", "32 sums", "8 sums", "sums per thread"), never=True),
    Word(field=("CUDA core",), retired=("ordinary unit", "ordinary lane", "ordinary core"), never=True),
    Word(field=("in flight",), retired=("under way",), never=True),
    Word(field=("bottleneck",), retired=("sets the pace", "set the pace", "pace-setter")),
    Word(field=("slot",), retired=("seat",)),
    Word(field=("network card", "PCIe card", "model card"), retired=("card",)),
    Word(
        field=("thread", "warp", "block", "GPU", "rank", "request", "engineer"),
        retired=("somebody", "whoever", "nobody", "everybody", "anybody"),
        never=True,
    ),
)


def terms(loop: str) -> Table:
    """The table of a chapter.

    Raises:   ValueError for a loop without one
    """
    checks.one_of(TERMS, loop=loop)
    return Table(title="One thing, many names", head=("here", "in papers", "in tools"), rows=TERMS[loop])


def retired() -> Table:
    """The field's words beside those that this book had for them."""
    rows = (
        (", ".join(word.field), ", ".join(word.retired), "no" if word.never else "beside the field's") for word in FIELD
    )
    return Table(title="", head=("the field's word", "once here", "still used?"), rows=tuple(rows))


def pages() -> tuple[Page, ...]:
    """The sheet: a page a chapter, and one for the words that were given up."""
    chapters = (
        Page(
            title=f"Names of the {loop} loop",
            intro="What this book, papers and tools call one thing.",
            tables=(terms(loop),),
        )
        for loop in TERMS
    )
    given_up = "A part of the book says the field's word where it says the one that this book once had."
    return (*chapters, Page(title="The field's words", intro=given_up, tables=(retired(),)))
