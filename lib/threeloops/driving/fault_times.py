"""Times around a fault: detecting it, reacting to it, and what the item's tolerance leaves.

FTTI (fault tolerant time interval) is a property of the item, from its hazard analysis. FHTI (fault handling time
interval) is what the design achieves: detection (FDTI) plus reaction (FRTI), within FTTI.

>>> round(reaction_left_s(ftti_s=0.3, detection_s=heartbeat_detection_s(timeout_s=0.12, poll_s=0.02)), 3)
0.16
"""

from threeloops import checks


def heartbeat_detection_s(*, timeout_s: float, poll_s: float) -> float:
    """The longest time from a fault to its detection (FDTI) by a timer that every heartbeat sets anew.

    Formula:  timeout + poll period
    Assumes:  the fault falls just after a heartbeat; somebody looks at the timer every poll_s and has just missed that
              it ran out. The timeout must exceed the longest gap between two healthy heartbeats
    Source:   by definition of the worst case: a fault just behind a sign of life, found one look after the timeout
    Counted:  simulate.driving.heartbeat.slowest_detection

    >>> heartbeat_detection_s(timeout_s=0.25, poll_s=0.5)
    0.75
    """
    checks.positive(timeout_s=timeout_s, poll_s=poll_s)
    return timeout_s + poll_s


def reaction_left_s(*, ftti_s: float, detection_s: float) -> float:
    """What is left for the reaction (FRTI), up to the safe state.

    Formula:  FTTI - FDTI, from FHTI = FDTI + FRTI <= FTTI
    Source:   ISO 26262-1:2018, 3.55, 3.56, 3.59 and 3.61, as quoted by kVA, "Preventing the occurrence of a hazard:
              FTTI at the concept level" (secondary: the standard itself was not opened)
    Counted:  drills.deadlines.ages.WATCHDOG
    Raises:   ValueError if detection alone takes the whole interval
    """
    checks.positive(ftti_s=ftti_s)
    checks.non_negative(detection_s=detection_s)
    if detection_s >= ftti_s:
        raise ValueError(f"detection_s={detection_s} leaves nothing of ftti_s={ftti_s}; detect faster")
    return ftti_s - detection_s
