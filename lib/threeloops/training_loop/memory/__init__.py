"""Memory in training: states, activations, what recomputation and offload give back, and what fits on a rank."""
