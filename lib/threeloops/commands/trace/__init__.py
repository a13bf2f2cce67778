"""`threeloops trace`: where the time of your own run went.

own_trace    its flags, the files that are read, a simulated job to try it on
trace_page   the page: time, kernels, ranks, suspects
"""
