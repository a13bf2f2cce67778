"""What a layer's cache is made of: KV heads of one rank (kv_heads), compressed entries (entry_caches)."""
