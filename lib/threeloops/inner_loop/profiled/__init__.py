"""A trace that a profiler wrote, on whatever machine: read, taken apart, suspected.

event_stream    a file's events, one at a time, whatever its size
rank_record     one rank's events as columns
nsys_report     the same record from a report of Nsight Systems, exported as SQLite, one for each process
nested_spans    what a thread did by itself while one call ran within another
rank_timeline   from a record to the rows that trace_gauges reads; kernels by family; products with their shapes
long_pauses     what the host did while a device had nothing to do for a millisecond and more
rank_account    all that is said of one rank
rank_waits      several ranks: who is waited for, and since when
trace_suspects  the first thing to look at, the second, the third, and what a repair could bring
roofed_products products of a record beside their bound and their expected time
written_trace   a trace of this book as a file in the same form
"""
