"""The interview sheet: how to use it, thirteen techniques, what to try first, thirteen numbers, what to read.

Words stand here and figures in `figures`: a name in braces is computed when the sheet is made, and a test refuses a
figure that is typed.
"""

from threeloops.sheets import figures
from threeloops.sheets.layout import Page, Table

HOW = """Print it. Cover the right half of a table, say what stands there with the reason, uncover, and tick what you said without stopping.
A calculation takes two minutes in an interview: `threeloops drill --mode sprint` times ten of them, with other numbers each time.
Learn the derivation with the number. A number alone answers one question; how it comes about answers the next one, which begins with “and if”."""  # noqa: E501

# Technique, what it does to speed, to memory, what it costs to have, when. Every factor says what it is measured
# against.
TECHNIQUES = (
    (
        "BF16 mixed precision",
        "up to {bf16_speed} over TF32 where arithmetic binds",
        (
            "tensors kept for the backward pass in BF16 halve, those kept in FP32 do not; states stay: {states} a"
            " parameter, {states_fp32} in plain FP32"
        ),
        "a flag",
        "always; no loss scaling, unlike FP16",
    ),
    (
        "Recomputing activations",
        "a training step of {again} the time, so {again_speed} the speed",
        "one Llama 2 7B layer at {tokens} tokens: {kept} down to {kept_full}",
        "a line per layer",
        "activations do not fit; first the attention core alone",
    ),
    (
        "FlashAttention",
        "as much faster as unfused attention is bound by memory",
        "{scores} of scores per head at {tokens} tokens never exist; {statistics} per head are kept besides the output",
        "a library call",
        "always",
    ),
    (
        "Fusing kernels, torch.compile",
        "three elementwise kernels in a row: {fused} less traffic as one",
        "what lies between them is never stored",
        "compile time, and again for each new shape",
        "many small operations on large tensors",
    ),
    (
        "CUDA graphs",
        "hides what launches cost: {kernels} of {launch} are {launching_s} a layer",
        "its buffers stay reserved",
        "fixed shapes and addresses",
        "decode steps; kernels that move less than {hidden_bytes} on an H100",
    ),
    (
        "ZeRO-3, FSDP",
        "slower on thin links: {sharding_traffic} the traffic of data parallelism",
        "states of Llama 2 7B: {states_model} become {states_shared} on each of {gpus}; activations stay whole",
        "a wrapper",
        "states do not fit on one GPU",
    ),
    (
        "Tensor parallelism",
        "four all-reduces per layer and step: {tensor_sent} from each GPU, Llama 2 7B, {tokens} tokens on {gpus}",
        "weights, states and caches divided by the GPUs",
        "the layers are rewritten",
        "inside a node, where links are {network_slower} those outside",
    ),
    (
        "Pipeline parallelism",
        "idle for (p - 1) / (m + p - 1) of the time, p stages, m micro-batches",
        "weights divided by p; the first of {stages} stages still keeps {in_flight} of {micro_batches} micro-batches",
        "a schedule to get right",
        "between nodes: it sends the least",
    ),
    (
        "INT8 weights and activations",
        "up to {int8_speed} over BF16 where arithmetic binds",
        "{int8_smaller} smaller than BF16 ({int8_fp32} than FP32)",
        "calibration, outliers",
        "serving, if accuracy holds",
    ),
    (
        "INT4 weights, groups of {group}",
        "decode at small batch up to as much faster as the weights are smaller",
        "{int4_bits} bits with the scales: {int4_smaller} smaller than BF16 ({int4_fp32} than FP32)",
        "calibration, and kernels that unpack",
        "weights bind: small batches, small devices",
    ),
    (
        "Grouped-query attention",
        "longer batches, and less cache to read at each step",
        "cache of Llama 3 8B {kv_shared} smaller than with a KV head per query head",
        "decided when the model is trained",
        "always, in new models",
    ),
    (
        "Paged cache, continuous batching",
        "reported: 2–4× over tuned servers at equal latency (the paper), up to 24× over plain Transformers (the blog)",
        "less than a block of {block} tokens unused per request: {spare}, Llama 3 8B",
        "a serving engine",
        "any shared server",
    ),
    (
        "Speculative decoding",
        (
            "{checked} tokens per check if {accepted} are accepted, {drafted} drafted: {drafting} if a draft token"
            " costs {draft_cost}"
        ),
        "a second model and its cache",
        "a draft model that fits",
        "small batches; a full batch has no arithmetic to spare",
    ),
)
TRAINING_FIRST = (
    (
        "Is the device fed? Idle share of a trace, loader beside step",
        "{waiting} idle: {waiting_at_most}",
        "workers, prefetch, decode elsewhere",
    ),
    (
        "Does the batch fill it? Memory used, waves, padding",
        "measure: MFU before and after",
        "larger batch, recompute to make room, multiples of the tile",
    ),
    (
        "Is the arithmetic in BF16 on matrix units, attention fused?",
        "the roofline of each kernel",
        "autocast, fused attention, compile",
    ),
    (
        "Is communication hidden? Exposed share of a trace",
        "{exposed} exposed: {exposed_at_most}",
        "buckets, overlap, fewer and larger messages, inside the node",
    ),
    (
        "Do launches show? Gaps between kernels",
        "{launching} in gaps: {launching_at_most}",
        "fusion, graphs, fused optimiser",
    ),
    (
        "Only then a cleverer kernel",
        "{attention} of the step: {attention_at_most} even if it took no time",
        "profile it first",
    ),
)
SERVING_FIRST = (
    (
        "Batch what is there",
        "weights are read once for all; below {ridge} reading them binds, not arithmetic",
        "continuous batching, paged cache",
    ),
    (
        "Shrink what is read",
        "one token for one user reads {weights} of Llama 3 8B: {token_floor} at least",
        "narrow weights; then a narrow cache",
    ),
    ("Do not compute it twice", "prompts that begin alike", "prefix cache, routing that keeps it warm"),
    (
        "Keep prompts from stalling answers",
        "one long prompt holds up every decode step",
        "chunked prefill, or separate machines",
    ),
    ("Take the host out", "{kernels} launches of {launch} are {launching_s} a layer", "graphs, compiled samplers"),
    ("Guess ahead", "{drafting} alone, nothing under full load", "speculative decoding for the few users who need it"),
    ("Split the model", "last, for latency or size: each split adds messages", "tensor parallel inside the node"),
)
MEMORISED = (
    ("H100, BF16, dense", "{peak}: {generation} an A100", "the printed figure with sparsity is twice that"),
    ("H100, memory", "{bandwidth}", "ridge point {ridge}: below it, memory binds"),
    (
        "NVLink, one way",
        "A100 {nvlink_a100}, H100 {nvlink_h100}",
        "printed as {nvlink_a100_printed} and {nvlink_h100_printed}: both directions added",
    ),
    ("InfiniBand NDR, one way", "{infiniband}", "{infiniband_bits} is the same thing in bits"),
    ("PCIe 5 x16, one way", "{pcie}", "an H100's NVLink sends {nvlink_over_pcie} that: ask which link"),
    (
        "Ring all-reduce, {gpus} GPUs, {gradients}",
        "each sends {ring_sent}",
        "A100 {ring_a100}, H100 {ring_h100}, InfiniBand {ring_network}",
    ),
    (
        "Training a parameter with Adam",
        "{states}",
        "weights and gradients in two bytes each, master and two moments in four",
    ),
    ("Training FLOP", "{six} per parameter and token", "two forward, four backward; attention comes on top"),
    (
        "Cache per token, Llama 2 7B, BF16",
        "{kv_token}",
        "{tokens} tokens: {kv_context}; Llama 3 8B, with shared KV heads, {kv_token_new}",
    ),
    ("One token for one user, Llama 3 8B, H100", "{token_floor} at least", "{weights} of weights through {bandwidth}"),
    (
        "A layer of {kernels} launches, {launch} each",
        "{launching_s}",
        "if the kernels are shorter than that, the host sets the pace",
    ),
    (
        "Score matrix, {tokens} tokens, one head, BF16",
        "{scores}",
        "fused attention keeps {statistics} and the output of {attention_output}, head {head_dim} wide",
    ),
    ("At {speed} km/h, one frame of {frame}", "{metres}", "every frame of delay is paid in road"),
)
READING = (
    (
        "The book",
        "Hwu, Kirk and El Hajj, Programming Massively Parallel Processors, 4th ed., 2022",
        "how a GPU executes, and why tiles",
    ),
    (
        "Roofline",
        "Williams, Waterman and Patterson, Communications of the ACM 52(4), 2009",
        "the one picture to draw in every interview",
    ),
    ("FlashAttention", "Dao et al., 2022, arXiv:2205.14135", "count bytes, not FLOP"),
    ("ZeRO", "Rajbhandari et al., 2020, arXiv:1910.02054", "where a training run's memory goes"),
    (
        "Megatron-LM, second paper",
        "Narayanan et al., 2021, arXiv:2104.04473",
        "pipelines and the three ways together; tensor parallelism alone is Shoeybi et al., 2019",
    ),
    ("PagedAttention", "Kwon et al., 2023, arXiv:2309.06180", "a cache as an operating system sees it"),
    (
        "Repositories",
        "pytorch/pytorch, Dao-AILab/flash-attention, vllm-project/vllm, deepspeedai/DeepSpeed, NVIDIA/TensorRT",
        "read one scheduler and one kernel",
    ),
)
REPORTED = (
    "Paged cache: Kwon et al., 2023, arXiv:2309.06180, abstract (2–4×); vLLM project, blog of 20 June 2023 (up to 24×)",
    "Pipeline idle share: Huang et al., 2019, arXiv:1811.06965, section 2.3 (GPipe)",
    (
        "Everything else: computed by this library from its catalogue; `threeloops sources` lists every value with its"
        " page"
    ),
)


def _filled(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    known = figures.values()
    return tuple(tuple(cell.format(**known) for cell in row) for row in rows)


def pages() -> tuple[Page, ...]:
    """Two sides of one sheet of paper."""
    techniques = Table(
        title="Thirteen techniques", head=("technique", "speed", "memory", "price", "when"), rows=_filled(TECHNIQUES)
    )
    head = ("look at", "the most it can give", "then")
    note = "The most: Amdahl's law on your own share, not a factor from somebody else's run."
    return (
        Page(title="Interview sheet, front", intro=HOW, tables=(techniques,), sources=REPORTED),
        Page(
            title="Interview sheet, back",
            intro="Thirteen numbers to say without thinking, what to try first, and what to read.",
            tables=(
                Table(
                    title="Thirteen numbers", head=("what", "number", "because, and beware"), rows=_filled(MEMORISED)
                ),
                Table(title="Training too slow: in this order", head=head, rows=_filled(TRAINING_FIRST), note=note),
                Table(
                    title="Serving too slow or too dear: in this order",
                    head=("do", "because", "with"),
                    rows=_filled(SERVING_FIRST),
                ),
                Table(title="Reading", head=("what", "which", "for"), rows=READING),
            ),
        ),
    )
