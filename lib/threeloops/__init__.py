"""Three Loops: the library behind the book. A map, in reading order.

Words and facts
    units, dtypes, checks       constants, number formats, refusals
    facts, hardware             values with their sources; parts from catalog/*.toml
    models, model_catalogue     what a language model is made of; the known ones
    trace                       what a profiler writes down
    hf_config (hf_families, hf_layers, hf_fields)   models from a Hugging Face config.json
    convnets, convnet_config    convolutional networks
    clock_history               how fast clocks ticked since 1971

Predict
    lines, similarity, dense_networks, chain_rule           functions and small networks, before there is a GPU
    training_energy             GPU hours to joules to CO2
    scaling                     Amdahl, overlapping stages, efficiency
    roofline, roofline_levels   work, ridge point, bounds; a slope for every memory
    processor_peak, instruction_pipelines, caches       what a processor does per cycle, and when it waits
    kernels (matrix_kernels, attention, vector_kernels)     FLOPs and bytes of single operations
    transformer (forward_step, sublayers), model_flops      of a layer, a model, a training step
    parameters, parameter_buckets                           counts, and how parallelism divides them
    fusion, attention_io, attention_cycles, simplicial_attention    what fused kernels save, and which unit then binds
    peak_rates, latency_hiding                              a datasheet's rates from parts, and what must be in flight to reach them
    coalescing, compute_capability, occupancy               memory requests, blocks and waves on a GPU
    gemm_tiles, matrix_instructions, sparsity               tiles, matrix units and pruned weights of a product
    launches, padding, input_pipeline, allocator_segments       what surrounds kernels
    trace_gauges, trace_diagnosis, device_reads             what a timeline says, what reading a value costs
    number_formats, block_formats, loss_scaling, summation  what few bits can and cannot hold
    memory, training_recipes    weights, gradients, optimiser state under ZeRO
    activations (activation_kernels, block_activations, mlp_activations), in_flight     what waits for the backward pass
    tensor_parallel             a layer cut over ranks: what it calculates, waits for and holds
    pipelines                   a model cut by depth: bubbles, micro-batches, bytes between stages
    expert_load, context_parallel, placement                uneven routers, long sequences, which GPU is whose part
    training_fit (training_setup, transient_weights)        all of it on one GPU, and what fits
    recomputation, step_memory                              run again instead of kept; what is there at each moment of a step
    collectives (collective_algorithms, collective_limits), traffic     time on the wire, bytes per step
    fabric                      the narrowest link of a path; what a thinned-out network makes of an exchange
    gradient_buckets                                        how data parallelism packs what it sends
    row_shards, offload                                     how FSDP2 deals rows out; memory beyond the GPU, and the way there
    step_time                                               what a step on many GPUs is made of; tokens/s/GPU, MFU, days
    layouts, layout_step (group_traffic), planner (layout_reasons)     how ranks share a model: legal, fitting, fastest, and why not the others
    published_layouts                                       what was run, beside what is planned
    optimisation_stack (optimisers, accumulation, layer_dropping)   repairs of one training step, in seconds, bytes and dollars
    adapters, rollouts                                      fine-tuning beside frozen weights; learning from one's own text
    reliability, checkpoint_levels, stragglers              how often a run stops, what that costs, and whom a step waits for
    kv_cache (kv_allocators, kv_quantisation)               what a context costs
    serving, queueing, speculative      time, batches, waits and drafts of requests; what a token costs
    compression                 quantised, pruned, factorised, distilled: bytes, noise, break-evens

Count       simulate/           brute force that knows nothing of the formulas
Measure     measure/            real torch code on this machine
Replay      recorded (recorded_cases), prediction_error     what was measured elsewhere, and how far the predictions miss it
See         figures/, widgets/  pictures, live and still
Ask         drills/             one definition per question, for every surface
Print       paper/, sheets/     quizzes with a key; what to know by heart
Grade       classroom/          many, safely
Use         workings/, doctor, desk, stand_in, cli          the `threeloops` command; what a cell shows where it cannot run
"""
