"""The product loop, counted.

caches          cache_walk, block_allocator, shared_blocks
tokens          decoding, decode_clock, exact_speculation
weights         narrow_weights, rounding_search, weight_pairs, gguf_blocks
lines           queue, visits, request_stream
one server      serving_run, from traffic (who asks when), serving_requests, serving_policies, serving_blocks,
                serving_steps, serving_server; serving_play without numpy; serving_summary, serving_metrics,
                serving_faults (what came of it)
several         serving_pools, sizing/ (replicas of a layout), experts/
"""
