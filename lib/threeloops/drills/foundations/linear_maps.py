"""Drills on functions before there is a network: lines inside lines, the order of products, how alike two vectors
are.
"""

import math
import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.foundations import dense_networks, lines, similarity

TAUGHT = Taught("inner", "Foundations: networks")
SOURCE_LINEAR = "Strang, Introduction to Linear Algebra, 5th ed., 2016, chapter 8 (linear maps compose by multiplying)"
SOURCE_ORDER = (
    "Cormen, Leiserson, Rivest, Stein, Introduction to Algorithms, 3rd ed., 2009, section 15.2 (matrix chains)"
)
SOURCE_COSINE = "Strang, Introduction to Linear Algebra, 5th ed., 2016, section 1.2"


# --- a line inside a line -----------------------------------------------------------------------


def _draw_composed(rng: random.Random) -> Draw:
    return drawn(a=rng.randrange(3, 10), b=rng.randrange(11, 24), c=rng.randrange(2, 8), d=rng.randrange(19, 42))


def _outer(p: Draw) -> lines.Line:
    return lines.Line(p.a, p.b)


def _inner(p: Draw) -> lines.Line:
    return lines.Line(p.c, p.d)


def _count_composed(p: Draw) -> float:
    """Both layers run on 0: whatever comes out did not come from the input."""
    inside = sum(0 for _ in range(p.c)) + p.d
    return float(sum(inside for _ in range(p.a)) + p.b)


COMPOSED = Drill(
    key="foundations-composed-lines",
    taught=TAUGHT,
    title="Two layers without a bend",
    unit="",
    whole="exact",
    target_s=45,
    apart=1 / 0.9,
    draw=_draw_composed,
    small=_draw_composed,
    prompt=lambda p: (
        f"The first layer of a network without activations computes g(x) = {p.c} x + {p.d}, the second f(x) = {p.a} x +"
        f" {p.b}. Together they are a single line w x + b. How large is its intercept b?"
    ),
    derive=lambda p: Derivation(
        value=float(lines.composed(_outer(p), _inner(p)).intercept),
        formula="slope of the second layer × intercept of the first + intercept of the second",
        substitution=f"{p.a} * {p.d} + {p.b}",
        source=SOURCE_LINEAR,
    ),
    count=_count_composed,
    slips=(
        Slip("other-way-round", lambda p: float(lines.composed(_inner(p), _outer(p)).intercept))
        | "You put the second layer inside the first. Which of the two sees the input?",
        Slip("product", lambda p: float(p.b * p.d))
        | "You multiplied the functions. A layer is applied to the result of the layer before.",
        Slip("added", lambda p: float(p.b + p.d))
        | "You added the intercepts. The first one still has to pass through the second layer.",
        Slip("own-intercept-lost", lambda p: float(p.a * p.d)) | "The second layer has an intercept of its own.",
    ),
)

# --- the order of two products -------------------------------------------------------------------


def _sizes(p: Draw) -> dict[str, int]:
    return {"rows": p.rows, "left": p.rank, "right": p.inputs, "columns": p.tokens}


def _derive_order(p: Draw) -> Derivation:
    left, right = dense_networks.left_first_flops(**_sizes(p)), dense_networks.right_first_flops(**_sizes(p))
    product = f"(2 * {p.rows} * {p.rank} * {p.inputs} + 2 * {p.rows} * {p.inputs} * {p.tokens})"
    return Derivation(
        value=left / right,
        formula="(2 rows rank inputs + 2 rows inputs columns) / (2 rank inputs columns + 2 rows rank columns)",
        substitution=f"{product} / (2 * {p.rank} * {p.inputs} * {p.tokens} + 2 * {p.rows} * {p.rank} * {p.tokens})",
        source=SOURCE_ORDER,
    )


def _multiply_adds(rows: int, inner: int, columns: int) -> int:
    """Multiply-adds of one product, entry by entry."""
    return sum(1 for _ in range(rows) for _ in range(columns) for _ in range(inner))


def _count_order(p: Draw) -> float:
    left = _multiply_adds(p.rows, p.rank, p.inputs) + _multiply_adds(p.rows, p.inputs, p.tokens)
    right = _multiply_adds(p.rank, p.inputs, p.tokens) + _multiply_adds(p.rows, p.rank, p.tokens)
    return left / right


