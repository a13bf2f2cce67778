"""Agents: calls of a model that build on one another.

>>> agent_prompt_tokens(first=2000, added=500, calls=4)
11000
"""

from threeloops import checks


def agent_prompt_tokens(*, first: int, added: int, calls: int) -> int:
    """Prompt tokens of all calls of an agent whose prompt grows by what each call and its tool bring.

    Formula:  calls * first + added * calls * (calls - 1) / 2
    Units:    tokens; added is the answer of a call and the tool's output together
    Assumes:  nothing is cached or cut
    Source:   by definition
    Counted:  drills.capacity.agent_calls.PROMPTS
    """
    checks.count(first=first, calls=calls)
    checks.count(at_least=0, added=added)
    return calls * first + added * calls * (calls - 1) // 2


def step_reliability(*, whole: float, steps: int) -> float:
    """How reliable each step must be, so that a chain of them is right so often.

    Formula:  whole^(1 / steps)
    Assumes:  every step must be right; steps fail independently
    Raises:   ValueError for a chain that is never right
    Source:   by definition
    Counted:  drills.capacity.agent_calls.CHAIN

    >>> round(step_reliability(whole=0.9, steps=20), 4)
    0.9947
    """
    checks.fraction(whole=whole)
    checks.positive(whole=whole)
    checks.count(steps=steps)
    return float(whole ** (1 / steps))
