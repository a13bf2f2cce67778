"""The wall: a student's or a reader's code runs on one side of it, and whoever judges stands on the other. What it
promises, against whom, and what not, is told in TEACHING.md.

student_side    the student's side: runs code, returns values, knows no answer
walls           how that side is started: bubblewrap on Linux, a plain process elsewhere; its limits
seccomp         what the sandbox refuses of the kernel's own calls
forking         in the sandbox: a warm process, and a child of it behind walls of its own for each submission
warm_process    the grader's end of the line to that one
kernel          the grader's end of the line to the student's side
calling         a learner's function called over it, from a graded cell or from a file at home
"""
