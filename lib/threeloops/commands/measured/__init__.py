"""`threeloops measured`: what others' kernels, training steps and servers took, and how far expected times are.
For every calculation: a model counted on its class (by_class).
"""
