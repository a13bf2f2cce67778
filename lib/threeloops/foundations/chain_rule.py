"""Chain rule: how a loss is blamed on two weights in a row, and the step that follows.

The smallest network that has a layer behind a layer: answer = second * relu(first * x), loss = (answer - target)^2.

>>> net = TwoLayers(first=0.5, second=2.0)
>>> blame = gradients(net, x=3.0, target=4.0)
>>> blame.second, blame.first
(-3.0, -12.0)

Source: Rumelhart, Hinton, Williams, "Learning representations by back-propagating errors", Nature 323, 1986,
        doi:10.1038/323533a0
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLayers:
    """One weight per layer, no biases; also used for one number per weight, such as a gradient."""

    first: float
    second: float

    def __post_init__(self) -> None:
        checks.number(first=self.first, second=self.second)


def answer(net: TwoLayers, x: float) -> float:
    """second * max(first * x, 0)."""
    return net.second * max(net.first * x, 0)


def loss(net: TwoLayers, *, x: float, target: float) -> float:
    """Squared error of the answer."""
    return (answer(net, x) - target) ** 2


def gradients(net: TwoLayers, *, x: float, target: float) -> TwoLayers:
    """Derivatives of the loss by both weights, from the output backwards.

    Formula:  error = 2 * (answer - target);  d/d second = error * hidden;  d/d first = error * second * [first * x >
              0] * x
    Assumes:  the derivative of relu at 0 is 0, as frameworks have it
    Measured: tests.foundations.test_foundations_formulas.test_gradients_are_those_of_autograd_and_of_a_nudge
    """
    checks.number(x=x, target=target)
    hidden = max(net.first * x, 0)
    error = 2 * (answer(net, x) - target)
    return TwoLayers(first=error * net.second * (net.first * x > 0) * x, second=error * hidden)


def after_step(net: TwoLayers, *, x: float, target: float, learning_rate: float) -> TwoLayers:
    """Both weights after one step of gradient descent.

    Formula:  weight - learning_rate * gradient, both gradients taken at the old weights
    Counted:  drills.foundations.networks.STEP

    >>> after_step(TwoLayers(first=0.5, second=2.0), x=3.0, target=4.0, learning_rate=0.01)
    TwoLayers(first=0.62, second=2.03)
    """
    checks.positive(learning_rate=learning_rate)
    blame = gradients(net, x=x, target=target)
    return TwoLayers(first=net.first - learning_rate * blame.first, second=net.second - learning_rate * blame.second)
