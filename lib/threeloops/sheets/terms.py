"""One thing, many names: our word, the papers', and the one that the tools print.

>>> [row[0] for row in terms("inner").rows if "tensor pipe" in row[2]]
['tensor core']
"""

from threeloops import checks
from threeloops.sheets.layout import Table

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
    ("sums", "partial sums", "CUTLASS: accumulator"),
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
TERMS = {"inner": INNER}


def terms(loop: str) -> Table:
    """The table of a chapter.

    Raises:   ValueError for a loop without one
    """
    checks.one_of(TERMS, loop=loop)
    return Table(title="One thing, many names", head=("here", "in papers", "in tools"), rows=TERMS[loop])
