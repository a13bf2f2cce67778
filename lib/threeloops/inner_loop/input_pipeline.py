"""Input pipeline: how many workers prepare batches as fast as a device uses them up, and what the batches in waiting
weigh.

>>> workers_needed(sample_s=0.011, samples_per_step=256, step_s=0.100)
29
"""

import math

from threeloops import checks


def workers_needed(*, sample_s: float, samples_per_step: int, step_s: float) -> int:
    """The fewest workers with which the device never waits, once the first batch is there.

    Formula:  ceil(sample_s * samples_per_step / step_s)
    Units:    sample_s is one worker's processor time for one sample; step_s the device's time for one step
    Assumes:  workers do not slow each other down (a core each, and no lock in common); every sample takes the same
              time
    Raises:   ValueError for a time that is not positive, or less than one sample
    Source:   by definition: the workers together prepare as many samples as the device uses up
    Counted:  simulate.inner_loop.step.play
    """
    checks.positive(sample_s=sample_s, step_s=step_s)
    checks.count(samples_per_step=samples_per_step)
    # A quotient that is whole but for the last bit of its floating point is whole.
    return math.ceil(round(sample_s * samples_per_step / step_s, 9))


def waiting_bytes(*, num_workers: int, batches_per_worker: int, batch_bytes: float) -> float:
    """Bytes of host memory in batches that are prepared and not yet used.

    Formula:  num_workers * batches_per_worker * batch_bytes
    Assumes:  every worker has prepared as many as it may
    Source:   PyTorch documentation, torch.utils.data.DataLoader (prefetch_factor), 2025
    Counted:  tests.inner_loop.test_input_pipeline.test_workers_prepare_until_none_may_prepare_another

    >>> waiting_bytes(num_workers=8, batches_per_worker=2, batch_bytes=154e6) / 1e9
    2.464
    """
    checks.count(num_workers=num_workers, batches_per_worker=batches_per_worker)
    checks.positive(batch_bytes=batch_bytes)
    return num_workers * batches_per_worker * batch_bytes
