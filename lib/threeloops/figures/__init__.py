"""Figures. A figure is one Vega-Lite specification: a notebook shows it with the Vega that JupyterLab ships, and
keeps a PNG of it for every other reader.

look        colours, shapes and sizes
channels    how a mark takes its place, colour and words from its rows
figure      what every function here returns: a drawing with its title, its caption and its words (still: the PNG)
narrow      a drawing's form for a phone
plans       and that of a plan of boxes
labels      names of points, placed so that none overlap
boxes       plans of things that are built of parts
curves      one quantity against another (drawn_curve: after the reader has drawn it)
overlap_rows    who is busy with what, one row a resource
foundations, inner_loop, training_loop, product_loop, driving      one module for every kind of figure
"""
