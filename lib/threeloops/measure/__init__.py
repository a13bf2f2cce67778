"""Measure: real torch code on this machine. The only place in the library that imports torch.

timing, printed         seconds on a clock, this machine's ceilings, and how they are printed
recording               the suite of `threeloops record`, from recorded_kernels, recorded_threads, recorded_models,
                        recorded_training, cuda_kernels, triton_kernels (recorded_needs: what a case asks of a machine)
counted_kernels, traced_kernels     the same under NVIDIA's counters and torch's profiler
processes               local processes that form one gloo group, and the bytes they send
models, kept_models     a plain transformer block to weigh; models that are trained once and kept
published_rows          others' files into tables of facts: published_kernels, published_exchanges, published_points,
                        published_pools, published_traces; published_errors: what a table says of all of its rows
inner_loop, training_loop, product_loop, driving        what the chapters measure
"""
