"""Widgets: explorers. Each has a view (what there is to show for a state, computed and tested without a browser) and
the controls around it.

view, shown, live_text      what all explorers share: the view's parts, how it is put on the page, a sentence that a
                            screen reader speaks
system_map (system_view, system_stages)     the map of a whole system, from data to vehicle
inner_loop, training_loop   explorers by loop
"""
