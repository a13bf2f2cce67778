"""Which GPUs a load needs so that its promises hold, and what given GPUs give: for `threeloops serve`.

stored_weights   how many weights take how many bits in a format
left_wide        how many a checkpoint keeps in 16 bits beside them, by the list in its config
served_layout    one copy of a model on its GPUs: memory, seats, longest context
request_lengths  what each request brings and gets: one mean, or drawn from a recorded trace
bound_steps      seconds of a step and of a prompt that no engine beats, by the roofline
request_times    how long its steps take with so many requests: the roofline's bound, and by measured kernels
adapted_products which matrices of a layer have adapters beside them, and what one GPU does of these
adapter_times    what LoRA adapters take of memory and of a step
staged_times     steps and prompts of a model whose layers are cut into stages on several nodes
drafted_steps    what steps take and yield with drafts
engine_limits    an engine's two limits, requests and tokens of a step, from the promise on the gap between tokens
"""
