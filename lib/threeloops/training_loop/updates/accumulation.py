"""Accumulation: one update out of several micro-batches, and how much a token weighs in it.

>>> steps(tokens_per_update=1_048_576, micro_batch=4, sequence=4096, replicas=16)
4
"""

from collections.abc import Sequence

from threeloops import checks


def steps(*, tokens_per_update: int, micro_batch: int, sequence: int, replicas: int) -> int:
    """Micro-batches that each replica runs, forward and backward, before one update.

    Formula:  tokens_per_update / (micro_batch * sequence * replicas)
    Raises:   ValueError if that is not a whole number
    Source:   by definition
    Counted:  drills.step_time.stack_steps.STEPS
    """
    checks.count(tokens_per_update=tokens_per_update, micro_batch=micro_batch, sequence=sequence, replicas=replicas)
    at_once = micro_batch * sequence * replicas
    if tokens_per_update % at_once:
        raise ValueError(
            f"tokens_per_update={tokens_per_update:,} is not a multiple of micro_batch*sequence*replicas={at_once:,}"
        )
    return tokens_per_update // at_once


def learning_rate_of_sums(*, learning_rate: float, replicas: int, micro_batches: int) -> float:
    """The learning rate at which gradients that are added up make the update of gradients that are averaged.

    Formula:  learning_rate / (replicas * micro_batches)
    Units:    micro_batches of one replica per update, all of one size
    Assumes:  every micro-batch's loss is its mean, and nothing is divided afterwards; plain SGD (Adam divides by the
              size of the gradients anyhow)
    Source:   Li et al., PyTorch Distributed, VLDB 2020, arXiv:2006.15704, section 3.2 (averaged gradients)
    Counted:  tests.training_loop.test_optimisation_stack.test_sums_move_a_weight_as_the_mean_does

    >>> learning_rate_of_sums(learning_rate=0.42, replicas=7, micro_batches=2)
    0.03
    """
    checks.positive(learning_rate=learning_rate)
    checks.count(replicas=replicas, micro_batches=micro_batches)
    return learning_rate / (replicas * micro_batches)


def token_weights(tokens: Sequence[int]) -> tuple[float, ...]:
    """How much one token of each micro-batch weighs when losses are averaged within micro-batches and then over them;
    1 is its due.

    Formula:  all tokens / (number of micro-batches * tokens in this one)
    Units:    tokens that count in the loss, without padding, per micro-batch
    Assumes:  every micro-batch divides its loss by its own tokens, and the sum by the number of micro-batches.
              Dividing every sum of losses by all tokens gives 1 throughout, and so the gradient of the big batch
    Source:   Hugging Face, "Fixing Gradient Accumulation", 2024, huggingface.co/blog/gradient_accumulation
              (transformers pull request 34191)
    Counted:  drills.step_time.stack_steps.WEIGHT
    Measured: tests.measure.test_measure_stack.test_a_real_gradient_has_the_token_weights

    >>> [round(weight, 3) for weight in token_weights([100, 300])]
    [2.0, 0.667]
    """
    if not tokens:
        raise ValueError("tokens is empty; give the tokens of at least one micro-batch")
    for number in tokens:
        checks.count(tokens=number)
    return tuple(sum(tokens) / (len(tokens) * number) for number in tokens)
