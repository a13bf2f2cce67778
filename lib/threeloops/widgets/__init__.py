"""Widgets, in reading order: live_text (a sentence that a screen reader speaks when it changes), roofline_view (what there is to show, without a browser),
roofline (the controls around it); number_line_view and number_line, pipeline_view and pipeline likewise; system_stages (the stages
from data to vehicle), system_view and system_map."""
