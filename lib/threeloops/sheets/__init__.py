"""What to know by heart, a page at a time; every number from the catalogue or from a call of the library, none typed.

layout          a page of tables, as text, as HTML to print, as a table in a notebook
stated          formula, assumption and source out of a function's docstring
numbers         the page of numbers of each loop (numbers_hardware: its parts)
formulas        the page of formulas of each loop
interview       the interview sheet: techniques, thirteen numbers, priorities, symptoms, reading (techniques, orders,
                reading: its tables; figures, figures_serving, figures_reading: every figure in them)
cluster         eight limits of a cluster in closed form
coding          four things to write by hand, how long they take and what they are marked by
references      every source of the book, made from what the library cites and from the catalogue (papers: what for)
terms           one thing, many names
sheet           all of them by name
"""
