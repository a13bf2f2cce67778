"""Layer dropping: how many layers of a model run when each is skipped at random in training, the deeper the likelier.

>>> round(kept_share(num_layers=24, kept_last=0.5), 4)
0.7396
"""

from threeloops import checks


def keep_probability(*, layer: int, num_layers: int, kept_last: float) -> float:
    """The probability that a layer runs in one step.

    Formula:  1 - layer / num_layers * (1 - kept_last)
    Units:    layer counts from 1; kept_last is the last layer's probability
    Source:   Huang et al., Stochastic Depth, 2016, arXiv:1603.09382, section 3; Zhang and He, Progressive Layer
              Dropping, 2020, arXiv:2010.13369
    Counted:  tests.training_loop.test_optimisation_stack.test_every_layer_is_kept_a_step_less_often_than_the_one_before

    >>> keep_probability(layer=12, num_layers=12, kept_last=0.5)
    0.5
    """
    checks.count(layer=layer, num_layers=num_layers)
    checks.fraction(kept_last=kept_last)
    if layer > num_layers:
        raise ValueError(f"layer={layer} must be at most num_layers={num_layers}")
    return 1 - layer / num_layers * (1 - kept_last)


def kept_share(*, num_layers: int, kept_last: float) -> float:
    """The expected share of the layers that run: about the share of a step's time that is left.

    Formula:  mean of keep_probability = 1 - (1 - kept_last) * (num_layers + 1) / (2 * num_layers)
    Assumes:  equal layers; what is outside of them is neglected
    Source:   by definition of a mean
    Counted:  tests.training_loop.test_optimisation_stack.test_dropped_layers_against_dice
    """
    checks.count(num_layers=num_layers)
    checks.fraction(kept_last=kept_last)
    return 1 - (1 - kept_last) * (num_layers + 1) / (2 * num_layers)
