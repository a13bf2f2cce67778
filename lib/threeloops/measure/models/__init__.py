"""A plain transformer block in torch, written so that every tensor it keeps can be named."""
