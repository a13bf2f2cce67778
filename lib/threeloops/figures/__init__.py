"""Figures, in reading order: look (colours, shapes and sizes), still (the PNG), figure (what every function here returns), labels (placed so that none
overlap), roofline, and one module for every other kind of figure: banks, block_timeline, attention_traffic, unit_turns, number_line, format_ranges,
tile_hierarchy, tile_ladder, fragment_map, quantised_share,
boxes (chip_layout, fp8_datapath, cluster_map), launch_timeline, memory_segments, memory_levels, ridge_history, issue_shares,
working_set, pipeline_gantt, pipeline_stages, processor_history, goodput_curve, step_maxima.

A figure is one Vega-Lite specification. A notebook shows it with the Vega that JupyterLab ships, and keeps a PNG of it for every other reader.
"""
