"""Drills: ask, check, diagnose. One folder a family, with the name of its graded set; what all of them share stands
in engine/. An idea that is asked for as a function, too, says so itself. Two graded sets have no family: first_steps
takes a question from each of five, co_running what four of them say of networks on one chip.

before a GPU    foundations, amdahl
one GPU         roofline, gpu_kernels, attention_io, number_formats, overheads, profiling, measured
many GPUs       training_memory, zero_fsdp, all_reduce, parallel_layout, pipeline, step_time, reliability
serving         kv_cache, decode_speed, batching, queues, speculative, compression, capacity
cars            sensor_bandwidth, latency_budget, deadlines, driving_silicon, joint_models
by hand         coding
"""
