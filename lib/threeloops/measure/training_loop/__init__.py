"""The training loop, measured.

memory          alive_bytes, saved_tensors, waiting_tensors, watched_step, optimiser_state, sharded_state
bytes sent      links, all_reduces, data_parallel, expert_exchange
real ranks      replicas, tensor_parallel, pipeline, context_parallel
precision       autocast_ops, narrow_training, update_rounding, block_adam, optimiser_traffic
when it fails   ill_training, first_bad, resumed_run
a whole job     training_stack, expert_training
"""
