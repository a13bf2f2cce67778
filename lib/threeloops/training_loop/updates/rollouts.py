"""Rollouts: where the time of a reinforcement-learning step goes, when a model learns from text that it has written
itself.

A step has three phases: the model writes responses (rollout), something judges them (reward), and the weights are
updated. Writing goes token by token, so the longest response decides how long it takes; the update sees all tokens at
once.

>>> step = RlStep(rollout_s=60, reward_s=5, update_s=15)
>>> step.total_s, step.rollout_share, step.overlapped_s
(80, 0.75, 60)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from threeloops import checks


def rollout_s(lengths: Sequence[int], *, weights_s: float, response_s: float) -> float:
    """Seconds until the last of the responses is complete, when all of them are written side by side.

    Formula:  longest * weights_s + sum of lengths * response_s
    Units:    lengths in tokens; weights_s for what a decoding step costs however many take part (weights read once);
              response_s for what each response adds to a step (its cache read, its products)
    Assumes:  all responses start together and have room; a finished one leaves and costs nothing more; prompts are
              neglected
    Source:   Zhou et al., APRIL, 2025, arXiv:2509.18521 (long tails of lengths stall the batch)
    Counted:  simulate.training_loop.rollouts.play

    >>> rollout_s([10, 10, 40], weights_s=1.0, response_s=0.1)
    46.0
    """
    if not lengths:
        raise ValueError("lengths is empty; give at least one response")
    checks.count(**{f"lengths[{place}]": length for place, length in enumerate(lengths)})
    checks.positive(weights_s=weights_s)
    checks.non_negative(response_s=response_s)
    return max(lengths) * weights_s + sum(lengths) * response_s


def seats_used(lengths: Sequence[int]) -> float:
    """The share of the seats of a rollout in which a sequence is still written.

    Formula:  mean length / longest
    Source:   by definition of a mean
    Counted:  simulate.training_loop.rollouts.play

    >>> seats_used([10, 10, 40])
    0.5
    """
    if not lengths:
        raise ValueError("lengths is empty; give at least one response")
    checks.count(**{f"lengths[{place}]": length for place, length in enumerate(lengths)})
    return sum(lengths) / len(lengths) / max(lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class RlStep:
    """Seconds of one step, by phase."""

    rollout_s: float
    reward_s: float
    update_s: float

    def __post_init__(self) -> None:
        checks.positive(rollout_s=self.rollout_s, update_s=self.update_s)
        checks.non_negative(reward_s=self.reward_s)

    @property
    def total_s(self) -> float:
        """Phases one after another: every response comes from the newest weights."""
        return self.rollout_s + self.reward_s + self.update_s

    @property
    def rollout_share(self) -> float:
        return self.rollout_s / self.total_s

    @property
    def overlapped_s(self) -> float:
        """Seconds per step when others write the next responses meanwhile, from weights one step old.

        Formula:  max(rollout_s, reward_s + update_s)
        Assumes:  each side keeps the GPUs that made its time; sending the new weights costs nothing
        """
        return max(self.rollout_s, self.reward_s + self.update_s)
