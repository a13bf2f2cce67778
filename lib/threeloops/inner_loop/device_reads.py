"""Device reads: what it costs when the CPU reads a value of the device in the middle of a step.

>>> step = {"num_kernels": 1000, "issue_s": 10e-6, "kernel_s": 40e-6, "return_s": 50e-6}
>>> [round(read_s(**step, num_reads=reads) * 1e3, 2) for reads in (1, 100)]
[40.06, 46.0]
"""

from threeloops import checks
from threeloops.inner_loop import launches


def read_s(*, num_kernels: int, num_reads: int, issue_s: float, kernel_s: float, return_s: float) -> float:
    """Seconds for equal kernels when the CPU reads a result after every num_kernels / num_reads of them, the last
    ones included.

    Formula:  num_reads * (seconds of num_kernels / num_reads queued kernels + return_s)
    Units:    return_s is the time from the end of a kernel until the CPU's code goes on
    Assumes:  as launches.queued_s; a value that is read has to exist, so the CPU waits for the device, whose queue is
              empty when it goes on
    Raises:   ValueError if the reads do not divide the kernels
    Source:   PyTorch documentation, CUDA semantics, "Asynchronous execution" (2026)
    Counted:  simulate.inner_loop.training_timeline.play
    """
    checks.count(num_kernels=num_kernels, num_reads=num_reads)
    checks.divides(part="num_reads", part_value=num_reads, whole="num_kernels", whole_value=num_kernels)
    checks.non_negative(return_s=return_s)
    return num_reads * (
        launches.queued_s(num_kernels=num_kernels // num_reads, issue_s=issue_s, kernel_s=kernel_s) + return_s
    )
