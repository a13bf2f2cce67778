"""Handover: a KV cache moves from the GPU that read the prompt to the one that writes the answer.

>>> moved = transfer_s(cache_bytes=1e9, hops_bytes_per_s=(50e9, 50e9))  # staged in host memory, 50 GB/s each hop
>>> f"{moved * 1e3:.0f} ms"
'40 ms'
"""

import math
from collections.abc import Sequence

from threeloops import checks


def transfer_s(*, cache_bytes: float, hops_bytes_per_s: Sequence[float]) -> float:
    """Seconds until a whole cache has gone over all hops, each beginning when the one before has ended.

    Formula:  sum of bytes / rate
    Units:    hops_bytes_per_s: one way, of every link and every staging copy in between
    Assumes:  nothing else uses the links; latency is small beside bytes / rate
    Source:   Patel et al., Splitwise, 2023, arXiv:2311.18677 (serialised transfer after the prompt phase)
    Counted:  drills.capacity.moves.HOPS
    """
    checks.positive(cache_bytes=cache_bytes, **{f"hop {n}": rate for n, rate in enumerate(hops_bytes_per_s, 1)})
    if not hops_bytes_per_s:
        raise ValueError("hops_bytes_per_s is empty; name at least one link")
    return math.fsum(cache_bytes / rate for rate in hops_bytes_per_s)


def exposed_transfer_s(*, num_layers: int, prefill_s: float, transfer_s: float) -> float:
    """What of a transfer is left to wait for when each layer's cache leaves as soon as it is computed.

    Formula:  max(transfer / layers, transfer - prefill * (layers - 1) / layers)
    Assumes:  equal layers, one link, sends in order; sending does not slow down computing
    Source:   Patel et al., Splitwise, 2023, arXiv:2311.18677 (per-layer transfer overlapped with the prompt phase)
    Counted:  simulate.training_loop.overlapped_step.play

    >>> exposed_transfer_s(num_layers=40, prefill_s=0.2, transfer_s=0.04)  # one layer's share sticks out
    0.001
    """
    checks.count(num_layers=num_layers)
    checks.positive(prefill_s=prefill_s)
    checks.non_negative(transfer_s=transfer_s)
    return max(transfer_s / num_layers, transfer_s - prefill_s * (num_layers - 1) / num_layers)
