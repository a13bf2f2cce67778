"""The training loop: do many GPUs act like one? Memory, network, parallelism, updates, and a run that lasts."""
