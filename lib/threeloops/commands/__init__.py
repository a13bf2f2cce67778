"""The `threeloops` command: its calculations, with everything a reader needs to check them, and its other verbs.

working         inputs, formulas with the numbers put in, results, assumptions, sources
allreduce, kv, fit, plan, step     one calculation each, with its flags
roofline        a matmul or a forward pass: a folder
memory          what training holds, of whole models and of adapters: a folder
serve           GPUs for a load and its promises: a folder
measured        what others' kernels, steps and servers took: a folder
cluster         the job and the machines that plan and step are asked about
named, released models and parts by the name after a flag; what the ending of a release's name says
calculations    what each is for, listed (training_flags: what plan and step are asked; typed: what people type, as a
                number)
trace           the trace of your own run, read, and the page about it: a folder
log             the log of your own engine or training run, likewise: a folder
expected        the expected time of a step, for plan and step
budget, cache_lines     for kv and fit: what of a card may be filled; a cache's working, layer by layer
evidence        sources, measured, doctor, record (sources: the audit list of the catalogue; record: measure this
                machine, and hold the predictions against it)
book            open, reset, site
room            the interview room: drill, progress, history
paper           sheets and quizzes
grade           one's own notebook, or a class's hand-ins
term            of classroom: a teacher's decisions, a hub
drills          for authors: every idea, and one of them tried
"""
