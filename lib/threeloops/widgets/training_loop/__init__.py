"""The training loop, explored.

Each explorer, and beside it what it shows without a browser (its `_view`).

memory, stack   one GPU's memory over a step; optimisations on and off
scaling         more GPUs for a job
all_reduce, pipeline            who sends, works, waits
sharding, zero_ranks            where every byte lies
sharded_step    FSDP, moment by moment
"""
