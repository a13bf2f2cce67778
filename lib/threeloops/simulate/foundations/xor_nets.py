"""XOR nets: hundreds of two-layer networks trained at once on the four rows of XOR, each from a random start of its
own.

Every net answers outer · act(inner · [x1, x2, 1]) + bias and takes plain gradient steps on its mean squared error
over all four rows. What becomes of each net is counted afterwards; nothing here knows which of them will learn.

>>> nets = train(nets=50, hidden=4, steps=1500, learning_rate=0.1, activation="tanh", seed=1)
>>> {kind: count for kind, count in kinds(nets).items() if count}
{'learnt': 50}
"""

from collections import Counter
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from threeloops import checks

Array = NDArray[numpy.float64]

CORNERS = numpy.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
TARGETS = numpy.array([0.0, 1.0, 1.0, 0.0])
ACTIVATIONS = ("relu", "tanh", "none")
# Where a net may come to rest, by its mean squared error: what it answers there.
RESTS = {"learnt": 0.0, "two right, two alike": 1 / 8, "one right, three alike": 1 / 6, "all alike": 1 / 4}
ON = 1e-3  # many trained units switch exactly at a row, where their sum is a rounding error
DIVERGED = 100.0  # no net that is finding its way has a loss like that
NEAR = 0.012  # a loss this close to one of these rests there; the closest two are 1/24 apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Nets:
    """Trained nets, and the loss that each had on the way."""

    inner: Array  # [nets, hidden, 3]: two weights and the bias of every hidden unit
    outer: Array  # [nets, hidden + 1]: the output's weights and its bias
    activation: str
    steps: tuple[int, ...]  # how many steps had been taken when losses were noted
    losses: Array  # [len(steps), nets]

    def answers(self, points: Array) -> Array:
        """What every net answers at points [n, 2]: [nets, n]."""
        return _forward(self.inner, self.outer, _with_ones(points), self.activation)[1]

    @property
    def loss(self) -> Array:
        """Mean squared error of every net over the four rows, after the last step."""
        with numpy.errstate(over="ignore", invalid="ignore"):
            return numpy.asarray(numpy.square(self.answers(CORNERS) - TARGETS).mean(axis=1))

    @property
    def on(self) -> NDArray[numpy.bool_]:
        """[nets, hidden, 4]: whether a hidden unit's sum is above 0, by more than a rounding error, at each of the
        four rows.
        """
        return _sums(self.inner, _with_ones(CORNERS)) > ON


def _with_ones(points: Array) -> Array:
    return numpy.vstack([points.T, numpy.ones(len(points))])


def _sums(inner: Array, points: Array) -> Array:
    """Every hidden unit's sum at every point, term by term: a library's matrix product may round otherwise on the
    next machine.
    """
    sums: Array = inner[..., :1] * points[0] + inner[..., 1:2] * points[1] + inner[..., 2:]
    return sums


def _forward(inner: Array, outer: Array, points: Array, activation: str) -> tuple[Array, Array]:
    """Hidden values [nets, hidden, n] and answers [nets, n]."""
    sums = _sums(inner, points)
    hidden = numpy.maximum(sums, 0) if activation == "relu" else numpy.tanh(sums) if activation == "tanh" else sums
    return hidden, (outer[:, :-1, None] * hidden).sum(axis=1) + outer[:, -1:]


def _slope(hidden: Array, activation: str) -> Array | float:
    """Derivative of the activation, from its value."""
    if activation == "tanh":
        return 1.0 - numpy.square(hidden)
    return numpy.sign(hidden) if activation == "relu" else 1.0


def start(*, nets: int, hidden: int, seed: int) -> tuple[Array, Array]:
    """Random inner and outer weights, drawn as torch.nn.Linear draws them: evenly within 1/sqrt(inputs), biases
    too.
    """
    checks.count(nets=nets, hidden=hidden)
    rng = numpy.random.default_rng(seed)
    return rng.uniform(-1, 1, (nets, hidden, 3)) / 2**0.5, rng.uniform(-1, 1, (nets, hidden + 1)) / hidden**0.5


def train(
    *,
    nets: int,
    hidden: int,
    steps: int,
    learning_rate: float,
    activation: str,
    seed: int,
    note_every: int | None = None,
) -> Nets:
    """Train so many nets side by side; each step uses all four rows."""
    return train_from(
        *start(nets=nets, hidden=hidden, seed=seed),
        steps=steps,
        learning_rate=learning_rate,
        activation=activation,
        note_every=note_every,
    )


def train_from(
    inner: Array, outer: Array, *, steps: int, learning_rate: float, activation: str, note_every: int | None = None
) -> Nets:
    """Train from given weights: inner [nets, hidden, 3], outer [nets, hidden + 1]."""
    checks.count(steps=steps)
    checks.positive(learning_rate=learning_rate)
    checks.one_of(ACTIVATIONS, activation=activation)
    inner, outer, points = inner.copy(), outer.copy(), _with_ones(CORNERS)
    noted, losses = [], []
    with numpy.errstate(over="ignore", invalid="ignore"):  # a learning rate that is too large ends in infinities
        for step in range(steps):
            hidden, answers = _forward(inner, outer, points, activation)
            error = answers - TARGETS
            if note_every and step % note_every == 0:
                noted.append(step)
                losses.append(numpy.square(error).mean(axis=1))
            blame = (2 * learning_rate / 4) * error[:, None]  # of each answer, times the learning rate
            inner_blame = blame * outer[:, :-1, None] * _slope(hidden, activation)
            outer[:, :-1] -= (blame * hidden).sum(axis=2)
            outer[:, -1:] -= blame.sum(axis=2)
            inner -= numpy.stack([(inner_blame * row).sum(axis=2) for row in points], axis=2)
    return Nets(inner=inner, outer=outer, activation=activation, steps=tuple(noted), losses=numpy.array(losses))


def kind(loss: float) -> str:
    """Where a net with this loss rests; "still moving" at none of the known places, "diverged" where steps grew
    without end.
    """
    if not loss < DIVERGED:
        return "diverged"
    return next((name for name, rest in RESTS.items() if abs(loss - rest) < NEAR), "still moving")


def kinds(nets: Nets) -> Counter[str]:
    """How many nets rest where."""
    found = Counter(kind(loss) for loss in nets.loss)
    return Counter({name: found[name] for name in (*RESTS, "still moving", "diverged")})


def unit_kinds(nets: Nets) -> list[str]:
    """The hidden units of every relu net, in words: how many are bent (on at some rows), straight (on at all four)
    and dead (on at none).
    """
    checks.one_of(("relu",), activation=nets.activation)
    rows_on = nets.on.sum(axis=2)
    counts = (("bent", (rows_on > 0) & (rows_on < 4)), ("straight", rows_on == 4), ("dead", rows_on == 0))
    return [
        ", ".join(f"{are[net].sum()} {name}" for name, are in counts if are[net].any()) for net in range(len(rows_on))
    ]
