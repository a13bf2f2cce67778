"""Operations: FLOPs, bytes and bounds of single operations, and the roofline that they stand under.

kernels         all single operations under one name, from matrix_kernels, vector_kernels, attention, scan_kernels
layers' parts   expert_layers, latent_module
roofline        the bound: arithmetic, memory traffic, or the launch
expected_times  what kernels take by what was measured, from two_timings, attention_kernels, recorded_rates
"""
