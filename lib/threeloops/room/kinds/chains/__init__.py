"""The chains of the mock interview: five or more on each loop.

chain, change   what a chain is; the decision at its end
kernels, time   one GPU; an all-reduce and a product
memory, cluster training and caches; many GPUs
serving, load, decoding, measured       servers
driving, on_board                       cars
gains           what a change gains
"""

from threeloops.room.kinds.chains.cluster import EXPERTS, FAILING, PIPELINE
from threeloops.room.kinds.chains.decoding import DRAFT, NARROW
from threeloops.room.kinds.chains.driving import STACK
from threeloops.room.kinds.chains.gains import CAR, PARTS
from threeloops.room.kinds.chains.kernels import ASKING, SCORES, TILED
from threeloops.room.kinds.chains.load import GAP, PREFIX, QUEUE
from threeloops.room.kinds.chains.measured import PUBLISHED
from threeloops.room.kinds.chains.memory import CACHE, STATES
from threeloops.room.kinds.chains.on_board import CHIP, LATE, TURNS
from threeloops.room.kinds.chains.serving import SERVER
from threeloops.room.kinds.chains.time import NODES, PRODUCT

INNER = (PRODUCT, PARTS, TILED, SCORES, ASKING)
TRAINING = (STATES, NODES, PIPELINE, FAILING, EXPERTS)
SERVING = (CACHE, SERVER, GAP, QUEUE, PREFIX, DRAFT, NARROW, PUBLISHED)
DRIVING = (CAR, STACK, CHIP, LATE, TURNS)
CHAINS = {chain.key: chain for chain in (*INNER, *TRAINING, *SERVING, *DRIVING)}
