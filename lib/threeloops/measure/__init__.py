"""Measure: real torch code on this machine. The only place in the library that imports torch.

recording (recorded_kernels, decode_step, triton_kernels)   the suite of `threeloops record`
timing, printed                 seconds on a clock, this machine's roofs, and how they are printed
chained_loads                   reads that wait for each other, and reads that do not
machine                         this machine level by level: reading, waiting, vectors
flops                           what torch's counter sees
dispatch, compiling, loaders    what the host spends; graphs, cuts, recompilations and kernels; threads and processes
saved_tensors, optimizer_state  bytes that autograd and optimisers keep
transformer_block (block_attention, block_mlps, block_operations)   a plain block to weigh
number_formats, narrow_training torch's own dtypes, and a small net trained in them
kv_cache                        cache tensors of small real models
pipeline                        a network cut by depth over processes, under a schedule
resumed_run                     a run that is killed and goes on from its checkpoint
ranks, wire, links, data_parallel   processes over gloo, and the bytes they send
"""
