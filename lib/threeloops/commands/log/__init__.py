"""`threeloops log`: where the time of your own engine or training run went, by what it wrote.

own_log         its flags, the file that is read, and by whom
named_in_log    the model and the device, by the flags or by the log's own words
engine_page     the page about an engine's log or a scrape of its /metrics
training_page   the page about a training log
suspect_rows    suspects on a page and in JSON, each with a drill
"""
