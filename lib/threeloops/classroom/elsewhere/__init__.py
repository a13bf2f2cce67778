"""Grading on another machine than the teacher's, one hand-in at a time, with the judge of `threeloops grade`. Read the
modules in this order.

packing        what of the book is needed there: no solution, no other student's work
alone          one hand-in graded with no class around it
whose          whose hand-in it is, by what the platform says of who handed it in
gradescope     an autograder for Gradescope, as a zip
in_gradescope  what runs there
actions        a workflow for repositories of students on GitHub
in_actions     what runs there
"""
