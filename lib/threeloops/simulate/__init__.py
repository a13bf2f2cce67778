"""Count: brute force that knows nothing of the formulas.

tiled_gemm, tiled_attention     bytes between a small fast memory and a large slow one
bounded_attention, fused_steps, unit_turns      attention in a memory of limited size; chains of kernels; two units taking turns
simt, simt_memory, toy_kernels, block_scheduler a small GPU, warp by warp
bit_patterns, packed_blocks, loss_scaler, sum_orders    every pattern of a number format; scales and sums, step by step
sharding, in_flight             whose bytes lie on which rank; which micro-batches are alive
block_tape                      tensors that wait for the backward pass
network, ring, tree, two_trees, collectives, traffic    chunks that really walk from rank to rank
step                            workers, a queue and a device, played on a clock
block_allocator, cache_walk     a paged KV cache; every number that a rank must keep
"""
