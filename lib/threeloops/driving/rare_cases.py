"""Rare cases: how far a fleet drives until it has met one, what its triggers upload meanwhile, and what labels cost.

>>> from threeloops.units import mile
>>> per_m = 1.09e-8 / mile  # fatalities on roads of the United States, 2013
>>> round(metres_to_see(events_per_m=per_m, confidence=0.95) / mile / 1e6)  # Kalra and Paddock print 275
275
>>> clips = clips_per_m(events_per_m=1e-8, found_share=0.5, false_per_m=1e-6)
>>> round(label_cost(found=100, events_per_m=1e-8, found_share=0.5, false_per_m=1e-6, clip_cost=2.0))
40200
"""

import math

from threeloops import checks


def metres_to_see(*, events_per_m: float, confidence: float) -> float:
    """How far one drives until a case has been met at least once with this confidence.

    Formula:  -ln(1 - confidence) / rate: 3 / rate at 95 %
    Units:    rate in events per metre driven
    Assumes:  cases come independently at one rate (Poisson). They come in groups, by season and place: the least
    Source:   Kalra and Paddock, Driving to Safety, RAND RR-1478, 2016, where no event was met (read as three public
              texts quote it, which agree)
    Counted:  simulate.driving.rare_draws.share_of_drives
    """
    checks.positive(events_per_m=events_per_m)
    checks.fraction(confidence=confidence)
    if confidence == 1:
        raise ValueError("confidence=1 takes an endless drive; 0.95 is usual")
    return -math.log1p(-confidence) / events_per_m


def clips_per_m(*, events_per_m: float, found_share: float, false_per_m: float) -> float:
    """Clips that a trigger uploads per metre driven, right and wrong ones.

    Formula:  rate * found share + false alarms per metre
    Assumes:  one clip for each time that it fires
    Source:   by definition
    Counted:  simulate.driving.rare_draws.fired
    """
    checks.positive(events_per_m=events_per_m)
    checks.fraction(found_share=found_share)
    checks.non_negative(false_per_m=false_per_m)
    return events_per_m * found_share + false_per_m


def label_cost(*, found: float, events_per_m: float, found_share: float, false_per_m: float, clip_cost: float) -> float:
    """What looking at all clips costs until so many are the case that is wanted.

    Formula:  found * (clips per metre / (rate * found share)) * cost of a clip
    Units:    clip_cost in any money; the result in the same
    Assumes:  every clip is looked at, once
    Source:   by definition: found / precision * cost
    Counted:  simulate.driving.rare_draws.fired
    """
    checks.positive(found=found, clip_cost=clip_cost, found_share=found_share)
    clips = clips_per_m(events_per_m=events_per_m, found_share=found_share, false_per_m=false_per_m)
    return found * clips / (events_per_m * found_share) * clip_cost
