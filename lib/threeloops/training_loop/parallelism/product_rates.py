"""Product rates: which share of the best product's rate the products of a layer reach, by their shapes.

One measured curve for all models and GPUs. A product's rate depends on how many outputs it has (enough tiles for every
SM, or not) and on its inner length (how long a tile works for what it loads and stores).

>>> round(relative_rate(outputs=2048 * 2048, inner=1024), 3), round(relative_rate(outputs=2**40, inner=2**20), 3)
(0.623, 1.0)

Source: OpenXLA's table of measured products for sm_90 (facts/catalog/gemm_sweep.toml)
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2

from threeloops import checks
from threeloops.facts.gemm_sweep import gemm_sweep
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer
from threeloops.models.recurrent_layers import DeltaState, StateSpace

# Into and out of attention, from latent vectors up to heads, into and out of a recurrent state, of a dense MLP, of the
# experts chosen, of the shared one, to and from narrower experts.
ROLES = ("attention", "latent up", "state in", "state out", "mlp", "experts", "shared", "expert latent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One matrix product of a forward pass: `groups` of them with `rows` rows in all (experts; else one group)."""

    rows: float
    columns: float
    inner: float
    groups: float = 1
    role: str = field(default="", compare=False)  # what it is for, of ROLES

    @property
    def flops(self) -> float:
        return 2 * self.rows * self.columns * self.inner


def relative_rate(*, outputs: float, inner: float) -> float:
    """The rate of a product with so many outputs and this inner length, as a share of the sweep's best.

    Formula:  the table's rates, interpolated between the logarithms of both lengths; beyond the table, its border
    Assumes:  what was measured on one kind of GPU in bf16 holds, as a share, on others and in other formats; a batch of
              products is one product with all their outputs
    Measured: tests.training_loop.test_product_rates.test_the_curve_foretells_shapes_that_it_was_not_made_of

    >>> relative_rate(outputs=1, inner=1) == relative_rate(outputs=65_536, inner=256)
    True
    """
    checks.positive(outputs=outputs, inner=inner)
    sweep = gemm_sweep()
    row, down = _place(sweep.outputs, outputs)
    column, across = _place(sweep.inners, inner)
    upper, lower = (
        (1 - across) * rates[column] + across * rates[column + 1] for rates in sweep.flops_per_s[row : row + 2]
    )
    return ((1 - down) * upper + down * lower) / sweep.best_flops_per_s


def _place(lengths: Sequence[int], length: float) -> tuple[int, float]:
    """The last place of the table that is not above the length, and how far the length is on the way to the next."""
    within = min(max(length, lengths[0]), lengths[-1])
    place = min(bisect_right(lengths, within), len(lengths) - 1) - 1
    return place, log2(within / lengths[place]) / log2(lengths[place + 1] / lengths[place])


def training_rate(products: Sequence[Product]) -> float:
    """The share of the best rate that these products reach in training, forward and backward.

    Formula:  FLOPs / sum of FLOPs / relative rate, over three products for each: rows x columns outputs; the input's
              gradient, rows x inner; the weights', inner x columns for each group, with the rows as inner length
    Raises:   ValueError without products
    Counted:  tests.training_loop.test_product_rates.table_rate

    >>> round(training_rate([Product(rows=16_384, columns=2304, inner=6144)]), 3)
    0.982
    """
    if not products:
        raise ValueError("products is empty; give at least one Product")
    ideal, took = 0.0, 0.0
    for one in products:
        shapes = (
            (one.rows * one.columns, one.inner),
            (one.rows * one.inner, one.columns),
            (one.groups * one.inner * one.columns, one.rows / one.groups),
        )
        ideal += 3 * one.flops
        took += sum(one.flops / relative_rate(outputs=outputs, inner=inner) for outputs, inner in shapes)
    return ideal / took


def layer_products(layer: Layer, *, hidden: int, rows: float, tp: int, ep: int) -> tuple[Product, ...]:
    """The products of one layer's forward pass on one rank, the core of attention left out.

    Assumes:  queries, keys and values are one product, and so are gate and up; so is all that a recurrent layer
              projects in; tensor parallelism cuts heads and widths, experts are whole and get equal shares of the
              tokens, which the ranks of a tensor group split; each of these ranks projects every token to narrower
              experts
    Raises:   ValueError for a layer that has more than attention or a recurrent state, and an MLP
    """
    checks.positive(rows=rows)
    return (
        *(_mixing_products(layer, hidden, rows, tp) if layer.attention is not None else ()),
        *(feeding_products(layer, hidden=hidden, rows=rows, tp=tp, ep=ep) if layer.mlp is not None else ()),
    )


