"""A server of our own: an engine with paged KV cache and continuous batching behind an OpenAI-compatible interface.

the door        api_front (HTTP), forms (bodies of OpenAI's API), errors
the engine      engine, from scheduler (who is in the next step), generation (one request), blocks (the paged cache)
around it       metrics, running (a process of its own, by __main__), load (a client), step_times
"""
