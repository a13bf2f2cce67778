"""Experts at scale, counted.

token_copies     tokens choose experts, and every copy of a vector is walked over network and NVLink
placed_experts   popular experts get copies, and all copies get a GPU
played_batches   halves of a batch take turns on the GPU and on the network
split_latents    attention over latents that lie on several ranks, with everything that is sent
pool_flow        requests that wait for two pools, until the last has its last token
"""
