"""Operating a service: what happens to servers when load, versions, tenants and requests change.

scaling_out    copies that start cold, and when to order them
canaries       a new version on a share of the requests: how long to look, how many are hurt
prefix_routes  which copy has a conversation's cache, and when a queue is longer than the prompt
tenants        rate limits, fair shares, retries
guided         answers that a grammar holds to: masks, and steps that wait for them
agents         calls that build on one another: tokens read again, reliability of a chain
image_prompts  tokens of a picture
image_generation  a picture made in steps: tokens of its latent, runs of the network
wall_power     energy of an answer, at the wall
retrieval      what stands before the first token of an answer from documents
repeats        answers that come out alike
"""
