"""A task that sends heartbeats until it hangs, a timer that every heartbeat sets anew, and somebody who looks at the
timer now and then: played in whole steps of time.

>>> slowest_detection(heartbeat=3, timeout=7, poll=4)
11
"""


def slowest_detection(*, heartbeat: int, timeout: int, poll: int) -> int:
    """The longest time from the hang to the look that finds the timer run out, over every setting of the clocks. A hang
    in the moment of a heartbeat comes after it; a look in the moment in which the timer runs out is too early.
    """
    found = []
    for hang in range(heartbeat):  # steps since the last heartbeat, which was at 0
        for first_look in range(poll):
            now = first_look
            while now <= timeout:
                now += poll
            found.append(now - hang)
    return max(found)
