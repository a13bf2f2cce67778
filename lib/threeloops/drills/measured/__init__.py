"""Drills on what others measured: single calls, exchanges, training steps, served points.

rows            the rows that are asked about, read when a question is drawn; counted: what counts are made of
calls           products, short_kernels, attention, layers, comparisons, errors
sent            exchanges, links, shards
steps           steps, executed, layouts
servers         served, servers, users, loads, caches
functions       what the set asks to be written
"""

from threeloops.drills.engine.drill import Drill
from threeloops.drills.measured import (
    attention,
    caches,
    comparisons,
    errors,
    exchanges,
    executed,
    layers,
    layouts,
    links,
    loads,
    products,
    served,
    servers,
    shards,
    short_kernels,
    steps,
    users,
)

DRILLS: tuple[Drill, ...] = (
    *products.DRILLS,
    *short_kernels.DRILLS,
    *comparisons.DRILLS,
    *attention.DRILLS,
    *caches.DRILLS,
    *layers.DRILLS,
    *exchanges.DRILLS,
    *links.DRILLS,
    *steps.DRILLS,
    *executed.DRILLS,
    *layouts.DRILLS,
    *shards.DRILLS,
    *served.DRILLS,
    *users.DRILLS,
    *servers.DRILLS,
    *loads.DRILLS,
    *errors.DRILLS,
)
