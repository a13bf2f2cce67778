"""`threeloops serve`: how many GPUs a load needs so that its promises hold, or what users see of given GPUs.

options        its flags
asked          from flags to what is to be served
copies         one copy of the model on its GPUs: layout, seats, times
fleets         copies of a model under a load, one tensor group after another
pools          copies that read prompts and copies that decode
pool_answer    the calculation for both under a rate
assumed        what is served and taken for granted, in words
pool_users     the calculation for both with users
lines          the working of one fleet: memory, steps, money
advice         what binds and what would help
in_time        requests that keep the promises, and the longest that fits
tables         a row for each layout
engine_flags   the line that starts an engine so
answer         from what is asked to the calculation
on_page        the same, asked by a form on the book's pages
"""
