"""The training loop, drawn.

a step          step_bars, overlap_step, bucket_curve, step_maxima, memory_timeline, recomputed_passes, autocast_lanes
collectives     chunk_steps, ring_waits
who has what    sharding_map, shard_stages, split_block, split_passes, split_shares, expert_routes, worker_map
pipelines       pipeline_gantt, weights_wait
the cluster     cluster_map, rail_map, scaling_curve
a run           one_failure, goodput_curve, loss_curves, stacked_shares (how many cases came out in which way)
"""
