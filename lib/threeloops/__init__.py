"""Three Loops: the library behind the book. A room is a folder; this page has a sentence for each, from the ground
up.

units, checks, spelling, dtypes  words that everybody uses: constants, refusals, what people call a thing, formats
markup          HTML of elements: what is not markup is text
wall_clock      the date, the time of day and waiting, for everybody
facts           values with their sources: parts, compute capabilities, recordings of real machines
operations      FLOPs and bytes of single operations, and the roofline that bounds them
models          what a network is made of, the known ones, its parameters and its FLOPs

Predict: formulas, by loop
foundations     functions, small networks and processors, before there is a GPU
inner_loop      one GPU: tiles, launches, fused kernels, number formats, traces
training_loop   many GPUs: memory, network, parallelism, updates, and a run that lasts
product_loop    serving: caches, queues, drafts, compressed models
driving         a vehicle's deadline

The same loops, known in other ways
simulate        count: brute force that knows nothing of the formulas
measure         measure: real torch code on this machine (torch is imported nowhere else)
figures, widgets        see: pictures, still and live

drills          ask: a draw p, a prompt, an answer, slips with a story each; one folder a family, drills/engine for all
sandbox         the wall: a student's code runs behind it and knows no answer
room            rehearse: the interview room, in a terminal and in a notebook; its own kinds of question in room/kinds
site            the book as pages that need no server
sheets, paper   print: what to know by heart; quizzes with a key
classroom       grade: many, safely
commands, cli   the `threeloops` command: calculations with their working shown (__main__: as `python -m threeloops`)
contents        the table of contents, read from the chapters
desk            the reader's notebooks, one a part, and the JupyterLab that opens them; its extension is in lab
doctor, stand_in        this machine, recorded outputs
quick_start     programs of Jupyter's, started in half the time
"""
