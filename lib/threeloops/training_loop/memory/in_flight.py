"""Micro-batches in flight: how many a pipeline stage has run forward and not yet backward, at the worst moment.

Their activations are all alive at once. Pipeline parallelism divides the layers by pp, but under 1F1B the first stage
keeps pp micro-batches, so that it holds as much as without a pipeline.

Source: Narayanan et al., 2021, arXiv:2104.04473, section 2.2; Huang et al., 2019, arXiv:1811.06965 (GPipe)
"""

from threeloops import checks

SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-interleaved", "zb-v", "dualpipe")


def micro_batches_in_flight(*, schedule: str, stage: int, pp: int, micro_batches: int, chunks: int = 1) -> float:
    """Micro-batches whose activations one stage holds at its peak, each over all of the stage's layers.

    Formula:  GPipe: m; 1F1B: min(m, p - i); interleaved: min(v*m, v*p + p - 1 - 2i) / v, on stage 0 p * (1 +
              (p-1)/(p*v)) once v*m is large ZB-H1, interleaved ZB, ZB-V: min(m, p); ZB-H2: min(m, 2p - 1); DualPipe:
              p + 1 (m micro_batches, p pp, i stage from 0, v chunks per stage)
    Units:    may be a fraction: an interleaved stage runs a micro-batch through one chunk (1/v of its layers) at a
              time
    Assumes:  interleaved warms up as in Megatron-LM, which starts more micro-batches than need be and so hides
              communication; zero-bubble schedules keep all of a micro-batch's activations until its weight gradients
              are done
    Raises:   ValueError for an unknown schedule, a stage outside the pipeline, chunks without interleaving, or
              interleaving that pp does not fit
    Source:   Narayanan et al., 2021, arXiv:2104.04473, section 2.2; Korthikanti et al., 2022, arXiv:2205.05198,
              section 4.2.3 (interleaved); Qi et al., 2023, arXiv:2401.10241, sections 2 and 6 (zero bubble);
              DeepSeek-AI, 2024, arXiv:2412.19437, table 2 (DualPipe)
    Counted:  simulate.training_loop.in_flight.peak_alive

    >>> [micro_batches_in_flight(schedule="1f1b", stage=i, pp=5, micro_batches=40) for i in range(5)]
    [5, 4, 3, 2, 1]
    >>> micro_batches_in_flight(schedule="interleaved", stage=0, pp=5, micro_batches=40, chunks=4)
    6.0
    """
    checks.one_of(SCHEDULES, schedule=schedule)
    checks.count(pp=pp, micro_batches=micro_batches, chunks=chunks)
    checks.count(at_least=0, stage=stage)
    if stage >= pp:
        raise ValueError(f"stage={stage} must be less than pp={pp}; stages count from 0")
    if schedule not in ("interleaved", "zb-interleaved", "zb-v") and chunks > 1:
        raise ValueError(f"chunks={chunks} needs schedule='interleaved'; schedule={schedule!r} has one chunk per stage")
    if schedule == "zb-v" and chunks != 2:
        raise ValueError(f"chunks={chunks} with schedule='zb-v': it has 2 per stage")
    if schedule == "zb-interleaved":
        checks.divides(part="pp", part_value=pp, whole="micro_batches", whole_value=micro_batches)
        if chunks == 1:
            raise ValueError(
                "chunks=1 with schedule='zb-interleaved' is ZB-H1; try chunks of 2 or more, or schedule='zb-h1'"
            )
    if schedule == "gpipe":
        return micro_batches
    if schedule == "1f1b":
        return min(micro_batches, pp - stage)
    if schedule != "interleaved":
        return min(micro_batches, {"zb-h2": 2 * pp - 1, "dualpipe": pp + 1}.get(schedule, pp))
    checks.divides(part="pp", part_value=pp, whole="micro_batches", whole_value=micro_batches)
    if chunks == 1:
        raise ValueError("chunks=1 with schedule='interleaved' is 1F1B; try chunks of 2 or more, or schedule='1f1b'")
    return min(chunks * micro_batches, chunks * pp + pp - 1 - 2 * stage) / chunks
