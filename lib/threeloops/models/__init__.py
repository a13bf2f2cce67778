"""Models: what a network is made of, the known ones and those read from a config; its parameters and its FLOPs."""
