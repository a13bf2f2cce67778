"""Facts: values with their sources (catalog/*.toml), the parts they describe, and what was recorded on real
machines.
"""
