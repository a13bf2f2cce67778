"""The inner loop, drawn.

rooflines       roofline, from roofline_scale and roofline_names; ridge_history, recorded_bars
on a clock      timeline, launch_timeline, block_timeline, unit_turns, warp_rows, issue_shares
products        tile_walk, tile_hierarchy, tile_ladder, fragment_map, quantised_share, fp8_datapath
memory          chip_layout, memory_levels, working_set, memory_segments, asked_words, attention_traffic
number formats  number_line, format_ranges
"""
