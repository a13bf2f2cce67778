"""Kernels as they are written: what a reduction, a softmax and a pipeline of copies cost, and what an SM holds of them.

reductions       sums within a block: shuffles, trees, histograms with a copy in each block
softmax_rows     bytes of a softmax, by how often it reads its row
staged_copies    copies on their way while tiles are multiplied: how many stages hide them
systolic         a TPU's matrix unit: tiles of weights, rows that flow through, arrays in whole tiles
register_shares  registers and shared memory of an SM, divided among blocks and among warps of different work
"""
