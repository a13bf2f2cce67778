"""Step times: how long the engine's steps take with nobody else in the way, and the affine model that fits them.

No HTTP, no clients, one thread: what a step costs, before a server is built around it.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from threeloops.measure.product_loop.character_decoder import Decoder
from threeloops.measure.product_loop.server.engine import Engine, Limits, StepRecord
from threeloops.measure.product_loop.server.generation import Order
from threeloops.simulate.product_loop.serving_steps import AffineStep, StepContents

WARM_STEPS = 20
# (requests at once, prompt, answer): small and large batches, short and long contexts, so that what each term costs can
# be told apart.
MIXTURES = ((1, 20, 30), (16, 12, 30), (4, 100, 30), (16, 90, 20), (8, 40, 40), (1, 180, 20), (2, 30, 30), (12, 60, 20))


def measured_steps(decoder: Decoder, *, limits: Limits) -> list[StepRecord]:
    """Run the engine by hand through all mixtures; every step's contents and seconds."""
    engine = Engine(decoder, limits=limits)
    for requests, prompt, answer in MIXTURES:
        for place in range(requests):
            # lengths a little apart, so that batches shrink one by one
            engine.submit(Order(prompt=[1 + place] * (prompt + place), max_tokens=answer + place, temperature=0))
        while engine.step():
            pass
    return list(engine.steps)[WARM_STEPS:]


def fitted(records: Sequence[StepRecord]) -> AffineStep:
    """Base, per prompt token, per decoding request, per cached token: least squares of the relative error. A term that
    would be negative is left out, and the others are fitted again.

    Raises:   ValueError for fewer than ten steps
    """
    if len(records) < 10:
        raise ValueError(f"{len(records)} steps are too few to fit four numbers to; measure at least 10")
    columns = np.array([(1, *record[:3]) for record in records], dtype=float)
    seconds = np.array([record.seconds for record in records])
    used = list(range(4))
    while True:
        found = np.linalg.lstsq(columns[:, used] / seconds[:, None], np.ones(len(seconds)), rcond=None)[0]
        if (found >= 0).all():
            break
        del used[int(found.argmin())]
    terms = dict(zip(used, found.tolist(), strict=True))
    return AffineStep(
        base_s=terms.get(0, 0.0),
        per_prefill_token_s=terms.get(1, 0.0),
        per_decode_s=terms.get(2, 0.0),
        per_cached_token_s=terms.get(3, 0.0),
    )


def median_error(model: AffineStep, records: Sequence[StepRecord]) -> float:
    """How far off the model is for half of the steps, as a share of the step."""
    errors = [abs(model(_contents(record)) / record.seconds - 1) for record in records]
    return float(np.median(errors))


def mean_step_s(model: AffineStep, totals: Mapping[str, float]) -> float:
    """What the model says of the mean of a server's steps, from the sums that /metrics tells. A mean of affine terms is
    the same terms of the means, so no single step needs to be known.
    """
    steps = totals["steps_total"]
    contents = [totals[f"step_{what}_total"] / steps for what in StepContents._fields]
    return model(StepContents(*contents))  # type: ignore[arg-type]


def _contents(record: StepRecord) -> StepContents:
    return StepContents(*record[:3])
