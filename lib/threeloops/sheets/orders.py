"""What to try first where training or serving is too slow: in which order, with which techniques, and what each of them
does and is worth.

Words stand here and figures in `figures`: a name in braces is computed when the sheet is made, and a test refuses a
figure that is typed.
"""

from threeloops.sheets import figures
from threeloops.sheets.layout import Table

# What to look at, the most that it can give, with what and how that helps.
TRAINING_FIRST = (
    (
        "Is the device fed? Idle share of a trace, loader beside step",
        "{waiting} idle: {waiting_at_most}",
        (
            "more workers: batches are made in several processes at once; prefetch: the next batch waits before it is"
            " asked for; decode elsewhere: beforehand, or on the GPU, where the cores are full"
        ),
    ),
    (
        "Does the batch fill it? Memory used, waves, padding",
        "measure: MFU before and after",
        (
            "larger batch: the same launches and weights serve more tokens; recompute to make room: {again} the time"
            " of a step; multiples of the tile: no tile is computed for padding"
        ),
    ),
    (
        "Is the arithmetic in BF16 on tensor cores, attention fused?",
        "{bf16_speed} over TF32; up to {flash_speed} in attention at {tokens} tokens; the roofline of each kernel",
        (
            "autocast: matmuls run in BF16, sums stay in FP32; fused attention: scores never leave the chip; compile:"
            " elementwise kernels become one, {fused} less traffic for three"
        ),
    ),
    (
        "Is communication hidden? Exposed share of a trace",
        "{exposed} exposed: {exposed_at_most}",
        (
            "buckets: gradients leave in groups while the backward pass goes on (overlap); fewer and larger messages:"
            " where latency binds; inside the node: the chattiest split on the links that are {network_slower} as fast"
        ),
    ),
    (
        "Do launches show? Gaps between kernels",
        "{launching} in gaps: {launching_at_most}",
        (
            "fusion: fewer kernels; graphs: a step's launches in one call; fused optimiser: one kernel for many"
            " parameters instead of some for each"
        ),
    ),
    (
        "Only then a cleverer kernel",
        "{attention} of the step: {attention_at_most} even if it took no time",
        "profile it first: how far is it from its roof, and does anything else bind?",
    ),
)
# What to do, why, with which techniques and what each does, when that pays.
SERVING_FIRST = (
    (
        "Batch what is there",
        "weights are read once for all; below {ridge} reading them binds, not arithmetic",
        (
            "continuous batching: a request joins or leaves at any step; paged cache: memory in blocks of {block}"
            " tokens as a request grows, so that more of them fit"
        ),
        "any shared server: {users} users of {tokens} tokens get {batch_gain} the tokens/s of one",
    ),
    (
        "Shrink what is read",
        "one token for one user reads {weights} of Llama 3 8B: {token_floor} at least",
        (
            "narrow weights: INT4 with a scale per group, {int4_floor}; then a narrow cache: keys and values in FP8,"
            " half the bytes of each token"
        ),
        (
            "weights: few users. Cache: {users} users of {tokens} tokens hold {caches} of it; halved, {cache_gain} the"
            " tokens/s. Check the accuracy of both"
        ),
    ),
    (
        "Do not compute it twice",
        "prompts that begin alike: {tokens} tokens take {prompt_s} at the peak",
        (
            "prefix cache: blocks of a beginning that was read before are looked up, not computed; routing that keeps"
            " it warm: requests go to the replica that holds their beginning"
        ),
        "system prompts, long chats, agents; costs the memory of what is kept, {kv_kept} for that beginning",
    ),
    (
        "Keep prompts from stalling answers",
        "while such a prompt is read, no other request gets a token",
        (
            "chunked prefill: {chunk} tokens of it beside each decode step; separate machines: some read prompts,"
            " others write, and the cache is sent over"
        ),
        (
            "chunks: always; the stall becomes {chunk_s} at the peak. Machines: many GPUs and a promise on both times;"
            " sending takes {handover_s} by InfiniBand NDR"
        ),
    ),
    (
        "Take the host out",
        "{kernels} launches of {launch} are {launching_s} a layer",
        (
            "graphs: a step's launches are recorded once and sent in one call; compiled samplers: the next token is"
            " chosen on the GPU, so that the step does not wait for the host"
        ),
        "small batches, whose kernels move less than {hidden_bytes}",
    ),
    (
        "Guess ahead",
        "a step for one token leaves arithmetic idle",
        "speculative decoding: a small model drafts {drafted} tokens, the large one checks all of them in one pass",
        "few users, {drafting} with {accepted} accepted; where arithmetic binds {drafting_full} the speed",
    ),
    (
        "Split the model",
        "last, for latency or size: each split adds messages",
        (
            "tensor parallel inside the node: each GPU reads its share of every matrix, and two all-reduces a layer"
            " add up the results"
        ),
        "it does not fit, or one user waits: {token_floor} become {split_floor} on {gpus} GPUs, {launch} an all-reduce",
    ),
)
SERVING_NOTE = (
    "Llama 3 8B in BF16 on an H100; floors of bytes over bandwidth and FLOP over peak, not forecasts. Examples, put in"
    " your own: {users} users, {tokens} tokens, {accepted} accepted, {launch} a launch or an all-reduce."
)


def training_first() -> Table:
    """What to look at when training is too slow, in order."""
    note = "The shares are made up, put in your own. The most: Amdahl's law, 1 / (1 − share)."
    head = ("look at", "the most it can give", "then")
    rows = figures.filled(TRAINING_FIRST)
    return Table(title="Training too slow: in this order", head=head, rows=rows, note=note)


def serving_first() -> Table:
    """What to do when serving is too slow or too dear, in order."""
    head = ("do", "because", "with", "when it pays")
    ((note,),) = figures.filled(((SERVING_NOTE,),))
    rows = figures.filled(SERVING_FIRST)
    return Table(title="Serving too slow or too dear: in this order", head=head, rows=rows, note=note)
