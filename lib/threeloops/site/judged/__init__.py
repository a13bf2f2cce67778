"""Questions of the pages as they stand there, with their answers and slips as data: a page judges a plain answer before
Python has come.

as_written      what judges the questions of a family, as a page fetches it
"""
