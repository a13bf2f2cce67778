"""Grading: many notebooks, safely, through nbgrader. Read the modules in this order.

questions       what a released notebook asks, read from its own graded cells
sources_only    a notebook's bytes without its outputs, however large they are
placing         where in the release a submitted cell belongs, whatever an editor has made of it
transplant      the student's own cells, set into the released notebook
judging         one notebook judged: poses, collects, compares
preprocessors   the same as steps of `nbgrader autograde`
summary         the card on top of a feedback page
stages          nbgrader's own converters, kept from one student to the next
gradebook       where the scores are kept: a file, or a database on a server
course          folders, keys and what is done with them at each stage
uploads         files as they lie in a folder, a zip, or a zip in it
recognising     which set a file is of, by what is in it, and what it is where it is of none
intake          what was handed in, by person: the notebook that counts, and every other file
report          table, grades per question, slips per question
work_folder     what stays between two runs: the lock, marks of what is graded, an earlier hand-in's page
one_submission  one submission graded, from its bytes to its mark
workers         several graded at once
machines        the same on other machines, through a scheduler of Dask's; what a class costs there
grade           the command `threeloops grade`
term            the group of commands `threeloops classroom`: from a class list to marks in a platform's gradebook
elsewhere       one hand-in graded on Gradescope, or in a student's repository on GitHub
hub             JupyterHub with nbgrader for a class on one machine
"""
