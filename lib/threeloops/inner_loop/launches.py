"""Launches: when the host's work per kernel, and not the device's, is the bottleneck of a step.

A launch returns at once: the host issues the next kernel while the device runs the one before. So the two sums run
side by side, and only a synchronisation puts them one after another.

>>> decode = {"num_kernels": 1600, "issue_s": 8e-6, "kernel_s": 3e-6}
>>> round(queued_s(**decode) / 1e-3, 2), round(synchronised_s(**decode) / 1e-3, 2)
(12.8, 17.6)
"""

from threeloops import checks


def queued_s(*, num_kernels: int, issue_s: float, kernel_s: float) -> float:
    """Seconds until the last of equal kernels has run, when the host issues them all without waiting for any.

    Formula:  num_kernels * max(issue_s, kernel_s) + min(issue_s, kernel_s)
    Units:    issue_s is the host's time per kernel (interpreter, framework, driver); kernel_s the device's
    Assumes:  equal kernels on one stream; a kernel may start as soon as it is issued and the one before has ended;
              the queue between the two has room for at least one kernel
    Raises:   ValueError for less than one kernel, or a time that is not positive
    Source:   NVIDIA, CUDA C++ Programming Guide 12.9, 2025, "Asynchronous Concurrent Execution"
    Counted:  simulate.inner_loop.launch_queue.play
    """
    _checked(num_kernels, issue_s, kernel_s)
    return num_kernels * max(issue_s, kernel_s) + min(issue_s, kernel_s)


def synchronised_s(*, num_kernels: int, issue_s: float, kernel_s: float) -> float:
    """Seconds when the host waits after every kernel until it has ended.

    Formula:  num_kernels * (issue_s + kernel_s)
    Assumes:  waiting itself costs nothing
    Source:   by definition: nothing overlaps
    Counted:  simulate.inner_loop.launch_queue.play

    >>> synchronised_s(num_kernels=10, issue_s=2.0, kernel_s=3.0)
    50.0
    """
    _checked(num_kernels, issue_s, kernel_s)
    return num_kernels * (issue_s + kernel_s)


def replayed_s(*, num_kernels: int, kernel_s: float, graph_launch_s: float, gap_s: float) -> float:
    """Seconds of a recorded graph of equal kernels, launched once: from then on the device starts each kernel by
    itself.

    Formula:  graph_launch_s + num_kernels * (kernel_s + gap_s)
    Units:    graph_launch_s is the host's time for the whole graph; gap_s the device's time from the end of a kernel
              to the start of the next
    Assumes:  a chain of kernels, each of which waits for the one before; the graph has been recorded and uploaded
    Source:   Gray, "Getting Started with CUDA Graphs", NVIDIA Technical Blog, 2019
    Counted:  simulate.inner_loop.launch_queue.replay

    >>> replayed_s(num_kernels=20, kernel_s=3.0, graph_launch_s=10.0, gap_s=0.5)
    80.0
    """
    checks.count(num_kernels=num_kernels)
    checks.positive(kernel_s=kernel_s)
    checks.non_negative(graph_launch_s=graph_launch_s, gap_s=gap_s)
    return graph_launch_s + num_kernels * (kernel_s + gap_s)


def break_even_bytes(*, issue_s: float, memory_bytes_per_s: float) -> float:
    """The traffic of a memory-bound kernel that runs exactly as long as the host needs to issue it; smaller ones
    leave the device waiting.

    Formula:  issue_s * memory_bytes_per_s
    Assumes:  the kernel reaches memory_bytes_per_s at that size already, so that the real break-even lies higher
    Source:   by definition of a break-even
    Counted:  drills.overheads.launches.EVEN

    >>> f"{break_even_bytes(issue_s=8e-6, memory_bytes_per_s=3.35e12):,.0f}"
    '26,800,000'
    """
    checks.positive(issue_s=issue_s, memory_bytes_per_s=memory_bytes_per_s)
    return issue_s * memory_bytes_per_s


def calls_until_paid(*, compile_s: float, before_s: float, after_s: float) -> float:
    """How many calls a compiled function needs before it has saved the time that compiling it took.

    Formula:  compile_s / (before_s - after_s)
    Assumes:  compile_s is what the first call took longer than a later one
    Raises:   ValueError if the compiled function is not faster: then no number of calls pays
    Source:   by definition of a break-even
    Counted:  drills.overheads.launches.PAID

    >>> round(calls_until_paid(compile_s=30, before_s=0.250, after_s=0.225))
    1200
    """
    checks.positive(compile_s=compile_s, before_s=before_s, after_s=after_s)
    if after_s >= before_s:
        raise ValueError(
            f"after_s={after_s!r} must be less than before_s={before_s!r}; compiling that saves nothing is never paid"
            " back"
        )
    return compile_s / (before_s - after_s)


def _checked(num_kernels: int, issue_s: float, kernel_s: float) -> None:
    checks.count(num_kernels=num_kernels)
    checks.positive(issue_s=issue_s, kernel_s=kernel_s)
