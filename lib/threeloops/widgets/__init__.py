"""Widgets: explorers. Each has a view (what there is to show for a state, computed and tested without a browser) and
the controls around it, as a list.

view, controls, explorer    what all explorers share: the view's parts, the controls, and how both are put on the page
drawn_curve                 a curve that the reader draws first
panel (.js, .css)           the part that lives in the page
system_map (system_view, system_stages)     the map of a whole system, from data to vehicle
inner_loop, training_loop, product_loop, driving   explorers by loop
"""
