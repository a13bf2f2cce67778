"""Networks that come again and again and share one GPU: how long each launch takes under a way of sharing, and which is
late. Plays the launches on chip_sharing's chip, and knows no formula for how long anything takes.

>>> control = Recurring(name="control", kernels=(Kernel(blocks=4, work_slices=1),), period=5, priority=1)
>>> camera = Recurring(name="camera", kernels=(Kernel(blocks=24, work_slices=1),), period=10)
>>> for rule in ("streams", "priority"):
...     taken = responses([camera, control], until=20, sms=4, rule=rule)
...     print(rule, taken, late([camera, control], taken))
streams {'camera': [6, 6], 'control': [7, 3, 7, 3]} {'camera': 0, 'control': 2}
priority {'camera': [8, 8], 'control': [1, 1, 1, 1]} {'camera': 0, 'control': 0}
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from threeloops import checks
from threeloops.simulate.driving.chip_sharing import Kernel, Network, run


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """A network that is launched every period; the end of the period is its deadline.

    Raises:   ValueError for a period below one slice
    """

    name: str
    kernels: tuple[Kernel, ...]
    period: int  # slices
    priority: int = 0

    def __post_init__(self) -> None:
        checks.count(period=self.period)


def responses(
    networks: Sequence[Recurring],
    *,
    until: int,
    sms: int,
    rule: str,
    bus_bytes_per_slice: float = float("inf"),
    own: Mapping[str, int] | None = None,
    turn: int = 0,
    switch: int = 0,
) -> dict[str, list[int]]:
    """Slices from launch to end, of every launch before `until` (slices); all are launched first in slice 0.

    rule, own, turn, switch, bus_bytes_per_slice: as in chip_sharing.run; own and turns are the network's, not the
    launch's.
    Assumes:  a launch does not wait for the one before it; longest responses are those of a whole hyperperiod, the
              least common multiple of the periods, where the launches of one are over before the next begins
    Raises:   ValueError for two networks of one name, and as chip_sharing.run
    Counted:  block by block on chip_sharing's chip
    """
    checks.count(until=until)
    if len({one.name for one in networks}) < len(networks):
        raise ValueError(f"networks are called {[one.name for one in networks]}; give each a name of its own")
    launches = {
        one.name: [
            Network(name=f"{one.name} at {at}", kernels=one.kernels, launched=at, priority=one.priority, part=one.name)
            for at in range(0, until, one.period)
        ]
        for one in networks
    }
    sharing = {"rule": rule, "own": own, "turn": turn, "switch": switch}
    every = [launch for several in launches.values() for launch in several]
    ends = run(every, sms=sms, bus_bytes_per_slice=bus_bytes_per_slice, **sharing)  # type: ignore[arg-type]
    return {name: [ends[one.name].ended - one.launched for one in several] for name, several in launches.items()}


def divided(
    networks: Sequence[Recurring],
    *,
    until: int,
    sms: int,
    pieces: Mapping[str, int],
    of: int,
    bus_bytes_per_slice: float = float("inf"),
) -> dict[str, list[int]]:
    """The same on a chip that is cut into devices (MIG): each network alone on its pieces, with as large a share of SMs
    and of the bus (bus_bytes_per_slice: what the whole chip's memory moves in a slice).

    Raises:   ValueError if a network has no pieces, if more are given away than there are, or if pieces have no whole
              number of SMs
    Source:   NVIDIA, MIG User Guide, "Partitioning" (slices of SMs and of memory)
    """
    if set(pieces) != {one.name for one in networks}:
        raise ValueError(f"pieces={dict(pieces)} must name each network once: {[one.name for one in networks]}")
    if sum(pieces.values()) > of or sms % of:
        raise ValueError(f"pieces={dict(pieces)} must be {of} at most in all, of sms={sms} that {of} divides")
    found: dict[str, list[int]] = {}
    for one in networks:
        share = pieces[one.name] / of
        alone = {"until": until, "sms": round(sms * share), "rule": "streams"}
        found |= responses([one], bus_bytes_per_slice=bus_bytes_per_slice * share, **alone)  # type: ignore[arg-type]
    return found


def late(networks: Sequence[Recurring], taken: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """How many launches of each network took longer than its period, its deadline; taken: slices of each launch, as
    `responses` gives them.
    """
    return {one.name: sum(slices > one.period for slices in taken[one.name]) for one in networks}
