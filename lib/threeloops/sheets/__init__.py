"""What to know by heart, a page at a time; every number from the catalogue or from a call of the library, none typed.

layout          a page of tables, as text and as HTML to print
stated          formula, assumption and source out of a function's docstring
numbers         the page of numbers of each loop (numbers_hardware: its parts)
formulas        the page of formulas of each loop
interview       the interview sheet: techniques, priorities, thirteen numbers, reading (techniques, memorised: its
                tables)
coding          four things to write by hand, how long they take and what they are marked by
sheet           all of them by name
"""
