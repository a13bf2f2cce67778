"""Figures of chapter 3, the product loop.

a request       request_life, phases (prefill and decode on a roofline), gap_trace, draft_check
batches         slot_timeline, batch_choice
caches          token_cache, page_table, prefix_tree, memory_bar
engines         engine_plan, fused_nodes, expert_ways, two_halves
weights         grid_marks
any numbers     plain_lines, predicted_measured, bound_bars
"""
