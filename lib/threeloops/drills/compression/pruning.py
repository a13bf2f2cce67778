"""Drills on smaller models by other means: weights that are left out, thin factors, adapters, and a student that must
pay for its lessons.
"""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.judge import close
from threeloops.drills.engine.phrasing import giga
from threeloops.foundations import dense_networks
from threeloops.product_loop import compression
from threeloops.simulate.product_loop import narrow_weights
from threeloops.units import billion

TAUGHT = Taught("product", "Compression")

# --- how many may stay ---------------------------------------------------------------------------


def _draw_kept(rng: random.Random) -> Draw:
    bits = rng.choice((4, 6, 8))
    target = -(-100 // bits) + rng.randrange(16, 34)
    return drawn(bits=bits, target=target / 100)


def _count_kept(p: Draw) -> float:
    """Take weight after weight out of a tensor until its mask and what is left are as small as wanted."""
    places = 400
    for kept in range(places, 0, -1):
        if len(narrow_weights.masked([1] * kept + [0] * (places - kept), bits=p.bits)) <= round(
            p.target * places * p.bits
        ):
            return kept / places
    return 0.0


KEPT = Drill(
    key="compression-kept-for-size",
    taught=TAUGHT,
    title="Holes take room, too",
    unit="",
    target_s=90,
    draw=_draw_kept,
    small=lambda rng: drawn(bits=rng.choice((4, 8)), target=rng.choice((0.5, 0.45))),
    prompt=lambda p: (
        f"A tensor of {p.bits}-bit weights is pruned anywhere, and stored as a mask of one bit per place followed by"
        f" the weights that were kept. It shall take no more than {100 * p.target:g} % of what the full tensor took."
        " What share of the weights may be kept at most?"
    ),
    derive=lambda p: Derivation(
        value=p.target - (1 - compression.bitmask_break_even_density(element_bits=p.bits)),
        formula="wanted share − 1 / bits: the mask costs one bit of every weight's, kept or not",
        substitution=f"{p.target} − 1 / {p.bits}",
        source=(
            "arithmetic of a bitmask; see Han et al., Deep Compression, 2016, arXiv:1510.00149, section 2 (storing the"
            " places of pruned weights)"
        ),
    ),
    count=_count_kept,
    slips=(
        Slip("no-mask", lambda p: p.target)
        | "You stored no mask. Without it a kernel cannot tell where the kept weights belong.",
        Slip("pruned-share", lambda p: 1 - p.target + 1 / p.bits)
        | "That is the share that is left out. The question asks for what may stay.",
        Slip("bit-per-kept", lambda p: p.target * p.bits / (p.bits + 1))
        | "You gave a mask bit to the kept weights only. A hole needs one, too.",
        Slip("indices", lambda p: p.target * p.bits / (p.bits + 16))
        | "You stored a 16-bit place with every kept weight. Here a mask says where they stand.",
    ),
)

# --- thin factors --------------------------------------------------------------------------------


def _draw_rank(rng: random.Random) -> Draw:
    rows, columns = rng.choice(((4096, 11008), (4096, 14336), (5120, 13824), (3584, 9728), (5120, 17408)))
    return drawn(rows=rows, columns=columns, share=rng.randrange(30, 61, 2) / 100)


def _count_rank(p: Draw) -> float:
    """Make the factors one wider each time, and count their entries."""
    rank, whole = 0, p.rows * p.columns
    while True:
        left, right = narrow_weights.factors(rows=p.rows, columns=p.columns, rank=rank + 1)
        if sum(map(len, left)) + sum(map(len, right)) > p.share * whole:
            return float(rank)
        rank += 1


RANK = Drill(
    key="compression-low-rank",
    taught=TAUGHT,
    title="Two thin matrices for one",
    unit="",
    whole="down",
    target_s=90,
    draw=_draw_rank,
    small=lambda rng: drawn(rows=rng.choice((30, 40)), columns=rng.choice((70, 90)), share=rng.choice((0.4, 0.5))),
    prompt=lambda p: (
        f"A weight matrix of {p.rows:,} by {p.columns:,} is replaced by a product of two thin ones, which together may"
        f" have at most {100 * p.share:g} % of its parameters. What is the largest rank that this allows?"
    ),
    derive=lambda p: Derivation(
        value=float(int(p.share * dense_networks.break_even_rank(rows=p.rows, columns=p.columns) + 1e-9)),
        formula="⌊share × rows × columns / (rows + columns)⌋",
        substitution=f"floor({p.share} × {p.rows} × {p.columns} / ({p.rows} + {p.columns}) + 0.000000001)",
        source="Hu et al., LoRA, 2021, arXiv:2106.09685, section 4.1 (rank × (rows + columns) parameters)",
    ),
    count=_count_rank,
    slips=(
        Slip("shorter-side", lambda p: p.share * p.rows)
        | "You took a share of the full rank. Two factors take more than that share of the parameters.",
        Slip("one-factor", lambda p: p.share * p.columns) | "You counted the parameters of one factor. There are two.",
        Slip("break-even", lambda p: p.rows * p.columns / (p.rows + p.columns))
        | "There the factors have as many parameters as the matrix. They shall have fewer.",
        Slip("half-side", lambda p: p.share * p.rows / 2) | "You took the matrix for a square one. Its sides differ.",
    ),
)

# --- adapters ------------------------------------------------------------------------------------


def _draw_lora(rng: random.Random) -> Draw:
    hidden, kv_width, layers, billions = rng.choice(
        ((4096, 1024, 32, 8.03), (5120, 1024, 40, 14.8), (4096, 1024, 36, 8.19), (5120, 1024, 64, 32.5))
    )
    return drawn(
        hidden=hidden,
        kv_width=kv_width,
        layers=layers,
        billions=billions,
        rank=rng.choice((6, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 128)),
    )


def _lora(p: Draw, *, rank: int | None = None, layers: int | None = None) -> float:
    used = p.rank if rank is None else rank
    both = sum(
        dense_networks.low_rank_parameters(rows=p.hidden, columns=columns, rank=used)
        for columns in (p.hidden, p.kv_width)
    )
    return float((p.layers if layers is None else layers) * both / (p.billions * billion))


def _count_lora(p: Draw) -> float:
    trained = 0
    for _layer in range(p.layers):
        for columns in (p.hidden, p.kv_width):
            for factor in narrow_weights.factors(rows=p.hidden, columns=columns, rank=p.rank):
                trained += sum(1 for row in factor for _entry in row)
    return float(trained / (p.billions * billion))


LORA = Drill(
    key="compression-adapter-share",
    taught=TAUGHT,
    title="How little is trained",
    unit="",
    target_s=100,
    draw=_draw_lora,
    small=lambda rng: drawn(
        hidden=rng.choice((12, 16)), kv_width=4, layers=rng.choice((3, 5)), billions=rng.choice((4e-6, 5e-6)), rank=2
    ),
    prompt=lambda p: (
        f"A model of {p.billions:g} billion parameters has {p.layers} layers, hidden size and queries {p.hidden}"
        f" wide, keys and values {p.kv_width}. LoRA adapters of rank {p.rank} are put beside the query projection and"
        " the value projection of every layer, and only they are trained. As a share of the model's parameters, how"
        " many is that?"
    ),
    derive=lambda p: Derivation(
        value=_lora(p),
        formula="layers × rank × ((hidden + hidden) + (hidden + value width)) / parameters",
        substitution=(
            f"{p.layers} × {p.rank} × ({p.hidden} + {p.hidden} + {p.hidden} + {p.kv_width}) /"
            f" {giga(p.billions * billion)}"
        ),
        source="Hu et al., LoRA, 2021, arXiv:2106.09685, section 4",
    ),
    count=_count_lora,
    prerequisites=("compression-low-rank",),
    slips=(
        Slip("all-heads-wide", lambda p: p.layers * p.rank * 4 * p.hidden / (p.billions * billion))
        | "You made the value projection as wide as the query's. Keys and values are narrower here.",
        Slip("one-layer", lambda p: _lora(p, layers=1)) | "That is one layer. Every layer has adapters.",
        Slip("whole-matrices", lambda p: p.layers * p.hidden * (p.hidden + p.kv_width) / (p.billions * billion))
        | "Those are the projections themselves. They stay as they are; only the adapters are trained.",
        Slip("one-factor", lambda p: p.layers * p.rank * 2 * p.hidden / (p.billions * billion))
        | "You counted one factor of each adapter. It is a product of two.",
        Slip("query-only", lambda p: p.layers * p.rank * (p.hidden + p.kv_width) / (p.billions * billion))
        | "You put an adapter beside one projection. The query's is adapted, too.",
    ),
)

# --- a student -----------------------------------------------------------------------------------


def _draw_student(rng: random.Random) -> Draw:
    teacher, student = rng.choice(((70, 8), (70, 12), (49, 8), (32, 4), (27, 4), (72, 14)))
    return drawn(teacher=teacher, student=student, tokens=rng.randrange(8, 40), unit=billion)


def _small_student(rng: random.Random) -> Draw:
    teacher, student = rng.choice(((8, 1), (10, 2), (6, 1)))
    return drawn(teacher=teacher, student=student, tokens=(teacher - student) * rng.choice((2, 3)), unit=1)


def _student(p: Draw, *, learn: int = 6, read: int = 2, saved: float | None = None) -> float:
    spent = p.tokens * p.unit * (learn * p.student + read * p.teacher)
    return float(spent / (2 * (p.teacher - p.student) if saved is None else saved))


def _is_no_figure(p: Draw) -> bool:
    """Whoever copies a size out of the question, in tokens instead of parameters, may not be right by it."""
    return not any(close(figure * p.unit, _student(p), tolerance=0.02) for figure in (p.teacher, p.student, p.tokens))


def _count_student(p: Draw) -> float:
    """Serve token after token with the teacher, and with the student whose lessons come first, until the second is no
    longer behind.
    """
    with_student = sum(2 * p.student + 2 * 2 * p.student + 2 * p.teacher for _lesson in range(p.tokens))
    with_teacher = served = 0
    while with_teacher < with_student:
        with_teacher, with_student, served = with_teacher + 2 * p.teacher, with_student + 2 * p.student, served + 1
    return float(served)


STUDENT = Drill(
    key="compression-distillation-break-even",
    taught=TAUGHT,
    title="When the lessons are paid for",
    unit="token",
    target_s=120,
    draw=_draw_student,
    wanted=_is_no_figure,
    small=_small_student,
    prompt=lambda p: (
        f"A student of {p.student}{' billion' if p.unit == billion else ''} parameters learns from a teacher of"
        f" {p.teacher}{' billion' if p.unit == billion else ''}, both dense, on"
        f" {p.tokens}{' billion' if p.unit == billion else ''} tokens, for each of which the teacher's forward pass is"
        " run, too. An operation costs the same in training and in serving. After how many served tokens has the"
        " student saved what its training cost?"
    ),
    derive=lambda p: Derivation(
        value=compression.break_even_tokens(
            teacher_parameters=p.teacher * p.unit,
            student_parameters=p.student * p.unit,
            training_tokens=p.tokens * p.unit,
        ),
        formula="training tokens × (6 × student + 2 × teacher) / (2 × (teacher − student))",
        substitution=f"{p.tokens} × {p.unit} × (6 × {p.student} + 2 × {p.teacher}) / (2 × ({p.teacher} − {p.student}))",
        source=(
            "Kaplan et al., 2020, arXiv:2001.08361, section 2.1 (2N forward, 6N in training); Hinton et al., 2015,"
            " arXiv:1503.02531"
        ),
    ),
    count=_count_student,
    slips=(
        Slip("teacher-silent", lambda p: _student(p, read=0))
        | "You left out the teacher. It has to read every training token as well.",
        Slip("teacher-learns", lambda p: _student(p, read=6)) | "You trained the teacher, too. It only answers.",
        Slip("forward-only", lambda p: _student(p, learn=2)) | "You trained the student without a backward pass.",
        Slip("student-free", lambda p: _student(p, saved=2 * p.teacher))
        | "You served the student for nothing. A token saves only the difference.",
    ),
)

DRILLS = (KEPT, RANK, LORA, STUDENT)
