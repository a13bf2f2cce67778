"""A collective that hangs: which rank the others wait for, from what each rank's flight recorder holds.

>>> late_rank({0: 812, 8: 814, 16: 811, 24: 813})
16
"""

from collections.abc import Mapping

from threeloops import checks


def late_rank(last_enqueued: Mapping[int, int]) -> int:
    """The rank of a group that has enqueued the fewest collectives: the others wait in the one that it never called.

    Formula:  argmin over ranks of the number of the last collective that a rank has enqueued
    Units:    rank -> sequence number, both of one process group
    Assumes:  every rank calls the same collectives in the same order; ranks that run ahead have enqueued more
    Raises:   ValueError for fewer than two ranks, or where no single rank is behind
    Source:   Pandya, Wang, Flight Recorder for Debugging Stuck Jobs, PyTorch tutorials, 2024 (sequence numbers of a
              group's collectives, compared across ranks)
    Counted:  drills.reliability.hangs.HANG
    """
    if len(last_enqueued) < 2:
        raise ValueError(f"last_enqueued has {len(last_enqueued)} ranks; give those of a whole group, two at least")
    checks.count(at_least=0, **{f"rank_{rank}": number for rank, number in last_enqueued.items()})
    behind = min(last_enqueued.values())
    late = [rank for rank, number in last_enqueued.items() if number == behind]
    if len(late) > 1:
        raise ValueError(
            f"ranks {', '.join(map(str, late))} are all at {behind}: none alone is behind; compare what they called"
        )
    return late[0]
