"""Experts at scale: a mixture of experts served on many GPUs.

exchange_bytes      what a token's vector weighs on the way to its experts and back, and over which links it goes
redundant_experts   copies of popular experts: how even they can make the load, and what they cost
two_batches         two halves of a batch that hide each other's exchange
wide_decode         a decode step of DeepSeek-V3 on many GPUs, from measured kernels and printed rates
shared_context      latents split by tokens over a tensor group: what the group exchanges in place of copies
pool_ratio          nodes for prefill and for decode, and what a fixed split serves when the load shifts
"""
