"""Facts: values with their sources (catalog/*.toml), the parts they describe, and what was recorded on real
machines.

fact            a number with its source, and the files that hold such numbers
parts           hardware, compute_capability, driver_names, clock_history, dla_layers, road_rules
our recordings  recorded_cases (each under a name that holds its sizes), recorded_suite, recorded, recorded_drive,
                kernel_counts, compressed_glyphs, stamped_files
others' kernels gemm_sweep, kernel_times, printed_rates, launch_waits, traced_steps, frame_rates
others' servers served_points, served_pools, engine_exchanges, expert_fleets, request_traces
"""
