"""The inner loop, counted.

SIMT machine    simt, simt_memory, toy_kernels, gemm_kernels
an SM           block_scheduler, warp_scheduler, unit_turns, tensor_core
products        tiled_gemm, split_k, two_of_four
attention       attention_rows, tiled_attention, bounded_attention
numbers         bit_patterns, packed_blocks, sum_orders, amax_history
host and device launch_queue, fused_steps, caching_allocator
a reader's own  benches: machines that a kernel or a schedule is tried on
a job           step, training_timeline, ill_jobs, ticks (processors that share it)
"""
