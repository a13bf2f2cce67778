"""Instruction pipelines: how many cycles a core needs when stages overlap, and when instructions wait for one
another.

>>> chain = chained_cycles(operations=64, chains=1, latency_cycles=4, units=2)
>>> eight = chained_cycles(operations=64, chains=8, latency_cycles=4, units=2)
>>> chain, eight
(256, 35)

Source: Hennessy, Patterson, "Computer Architecture: A Quantitative Approach", 6th ed., 2017, appendix C.1
        (pipelining) and chapter 3 (dependences)
"""

import math

from threeloops import checks


def pipelined_cycles(*, instructions: int, stages: int, width: int) -> int:
    """Cycles until the last of many independent instructions has left the last stage.

    Formula:  stages + ceil(instructions / width) - 1
    Assumes:  every stage takes a cycle and serves up to `width` instructions; nothing stalls (no waiting for data, no
              wrong guess at a branch)
    Counted:  simulate.foundations.instruction_pipeline.flow

    >>> pipelined_cycles(instructions=10, stages=5, width=1), pipelined_cycles(instructions=10, stages=5, width=2)
    (14, 9)
    """
    checks.count(instructions=instructions, stages=stages, width=width)
    return stages + math.ceil(instructions / width) - 1


def chains_to_fill(*, latency_cycles: int, units: int) -> int:
    """Independent chains of operations that keep all units busy: the results that must be on their way at any time.

    Formula:  latency_cycles * units
    Assumes:  units that accept one operation per cycle
    Source:   Little, "A Proof for the Queuing Formula L = λW", Operations Research 9(3), 1961,
              doi:10.1287/opre.9.3.383
    Counted:  simulate.foundations.instruction_pipeline.issue

    >>> chains_to_fill(latency_cycles=4, units=2)
    8
    """
    checks.count(latency_cycles=latency_cycles, units=units)
    return latency_cycles * units


def chained_cycles(*, operations: int, chains: int, latency_cycles: int, units: int) -> int:
    """Cycles until the last result, for operations dealt in turn to chains, each of which needs the result before.

    Formula:  with enough chains (latency_cycles * units or more):  ceil(operations / units) - 1 + latency_cycles
              with fewer:  operations / chains * latency_cycles + ceil(chains / units) - 1
    Assumes:  units that accept one operation per cycle and finish it latency_cycles later; the core looks far enough
              ahead to find what is ready
    Raises:   ValueError if the operations cannot be dealt to the chains evenly
    Counted:  simulate.foundations.instruction_pipeline.issue

    >>> chained_cycles(operations=1000, chains=1, latency_cycles=4, units=1)
    4000
    """
    checks.count(operations=operations, chains=chains, latency_cycles=latency_cycles, units=units)
    checks.divides(part="chains", part_value=chains, whole="operations", whole_value=operations)
    if chains >= chains_to_fill(latency_cycles=latency_cycles, units=units):
        return math.ceil(operations / units) - 1 + latency_cycles
    return operations // chains * latency_cycles + math.ceil(chains / units) - 1
