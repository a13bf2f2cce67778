"""The training loop, counted.

messages        network (real arrays between ranks), collectives (all of them by name), from ring, tree,
                double_binary_tree, torus; contributions, fabric (switches and links), traffic (bytes of a training
                step)
sharded states  sharding, zero_ranks, sharded_step
pipelines       pipeline_orders (what each rank is told), pipeline_schedules (on a clock), in_flight
other cuts      context_ring, expert_routing
memory          block_tape, recomputed_step, offloaded_layers
a step, a run   overlapped_step, slowest_rank, loss_scaler, rollouts, failing_run
"""
