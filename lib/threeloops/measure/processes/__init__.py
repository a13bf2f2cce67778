"""Local processes that form one gloo group, and the bytes they send."""
