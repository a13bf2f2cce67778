"""The interview sheet: how to use it, thirteen techniques, thirteen numbers, closed forms for a cluster, what to try
first, eight systems that are ill, what to read.

Words stand here and figures in `figures`: a name in braces is computed when the sheet is made, and a test refuses a
figure that is typed. The techniques stand in `techniques`, what to try first in `orders`, the reading in `reading`.
"""

from threeloops.room.kinds.scenario_table import SCENARIOS
from threeloops.sheets import cluster, figures, orders, reading, techniques
from threeloops.sheets.layout import Page, Table

HOW = """Print it. Cover the right half of a table, say what stands there with the reason, uncover, and tick what you said without stopping.
A calculation takes two minutes in an interview: `threeloops drill --mode sprint` times ten of them, with other numbers each time.
Learn the derivation with the number. A number alone answers one question; how it comes about answers the next one, which begins with “and if”."""  # noqa: E501

# What, how much, by which formula, and what to beware of.
MEMORISED = (
    (
        "H100, BF16, dense",
        "{peak}: {generation} an A100",
        "SMs × tensor cores × multiply-adds per cycle × 2 × clock",
        "the printed figure with sparsity is twice that",
    ),
    ("H100, memory", "{bandwidth}", "ridge point = peak / bandwidth = {ridge}", "below the ridge point, memory binds"),
    (
        "NVLink, one way",
        "A100 {nvlink_a100}, H100 {nvlink_h100}",
        "the printed rate / 2",
        "printed as {nvlink_a100_printed} and {nvlink_h100_printed}: both directions added",
    ),
    ("InfiniBand NDR, one way", "{infiniband}", "bit/s / 8", "{infiniband_bits} is the same thing in bits"),
    (
        "PCIe 5 x16, one way",
        "{pcie}",
        "lanes × transfers/s × 128/130 / 8",
        "an H100's NVLink sends {nvlink_over_pcie} that: ask which link",
    ),
    (
        "Ring all-reduce, {gpus} GPUs, {gradients}",
        "each sends {ring_sent}",
        "2 (n − 1)/n × bytes; / rate one way",
        "A100 {ring_a100}, H100 {ring_h100}, InfiniBand {ring_network}",
    ),
    (
        "Training a parameter with Adam",
        "{states}",
        "2 + 2 + 4 + 4 + 4",
        "weight and gradient in two bytes each, master and two moments in four; activations come on top",
    ),
    (
        "Training FLOP",
        "{six} per parameter and token",
        "2 forward + 4 backward",
        "attention comes on top",
    ),
    (
        "Cache per token, Llama 2 7B, BF16",
        "{kv_token}",
        "2 × layers × KV heads × head dim × bytes",
        "{tokens} tokens: {kv_context}; Llama 3 8B, with shared KV heads, {kv_token_new}",
    ),
    (
        "One token for one user, Llama 3 8B, H100",
        "{token_floor} at least",
        "bytes of weights / bandwidth",
        "{weights} of weights through {bandwidth}",
    ),
    (
        "A layer of {kernels} launches, {launch} each",
        "{launching_s}",
        "launches × time of one",
        "if the kernels are shorter than that, the host is the bottleneck",
    ),
    (
        "Score matrix, {tokens} tokens, one head, BF16",
        "{scores}",
        "tokens² × bytes",
        "fused attention keeps {statistics} and the output of {attention_output}, head {head_dim} wide",
    ),
    ("At {speed} km/h, one frame of {frame}", "{metres}", "speed × time", "every frame of delay is paid in road"),
)
ILL = 8  # of the scenarios: those that an interviewer tells
REPORTED = (
    "Paged cache: Kwon et al., 2023, arXiv:2309.06180, abstract (2–4×); vLLM project, blog of 20 June 2023 (up to 24×)",
    "Pipeline idle share: Huang et al., 2019, arXiv:1811.06965, section 2.3 (GPipe)",
    (
        "Everything else: computed by this library from its catalogue; `threeloops sources` lists every value with its"
        " page"
    ),
)


def memorised() -> Table:
    """Thirteen numbers, each with its formula."""
    return Table(title="Thirteen numbers", head=("what", "number", "formula", "beware"), rows=figures.filled(MEMORISED))


def debugging() -> Table:
    """Eight systems that are ill: what is seen, what to say in which order, and at the end what else to try."""
    rows = tuple(
        (ill.symptom, ill.loop, ill.cause, ill.look, f"{ill.fix}; {ill.also}" if ill.also else ill.fix)
        for ill in SCENARIOS[:ILL]
    )
    return Table(
        title="Eight systems that are ill", head=("what is seen", "loop", "cause", "look first", "then"), rows=rows
    )


def pages() -> tuple[Page, ...]:
    """Seven sides of paper: techniques, on two; numbers; a cluster's closed forms; what to try first; what is ill; what
    to read.
    """
    sources = (*REPORTED, techniques.worked_out_by())
    return (
        Page(
            title="Interview sheet: techniques",
            intro=HOW,
            tables=(techniques.table(),),
            sources=sources,
        ),
        Page(
            title="Interview sheet: more techniques",
            intro="Five that lists of thirteen leave out, and that a model of 2026 uses.",
            tables=(techniques.more(),),
        ),
        Page(
            title="Interview sheet: numbers",
            intro="Thirteen numbers to say without thinking.",
            tables=(memorised(),),
        ),
        Page(
            title="Interview sheet: a cluster",
            intro="Eight limits for a whiteboard: computing on one side, bytes on the other. See what cancels.",
            tables=(cluster.table(),),
            sources=(cluster.SOURCE,),
        ),
        Page(
            title="Interview sheet: what to try first",
            intro="From cheap to dear. What comes earlier would falsify the measurement of what comes later.",
            tables=(orders.training_first(), orders.serving_first()),
        ),
        Page(
            title="Interview sheet: symptoms",
            intro="Cover all but the first column. Which loop, which cause, which single measurement, then what?",
            tables=(debugging(),),
        ),
        Page(
            title="Interview sheet: reading",
            intro="What to read, and which question it answers.",
            tables=(reading.shelf(), reading.pages_of_others(), reading.pointers()),
        ),
    )
