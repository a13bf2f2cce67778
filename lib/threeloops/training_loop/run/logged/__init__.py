"""A log that a run wrote, on whatever machine: read, taken apart, suspected. Engines' logs are product_loop.logged.

log_lines       a file's lines, one at a time, whatever its size
log_suspect     one thing that the time went to, and what a repair could bring
step_record     a training log's entries as columns, and what the log states of the run
step_lines      Megatron-LM's, torchtitan's and the HF Trainer's lines
step_account    where the time of the steps went, and when the loss was not itself
step_suspects   the first thing to look at, the second, the third
"""
