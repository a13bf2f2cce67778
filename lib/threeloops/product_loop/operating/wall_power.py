"""Energy of an answer where it is paid for: at the wall of the data centre.

>>> answer_energy_j(num_gpus=8, gpu_w=500, host_share=0.25, facility_overhead=1.2, tokens=500, tokens_per_s=3000)
1000.0
"""

from threeloops import checks


def answer_energy_j(
    *, num_gpus: int, gpu_w: float, host_share: float, facility_overhead: float, tokens: float, tokens_per_s: float
) -> float:
    """Energy that one answer takes of a server that makes so many tokens per second for all its requests.

    Formula:  num_gpus * gpu_w * (1 + host_share) * facility_overhead * tokens / tokens_per_s
    Units:    host_share: what the rest of the server draws, over what its GPUs do; facility_overhead is the PUE, 1 at
              the least
    Assumes:  energy is shared by output tokens; the server is never idle
    Raises:   ValueError for a facility_overhead below 1
    Source:   by definition: power times the time that its tokens take of the server; PUE as in foundations' energy of
              training (LLaMA, 2023)
    Counted:  drills.capacity.agent_calls.ENERGY
    """
    checks.count(num_gpus=num_gpus)
    checks.positive(gpu_w=gpu_w, tokens=tokens, tokens_per_s=tokens_per_s)
    checks.non_negative(host_share=host_share)
    if not facility_overhead >= 1:
        raise ValueError(
            f"facility_overhead={facility_overhead!r} must be at least 1: the building draws what it serves"
        )
    return num_gpus * gpu_w * (1 + host_share) * facility_overhead * tokens / tokens_per_s
