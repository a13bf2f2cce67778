"""Measure: real torch code on this machine. The only place in the library that imports torch.

timing, printed                 seconds on a clock, this machine's roofs, and how they are printed
flops                           what torch's counter sees
saved_tensors, optimizer_state  bytes that autograd and optimisers keep
transformer_block (block_attention, block_mlps, block_operations)   a plain block to weigh
number_formats, narrow_training torch's own dtypes, and a small net trained in them
kv_cache                        cache tensors of small real models
ranks, wire, links, data_parallel   processes over gloo, and the bytes they send
"""