def _mixing_products(layer: Layer, hidden: int, rows: float, tp: int) -> list[Product]:
    """Into and out of attention, or of a recurrent state."""
    if isinstance(layer.attention, DeltaState | StateSpace):
        state = layer.attention
        into = Product(rows=rows, columns=state.input_columns / tp, inner=hidden, role="state in")
        return [into, Product(rows=rows, columns=hidden, inner=state.output_dim / tp, role="state out")]
    attention = layer.attending
    if isinstance(attention, Attention):
        heads = ((1 + attention.gated) * attention.query_dim + attention.projected_kv_dim) / tp
        made = [Product(rows=rows, columns=heads, inner=hidden, role="attention")]
        read = attention.num_heads * attention.head_dim / tp
    else:
        made = _latent_products(attention, hidden, rows, tp)
        read = attention.num_heads * attention.value_head_dim / tp
    return [*made, Product(rows=rows, columns=hidden, inner=read, role="attention")]


def feeding_products(layer: Layer, *, hidden: int, rows: float, tp: int, ep: int) -> tuple[Product, ...]:
    """Of these the products of the MLP, or of the experts, of the shared one, and to and from narrower experts."""
    mlp = layer.feeding
    if isinstance(mlp, DenseMlp):
        return _mlp_products(mlp, hidden, rows, tp, role="mlp")
    shared = _mlp_products(mlp.shared, hidden, rows, tp, role="shared") if mlp.shared else ()
    chosen = rows * mlp.top_k / tp
    experts = _mlp_products(mlp.expert, mlp.latent or hidden, chosen, 1, role="experts", groups=mlp.num_experts / ep)
    if mlp.latent is None:
        return (*experts, *shared)
    down = Product(rows=rows, columns=mlp.latent, inner=hidden, role="expert latent")
    up = Product(rows=rows, columns=hidden, inner=mlp.latent, role="expert latent")
    return (down, *experts, up, *shared)


def _latent_products(attention: LatentAttention, hidden: int, rows: float, tp: int) -> list[Product]:
    """Down to the latent vectors, and up again to the heads."""
    down, up = attention.kv_rank + attention.rope_head_dim, attention.num_heads / tp
    queries = Product(rows=rows, columns=up * attention.head_dim, inner=attention.q_rank or hidden, role="latent up")
    pairs = attention.nope_head_dim + attention.value_head_dim
    return [
        Product(rows=rows, columns=down + (attention.q_rank or 0), inner=hidden, role="attention"),
        queries,
        Product(rows=rows, columns=up * pairs, inner=attention.kv_rank, role="latent up"),
    ]


def _mlp_products(
    mlp: DenseMlp, hidden: int, rows: float, tp: int, *, role: str, groups: float = 1
) -> tuple[Product, ...]:
    wide = mlp.intermediate / tp
    up = Product(rows=rows, columns=(mlp.num_matrices - 1) * wide, inner=hidden, groups=groups, role=role)
    return (up, Product(rows=rows, columns=hidden, inner=wide, groups=groups, role=role))


def scores_rate(attention: Attention, *, sequences: float, sequence: int, tp: int) -> float:
    """The share of the best rate that attention reaches as two batched products: scores, and the values they weigh.

    Formula:  2 / sum of 1 / relative rate; scores have heads x sequence squared outputs and the head's width inside,
              the weighted values heads x sequence x width outputs and the sequence inside
    Assumes:  every head is a member of one batch; keys of all positions (the whole square); a head narrower than the
              table's shortest inner length reaches that length's rate
    Counted:  tests.training_loop.test_product_rates.table_rate

    >>> gpt = Attention(num_heads=48, num_kv_heads=48, head_dim=128)
    >>> round(scores_rate(gpt, sequences=8, sequence=2048, tp=8), 2)
    0.75
    """
    heads = sequences * attention.num_heads / tp
    square, read = heads * sequence * sequence, heads * sequence * attention.head_dim
    rates = (
        relative_rate(outputs=square, inner=attention.head_dim),
        relative_rate(outputs=read, inner=sequence),
    )
    return 2 / sum(1 / rate for rate in rates)
