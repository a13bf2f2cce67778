"""The chains of the mock interview: a cache, a training run, an all-reduce, a product, a speed-up, a car."""

from threeloops.room.chains_gains import CAR, PARTS
from threeloops.room.chains_memory import CACHE, STATES
from threeloops.room.chains_time import NODES, PRODUCT

CHAINS = {chain.key: chain for chain in (CACHE, STATES, NODES, PRODUCT, PARTS, CAR)}
