"""Drills on collectives: bytes and seconds of an all-reduce and its kin over rings, trees, nodes, networks, tori."""

from threeloops.drills.all_reduce import buckets, latency, networks, nodes, readings, ring, steps, torus, traffic
from threeloops.drills.engine.drill import Drill

DRILLS: tuple[Drill, ...] = (
    *ring.DRILLS,
    *readings.DRILLS,
    *latency.DRILLS,
    *nodes.DRILLS,
    *steps.DRILLS,
    *buckets.DRILLS,
    *networks.DRILLS,
    *traffic.DRILLS,
    *torus.DRILLS,
)
