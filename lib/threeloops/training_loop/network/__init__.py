"""The network in training: collectives, bytes a step sends, and the links that carry them."""
