"""Memory in training: states, activations, what recomputation and offload give back, and what fits on a rank.

fit             everything that a rank holds at its worst moment, for a setup
states          recipes (bytes a parameter), rank_states, stage_states, row_shards, task_heads
activations     activations (a block), from block_activations, mlp_activations, recurrent_activations and
                activation_kernels (what is fused); rank_activations, in_flight, recomputation
neither         gathered_parameters, offload
step_memory     every moment of a step
"""
