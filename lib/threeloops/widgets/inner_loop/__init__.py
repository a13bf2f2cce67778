"""The inner loop, explored.

Each explorer, and beside it what it shows without a browser (its `_view`).

roofline        roofline_drags (what can be taken hold of), roofline_layer (what can be chosen)
attention       attention_tiles (the matrix of scores)
timeline, number_line
drawn_rate, drawn_speedup       drawn by the reader first
"""
