"""Readers of families whose layers are their own kind: Gemma 3n and 4 (gemma), hybrids of 2024 to 2026 (hybrids), and
attention to chosen or compressed tokens (compressed_attention); names that families had at first (first_forms).
"""
