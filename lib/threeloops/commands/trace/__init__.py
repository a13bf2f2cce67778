"""`threeloops trace`: where the time of your own run went.

own_trace    its flags, the files that are read, a simulated job to try it on
own_drill    a drill with the file's own numbers; `log` poses it, too
told_page    lines, tables and suspects as text or as one HTML file; `log` writes with it, too
engine_page  the same of a profile that TensorRT wrote of its engine
trace_page   the page: time, kernels, ranks, suspects
"""
