"""Models in torch: a plain transformer block, written so that every tensor it keeps can be named; any class of
transformers, stepped without values (class_steps) and counted (counted_class).
"""
