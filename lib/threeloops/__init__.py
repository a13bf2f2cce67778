"""Three Loops: the library behind the book. A map, in reading order.

Words and facts
    units, dtypes, checks       constants, number formats, refusals
    facts, hardware             values with their sources; parts from catalog/*.toml
    models, model_catalogue     what a language model is made of; the known ones
    hf_config (hf_families, hf_layers, hf_fields)   models from a Hugging Face config.json
    convnets, convnet_config    convolutional networks

Predict
    scaling                     Amdahl, overlapping stages, efficiency
    roofline                    work, ridge point, bounds
    kernels (matrix_kernels, attention, vector_kernels)     FLOPs and bytes of single operations
    transformer (forward_step, sublayers), model_flops      of a layer, a model, a training step
    parameters, parameter_buckets                           counts, and how parallelism divides them
    fusion, attention_io, attention_cycles, simplicial_attention    what fused kernels save, and which unit then binds
    coalescing, compute_capability, occupancy               memory requests, blocks and waves on a GPU
    number_formats, block_formats, loss_scaling, summation  what few bits can and cannot hold
    memory, training_recipes    weights, gradients, optimiser state under ZeRO
    activations (activation_kernels, block_activations, mlp_activations), in_flight     what waits for the backward pass
    training_fit (training_setup, transient_weights)        all of it on one GPU, and what fits
    collectives (collective_algorithms, collective_limits), traffic     time on the wire, bytes per step
    kv_cache (kv_allocators, kv_quantisation)               what a context costs

Count       simulate/           brute force that knows nothing of the formulas
Measure     measure/            real torch code on this machine
See         figures/, widgets/  pictures, live and still
Ask         drills/             one definition per question, for every surface
Grade       classroom/          many, safely
Use         workings/, doctor, desk, cli                    the `threeloops` command
"""
