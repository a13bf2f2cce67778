"""Explorers of chapter 3, the product loop.

Each explorer, and beside it what it shows without a browser (its `_view`).

kv              which contexts fit
batching        slots of two servers
drawn_wait      a queue, drawn by the reader first
engine          fusion, narrow weights, a recorded graph
capacity_plan   which bound asks for the most GPUs
compression     weights made smaller, and what is still read
"""
