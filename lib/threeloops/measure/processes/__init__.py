"""Local processes: one gloo group and the bytes that its ranks send; a middleware between two of them."""
