"""Count: brute force that knows nothing of the formulas.

tiled_gemm, tiled_attention     bytes between a small fast memory and a large slow one
bounded_attention, fused_steps, unit_turns      attention in a memory of limited size; chains of kernels; two units taking turns
processor_cache, instruction_pipeline   lines in the sets of a cache; instructions in stages and chains
simt, simt_memory, toy_kernels, block_scheduler a small GPU, warp by warp
warp_juggler                    one scheduler and its warps, cycle by cycle
gemm_kernels, tensor_core, split_k, two_of_four matrix products on it, and on its matrix unit; slices; pruned weights
bit_patterns, packed_blocks, loss_scaler, sum_orders    every pattern of a number format; scales and sums, step by step
sharding, in_flight             whose bytes lie on which rank; which micro-batches are alive
pipeline_orders, pipeline_schedules     who runs which pass of a pipeline, and when
block_tape                      tensors that wait for the backward pass
network, ring, tree, two_trees, collectives, traffic    chunks that really walk from rank to rank
fabric                          messages over cards, leaves and spines, and what each link has carried
step, ticks                     workers, a queue and a device, played on a clock; work dealt out unit by unit
overlapped_step                 a device that computes, and a link that sends what is complete
failing_run, slowest_rank       a run that fails and goes on, event by event; steps that wait for their last rank
launch_queue, caching_allocator kernels on their way from host to device; memory in segments and blocks
block_allocator, cache_walk     a paged KV cache; every number that a rank must keep
decoding, queue                 requests token by token; customers, and heads that come and go
narrow_weights                  weights rounded, pruned and packed bit by bit
"""