ORDER = Drill(
    key="foundations-product-order",
    taught=TAUGHT,
    title="Which product first",
    unit="",
    target_s=120,
    apart=1 / 0.9,
    draw=lambda rng: drawn(
        rows=rng.choice((3000, 4000, 5000)),
        rank=rng.choice((12, 16, 20, 24, 28)),
        inputs=rng.choice((1100, 1300, 1700, 1900)),
        tokens=rng.choice((40, 60, 90)),
    ),
    small=lambda rng: drawn(
        rows=rng.choice((11, 13)), rank=rng.choice((2, 3)), inputs=rng.choice((5, 7)), tokens=rng.choice((4, 6))
    ),
    prompt=lambda p: (
        f"A is a matrix of {p.rows:,} × {p.rank}, B of {p.rank} × {p.inputs:,}, and X of {p.inputs:,} × {p.tokens}. (A"
        " B) X and A (B X) are the same matrix. How many times the FLOPs of the second order does the first take?"
    ),
    derive=_derive_order,
    count=_count_order,
    slips=(
        Slip("last-product-only", lambda p: p.inputs / p.rank)
        | "You compared the products that each order ends with. The first products cost something too.",
        Slip("first-product-only", lambda p: p.rows / p.tokens)
        | "You compared the products that each order begins with. Each order has a second one.",
        Slip("the-other-ratio", lambda p: 1 / _derive_order(p).value)
        | "You turned the ratio round: the order that was asked about stands on top.",
        Slip("product-once-for-all", lambda p: p.inputs * p.rows / (p.rank * (p.inputs + p.rows)))
        | "You took A B for given. Here it has to be computed.",
        Slip("doubled", lambda p: 2 * _derive_order(p).value)
        | "You counted a multiply-add as two operations in one of the orders and as one in the other.",
    ),
)

# --- how alike two vectors are -------------------------------------------------------------------


def _draw_cosine(rng: random.Random) -> Draw:
    return drawn(
        a=tuple(rng.choice((1, 2, 3, 4, 6)) for _ in range(3)),
        b=(rng.choice((2, 3, 5, 7)), rng.choice((-3, -2, -1)), rng.choice((2, 4, 5))),
    )


def _derive_cosine(p: Draw) -> Derivation:
    squares = [
        "(" + " + ".join(f"{entry}**2" if entry > 0 else f"({entry})**2" for entry in vector) + ")"
        for vector in (p.a, p.b)
    ]
    products = " + ".join(f"{x} * ({y})" for x, y in zip(p.a, p.b, strict=True))
    return Derivation(
        value=similarity.cosine(p.a, p.b),
        formula="sum of the products of matching entries / (length of a × length of b)",
        substitution=f"({products}) / ({squares[0]}**0.5 * {squares[1]}**0.5)",
        source=SOURCE_COSINE,
    )


def _count_cosine(p: Draw) -> float:
    """From three measured lengths: the law of cosines in the triangle of a, b and the way from one to the other."""
    a, b, between = math.dist(p.a, (0, 0, 0)), math.dist(p.b, (0, 0, 0)), math.dist(p.a, p.b)
    return (a**2 + b**2 - between**2) / (2 * a * b)


COSINE = Drill(
    key="foundations-cosine",
    taught=TAUGHT,
    title="How alike two vectors are",
    unit="",
    target_s=90,
    wanted=lambda p: similarity.dot(p.a, p.b) > 0,
    apart=1.11,
    draw=_draw_cosine,
    small=_draw_cosine,
    prompt=lambda p: f"What is the cosine similarity of a = {list(p.a)} and b = {list(p.b)}?",
    derive=_derive_cosine,
    count=_count_cosine,
    slips=(
        Slip("not-normalised", lambda p: float(similarity.dot(p.a, p.b)))
        | "That is the dot product itself. It grows with the lengths; a cosine does not.",
        Slip("one-length", lambda p: similarity.dot(p.a, p.b) / math.hypot(*p.a))
        | "You divided by one length. Both vectors have one.",
        Slip("squares-left", lambda p: similarity.dot(p.a, p.b) / (math.hypot(*p.a) * math.hypot(*p.b)) ** 2)
        | "You divided by the squared lengths. The root is missing.",
        Slip(
            "signs-lost",
            lambda p: similarity.dot(p.a, [abs(entry) for entry in p.b]) / (math.hypot(*p.a) * math.hypot(*p.b)),
        )
        | "A minus sign got lost on the way. Entries that disagree count against.",
        Slip("sums-for-lengths", lambda p: similarity.dot(p.a, p.b) / (sum(map(abs, p.a)) * sum(map(abs, p.b))))
        | "You took the sum of the entries for the length. Think of Pythagoras.",
    ),
)

DRILLS = (COMPOSED, ORDER, COSINE)
