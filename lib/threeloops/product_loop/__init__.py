"""The product loop: is the model served on time and at a price?

one request     serving, decode_floor, split_decode, batching, speculative
in line         queueing, backlogs
KV cache        kv_cache (its bytes), kv_quantisation, kv_paging, kv_allocators, kv_budget, kv_capacity, kv_transfer;
                recurrent_state (what stands in its place), caches/ (what a layer's cache is made of)
smaller models  compression, quantisation, gguf_formats, gguf_recipes, gguf_files, adapter_batches
how many GPUs   capacity, deployments, prices, sizing/ (for `threeloops serve`)
engines         engine_step, expected/ (a token by kernels that others timed), logged/ (what an engine wrote)
at scale        experts/ (a mixture of experts on many GPUs), operating/ (load, versions, tenants)
"""
