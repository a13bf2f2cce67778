"""The chains of the mock interview: a cache, a training run, an all-reduce, a product, a server, a speed-up, a car, a
perception stack.
"""

from threeloops.room.kinds.chains.driving import STACK
from threeloops.room.kinds.chains.gains import CAR, PARTS
from threeloops.room.kinds.chains.memory import CACHE, STATES
from threeloops.room.kinds.chains.serving import SERVER
from threeloops.room.kinds.chains.time import NODES, PRODUCT

CHAINS = {chain.key: chain for chain in (CACHE, STATES, NODES, PRODUCT, SERVER, PARTS, CAR, STACK)}
