"""Measure: real torch code on this machine. The only place in the library that imports torch.

timing, printed         seconds on a clock, this machine's ceilings, and how they are printed
recording (recorded_kernels, _threads, _models) the suite of `threeloops record`
processes               local processes that form one gloo group, and the bytes they send
models                  a plain transformer block to weigh
inner_loop, training_loop, product_loop         what the chapters measure
"""
