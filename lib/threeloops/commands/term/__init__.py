"""What `threeloops classroom` does besides a set's way from release to marks.

canvas        marks through Canvas's API
decisions     what a teacher decides about one student's set
elsewhere     grading where students hand in: Gradescope, repositories on GitHub
explanations  points for what students wrote in words
grading       what is collected of a set, graded
groups        who hands in together
hub           a class on a hub
items         how a set's questions did
requests      what students ask to have looked at again
"""
