"""Replicas of a served layout under a load, request by request.

replica_runs   one replica at a rate of arrivals, or with so many users; the largest rate that keeps the promises
prefill_runs   servers that only read prompts, and how many keep the promise on the first token
pool_runs      two pools under a rate, or with so many users
"""
