"""A trace that a profiler wrote, on whatever machine: read, taken apart, suspected.

event_stream    a file's events, one at a time, whatever its size
span_columns    what began and ended when, as columns
rank_record     one rank's events as columns
nsys_tables     tables of Nsight Systems, and what is read of them
nsys_report     the same record from a report of Nsight Systems, exported as SQLite, one for each process
nested_spans    what a thread did by itself while one call ran within another
rank_parts      a record as stretches of time, one after the other, so that a large one needs little memory
rank_timeline   from a part of a record to the rows that trace_gauges reads; kernels by family
taken_apart     the parts added: seconds that compute, and the others by what took them
long_pauses     what the host did while a device had nothing to do for a millisecond and more
rank_account    all that is said of one rank
rank_waits      several ranks: who is waited for, and since when
trace_suspects  the first thing to look at, the second, the third, and what a repair could bring
roofed_products products of a record beside their bound and their expected time
engine_profile  layers of a TensorRT engine, as trtexec prints or writes them
written_trace   a trace of this book as a file in the same form

Other parsers were looked at, and none is used. Meta's Holistic Trace Analysis 0.5.0 (hta/common/trace_parser.py) takes
the whole file into memory with json.loads, then into a data frame, and refuses a file that was cut; it comes with a
hundred packages. Perfetto 0.59.1 downloads its trace processor, a binary of 16 MB, when first used, and knows neither
ranks nor suspects. Reading here needs the standard library alone, and memory for columns.
"""
