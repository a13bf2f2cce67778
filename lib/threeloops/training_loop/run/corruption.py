"""Silent data corruption: arithmetic that comes out wrong without a word.

>>> round(corruption_chance(num_gpus=1024, run_s=7 * 86400, events=6, events_gpu_s=16384 * 54 * 86400), 3)
0.047
"""

import math

from threeloops import checks


def corruption_chance(*, num_gpus: int, run_s: float, events: int, events_gpu_s: float) -> float:
    """The probability that a run meets at least one silent corruption, from how many another run has met.

    Formula:  1 - exp(-events / events_gpu_s * num_gpus * run_s)
    Units:    events_gpu_s: GPUs times seconds of the run that had so many events
    Assumes:  events come independently, at the same rate on every GPU; those that went unnoticed are not counted
    Source:   Llama Team, The Llama 3 Herd of Models, 2024, arXiv:2407.21783, table 5 (6 of 419 unexpected
              interruptions in 54 days on 16,384 GPUs); the probability by definition of a Poisson process
    Counted:  drills.reliability.hangs.CORRUPTED
    """
    checks.count(num_gpus=num_gpus, events=events)
    checks.positive(run_s=run_s, events_gpu_s=events_gpu_s)
    return -math.expm1(-events / events_gpu_s * num_gpus * run_s)
