"""What to read, and what for: two books, seven papers, five repositories; some pages; and where two topics are taught
that this chapter only names.
"""

from threeloops.sheets import figures
from threeloops.sheets.layout import Table

# What, which, what to read it for; of a page also one thing that it teaches, worked out in `figures_reading`.
# The first book and the first five papers are what lists of this field name; the others are this book's own choice.
BOOKS = (
    (
        "Computer Architecture: A Quantitative Approach",
        "Hennessy and Patterson, 6th ed., 2017",
        "how each number of a processor comes about, and the habit of asking for it; memory and GPUs first",
    ),
    (
        "Programming Massively Parallel Processors",
        "Hwu, Kirk and El Hajj, 4th ed., 2022",
        "how a GPU executes warps and why a matmul is cut into tiles; the chapters on memory and on reductions first",
    ),
)
PAPERS = (
    (
        "FlashAttention",
        "Dao et al., 2022, arXiv:2205.14135",
        "counting bytes instead of FLOP, and a proof that no exact algorithm moves asymptotically fewer bytes at all"
        " sizes of fast memory from d to N d (at some of them one may)",
    ),
    (
        "ZeRO",
        "Rajbhandari et al., 2019, arXiv:1910.02054",
        "where a training run's memory goes, and what each stage of sharding costs in traffic",
    ),
    (
        "Megatron-LM",
        "Shoeybi et al., 2019, arXiv:1909.08053",
        "a layer divided among GPUs with two all-reduces; pipelines came with the second paper, Narayanan et al., 2021,"
        " arXiv:2104.04473",
    ),
    (
        "Mixed precision training",
        "Micikevicius et al., 2017, arXiv:1710.03740",
        "a master copy, a loss scale and sums in FP32: which of the three BF16 makes unnecessary",
    ),
    (
        "GPTQ",
        "Frantar et al., 2022, arXiv:2210.17323",
        "weights rounded one column after the other, each error handed on to the columns that are left",
    ),
    (
        "Roofline",
        "Williams, Waterman and Patterson, Communications of the ACM 52(4), 2009",
        "the one picture to draw in every interview: bytes, FLOP, and which of the two binds",
    ),
    (
        "PagedAttention",
        "Kwon et al., 2023, arXiv:2309.06180",
        "a cache as an operating system sees it: blocks, tables, copies on write",
    ),
)
REPOSITORIES = (
    (
        "pytorch/pytorch",
        "torch/utils/checkpoint.py",
        "what a checkpointed call really keeps, and why it can stop recomputing early",
    ),
    (
        "Dao-AILab/flash-attention",
        "csrc/flash_attn/src/flash_fwd_kernel.h",
        "a tiled kernel: the loop over key blocks and the running maximum",
    ),
    (
        "vllm-project/vllm",
        "vllm/v1/core/sched/scheduler.py",
        "one scheduler step: who gets tokens, who is preempted, when a block is freed",
    ),
    (
        "deepspeedai/DeepSpeed",
        "deepspeed/runtime/zero/stage3.py",
        "when a sharded parameter is gathered, and when it is let go",
    ),
    (
        "NVIDIA/TensorRT",
        "samples/trtexec",
        "building an engine and timing it: warm-up, percentiles, what is inside the timed region",
    ),
)
PAGES = (
    (
        "Tuning PyTorch",
        "Performance Tuning Guide, docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        "a list to check a slow training script against before you profile: loader workers and pinned memory, needless"
        " waits for the GPU, channels last, fused kernels and optimisers",
        "a DataLoader has no workers by default, so loading and step add up: if loading is {waiting} of the time,"
        " enough workers give up to {waiting_at_most}",
    ),
    (
        "The H100, block by block",
        "NVIDIA Hopper Architecture In-Depth, 2022, developer.nvidia.com/blog/nvidia-hopper-architecture-in-depth (the"
        " whitepaper's text in short)",
        "where a printed rate comes from: units per SM times clock; which rates count sparsity, and what is new since"
        " the A100 (thread block clusters, the copy engine TMA, FP8)",
        "{sms} SMs × {sm_flops} FLOP a cycle × {tensor_clock} are the {peak} of the datasheet, in BF16 and dense",
    ),
    (
        "GPU basics",
        "Matrix Multiplication Background User's Guide, DU-09799-001, 2023, docs.nvidia.com/deeplearning/performance/"
        "dl-performance-matrix-multiplication",
        "why a matmul that is a little larger can be much slower: arithmetic intensity, tiles and waves, in ten pages",
        "{tiles} tiles on the {tile_places} SMs of an A100 take {tile_waves} waves, {tiles_full} full: the time doubles"
        " with one tile more",
    ),
    (
        "Tokenizers",
        "Byte-Pair Encoding tokenization, Hugging Face LLM Course, huggingface.co/learn/llm-course/chapter6/5",
        "what a token is before you count any: how a vocabulary is learnt, and why the same text is more tokens in"
        " another one",
        "in its corpus the pair u, g comes {pair_ug} times (hug, pug and hugs) and u, n {pair_un} (pun and bun), so"
        " “ug” is the first token learnt",
    ),
    (
        "TPU and GPU",
        "Austin et al., How to Scale Your Model, 2025, jax-ml.github.io/scaling-book/tpus and"
        " jax-ml.github.io/scaling-book/gpus",
        "which of your sentences hold on the other chip: the same rooflines for a systolic array (one large matrix"
        " unit fed in step) and for SMs, and what each has to its neighbours",
        "one {array} array does {array_flops} FLOP a cycle, as much as the tensor cores of {array_sms} SMs of an H100",
    ),
)
POINTERS = (
    ("Transformers", "chapter 1, part F1", "attention, heads, layers, and what a token costs"),
    ("Attention as a kernel", "chapter 1, part 6", "why the scores never need to exist, and bytes counted"),
    ("Distributed training", "chapter 2", "data, tensor, pipeline, expert parallelism; ZeRO and FSDP; networks"),
)


def shelf() -> Table:
    """Two books, seven papers, five repositories."""
    rows = (*BOOKS, *PAPERS, *REPOSITORIES)
    return Table(title="Reading", head=("what", "which", "read it for"), rows=rows)


def pages_of_others() -> Table:
    """Pages that lists of this field link to."""
    head = ("what", "which", "read it for", "one finding")
    return Table(title="Five pages", head=head, rows=figures.filled(PAGES))


def pointers() -> Table:
    """Topics that a last chapter points back to, and where this book teaches them."""
    return Table(title="Where it is taught", head=("topic", "where", "what you find there"), rows=POINTERS)
