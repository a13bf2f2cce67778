"""One term of a class: from the platform's class list to marks in the platform's gradebook. Read the modules in this
order.

settings       the term's file: course code, time zone, due dates, what late costs
lists          CSV files as platforms and spreadsheets write them
languages      Moodle's headings and times in the languages that it writes them in
people         a class list read, checked, and kept as the roster
handing_out    a drill set with the course code in it, for students
matching       whose hand-in this is
groups         who hands a set in together, and whose notebook counts for all
collecting     a platform's zip into one folder per student, and what is known of when each came
decisions      what a teacher decides against or beside the grader: excused, other points, a comment
explanations   written explanations beside their rubric, and the points that a teacher gives them
requests       what students ask to have looked at again, and what became of it
marks          points before and after the late policy
gradebooks     the same as Canvas, Moodle or a spreadsheet take them
canvas_api     Canvas's API, asked with a token
canvas         the same marks through it
handing_back   feedback pages under the names that a platform's bulk upload knows
class_page     what the class gets wrong, and which part of the book to teach again
items          how each question did, over terms and versions
normal_form    a function without what does not matter in it
similar        how many hand-ins share a normal form, and how many should
syllabus       the book's parts over so many weeks, prerequisites first
exam           a quiz in versions, and who gets which
"""
