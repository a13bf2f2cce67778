"""Parallelism: layers cut over ranks, pipelines, experts, long sequences, and the layout of all of them."""
