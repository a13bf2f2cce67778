"""The inner loop: is one GPU doing useful math?

the roof        peak_rates, roofline_levels, prediction_error (every recorded case beside its bound)
matrix products gemm_tiles, matrix_instructions, padding, sparsity
attention       attention_io, attention_cycles, simplicial_attention
an SM           occupancy, latency_hiding, coalescing (with bank conflicts and divergent branches), kernels/ (as they
                are written: reductions, a softmax, copies in stages)
around kernels  launches, fusion, device_reads, input_pipeline, allocator_segments
number formats  number_formats, block_formats, summation
a timeline      trace (rows and counters), trace_gauges (a handful of numbers), trace_diagnosis (the first suspect),
                profiled/ (what a profiler wrote on any machine)
a whole job     scaling (Amdahl, Gustafson)
"""
