"""Kinds of layers of which parameters and caches are counted, and FLOPs not: states of Mamba 1, Kimi delta attention,
short convolutions (states), lightning attention (lightning); caches of compressed tokens (compressed); what chooses
tokens (indexers); what stands beside attention and MLP (beside); what was counted on a class alone (counted). What a
count of parameters says (parameter_counts).
"""
