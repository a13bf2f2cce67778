"""A log that an engine wrote, or a scrape of its /metrics, on whatever machine: read, taken apart, suspected. How lines
are read, and training logs: training_loop.run.logged.

engine_record    what an engine states of itself, and its moments as columns
engine_lines     vLLM's, SGLang's and llama.cpp's lines
scraped_metrics  a /metrics scrape of these, and of the server of chapter 3
engine_account   what limits admission, where requests' time goes, the cache against the formula
engine_suspects  the first thing to look at, the second, the third
"""
