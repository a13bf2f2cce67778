"""What a served token is expected to take, by kernels that others timed; and how far that is from servers.

rank_memory      what one GPU of a tensor group holds and reads: weights, experts, caches; how many requests have a seat
expected_token   from the floor of a step to the time between two tokens, rung by rung
judged_points    served points, each beside what was expected of it
"""
