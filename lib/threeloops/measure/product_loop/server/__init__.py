"""A server of our own: an engine with paged KV cache and continuous batching behind an OpenAI-compatible interface."""
