"""The product loop, measured.

models          small_language_model, character_decoder, character_text, glyphs (sixteen digits to read)
caches, steps   kv_cache, decode_step, speculative_decoding, exported (ONNX Runtime)
smaller weights quantisers, gptq, channel_scaling (AWQ, SmoothQuant), pruning, distillation; compression_grid,
                technique_table (side by side), ill_model
serving         server/ (our own), closed_loop, recorded_loop, simulated_points
"""
