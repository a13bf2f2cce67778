"""Recorded cases: what `threeloops record` measures, case by case, each under a name that holds its sizes, so that
the same name is always the same work.

>>> Case(kind="gemm", dtype="bf16", sizes={"m": 1, "n": 4096, "k": 4096}).name
'gemm-bf16-m1-n4096-k4096'
"""

from collections.abc import Mapping
from dataclasses import dataclass

from threeloops import checks, dtypes
from threeloops.units import fmt_bytes

ATTENTION = ("batch", "heads", "head_dim", "tokens")
DECODE = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "batch", "context")
EXPERTS = ("tokens", "experts", "top_k", "hidden", "intermediate")
PREFILL = (*DECODE[:6], "batch", "tokens")
LOOP = (*DECODE[:6], "vocabulary", "users", "prompt", "answer", "requests")
PRODUCT = ("m", "n", "k")
ROWS = ("rows", "width")
TRAIN = ("layers", "hidden", "heads", "vocabulary", "tokens", "batch")

# What can be recorded, and the sizes that say how much of it. One sample is one call.
KINDS: dict[str, tuple[str, ...]] = {
    "copy": ("bytes",),  # read an array of so many bytes and write it elsewhere
    "triad": ("bytes",),  # a = b + scalar * c, arrays of so many bytes each
    "reread": ("bytes", "read_bytes"),  # read a working set of so many bytes round and round, so many bytes in all
    "recopy": ("bytes", "moved_bytes"),  # copy one half of a working set over the other again and again, one graph
    "chase": ("bytes", "loads"),  # one thread, each address the result of the load before, so many bytes to walk in
    "inflight": ("bytes", "warps", "loads"),  # so many warps on an SM, each waiting for so many loads at a time
    "strided": ("reads", "stride"),  # a number per thread, so many numbers from its neighbour's
    "banks": ("requests", "stride"),  # of an SM's warps to its shared memory, neighbours so many words apart
    "paths": ("steps", "paths"),  # warps whose threads go so many ways, so many multiply-adds on each
    "copy_to_gpu": ("bytes",),  # from pinned memory of the host
    "copy_from_gpu": ("bytes",),
    "copy_to_gpu_pageable": ("bytes",),  # from memory that the host may move
    "copy_from_gpu_pageable": ("bytes",),
    "saxpy": ("elements", "load_bits"),  # y = a * x + y in Triton, so many bits per load
    "softmax": ROWS,
    "rmsnorm": ROWS,
    "layernorm_fused": ROWS,  # torch's one kernel
    "layernorm_steps": ROWS,  # written out: nine kernels
    "layernorm_compiled": ROWS,  # the nine, compiled
    "gemm": PRODUCT,
    "gemm_zeros": PRODUCT,  # of numbers that are all 0
    "gemm_int4": PRODUCT,  # weights of 4 bits in groups of 128, activations in the case's format
    "gemm_graph": (*PRODUCT, "calls"),  # the same product so many times, issued by one CUDA graph
    "gemm_long": (*PRODUCT, "seconds"),  # after so many seconds of the same product without a pause
    "tiled_gemm": (*PRODUCT, "tile"),  # a plain tile kernel in Triton, square tiles
    "ladder_naive": PRODUCT,  # CUDA C++: a thread for each number of the result
    "ladder_tiled": PRODUCT,  # tiles of both operands in shared memory
    "ladder_registers": PRODUCT,  # and 8 x 8 sums in the registers of each thread
    "attention_unfused": ATTENTION,  # scores written out
    "attention_fused": ATTENTION,  # one kernel
    "attention_causal": ATTENTION,  # the same behind a causal mask
    "attention_cudnn": ATTENTION,  # cuDNN's kernel, causal
    "attention_causal_backward": ATTENTION,  # the backward pass alone
    "attention_cudnn_backward": ATTENTION,
    "experts_grouped": EXPERTS,  # gate and up, silu, down: two matmuls for all experts, dealt out to the tokens in turn
    "experts_loop": EXPERTS,  # an expert after the other
    "sample_greedy": ROWS,  # the largest of a row
    "sample_top_p": ROWS,  # sort a row, cut it where the probabilities reach a sum, draw
    "launch": ("operations",),  # so many operations on a single number
    "launch_graph": ("operations",),  # issued by one CUDA graph
    "train_eager": TRAIN,  # forward, backward and AdamW, in fp32 with autocast
    "train_compiled": TRAIN,
    "train_peak": TRAIN,  # bytes that such a step allocates at its highest, weights and states included
    "decode_eager": DECODE,  # the layers of one decode step
    "decode_compiled": DECODE,
    "decode_graph": DECODE,
    "prefill_eager": PREFILL,  # the layers of one prompt's forward pass
    "loop_first": LOOP,  # an engine that serves so many users: from a request's arrival to its first token
    "loop_gap": LOOP,  # between two of its tokens
}
SAMPLED = ("loop_first", "loop_gap")  # a call gives many samples, one of each request
BYTES = ("train_peak",)  # measured in bytes; all others in seconds
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One piece of work that a machine can be timed at."""

    kind: str
    dtype: str
    sizes: Mapping[str, int]

    def __post_init__(self) -> None:
        checks.one_of(KINDS, kind=self.kind)
        checks.one_of(dtypes.BITS, dtype=self.dtype)
        checks.table(sizes=self.sizes)
        if set(self.sizes) != set(KINDS[self.kind]):
            raise ValueError(
                f"sizes of {self.kind} must be {', '.join(KINDS[self.kind])}, not"
                f" {', '.join(map(str, self.sizes)) or 'none'}"
            )
        checks.count(**self.sizes)

    @property
    def name(self) -> str:
        """Kind, number format and every size."""
        return "-".join([self.kind, self.dtype, *(f"{size}{self.sizes[size]}" for size in KINDS[self.kind])])

    @property
    def label(self) -> str:
        """The same for a row of a table: of a decode step, how many layers of which width.

        >>> Case(
        ...     kind="attention_fused", dtype="bf16", sizes={"batch": 1, "heads": 8, "head_dim": 64, "tokens": 4096}
        ... ).label
        'attention, fused, bf16, 1×8×64×4096'
        """
        kind, _, way = self.kind.partition("_") if self.kind != "tiled_gemm" else ("tiled gemm", "", "")
        sizes = [self.sizes[size] for size in KINDS[self.kind]]
        whole = kind in ("decode", "train", "prefill", "loop")
        shape = f"{sizes[0]} layers of {sizes[1]}" if whole else "×".join(map(str, sizes))
        if kind in ("decode", "prefill"):
            shape += f", batch {self.sizes['batch']}"
        if kind == "prefill":
            shape += f", {self.sizes['tokens']} tokens"
        if kind == "loop":
            shape += f", {self.sizes['users']} users"
        if KINDS[self.kind][0] == "bytes":
            shape = fmt_bytes(sizes[0], base=2)
        if kind == "inflight":
            shape += f", {self.sizes['warps']} warps, {self.sizes['loads']} loads"
        return ", ".join(filter(None, (kind, way.replace("_", " "), self.dtype, shape)))

    @property
    def unit(self) -> str:
        """Of what is measured: s, or B.

        >>> Case(kind="launch", dtype="fp32", sizes={"operations": 10}).unit
        's'
        """
        return "B" if self.kind in BYTES else "s"
