"""Questions on paper and on a learning platform, from the same drills as everything else.

bare_numbers    the unit in which a platform is to be answered, and a number without exponent
quiz            versions of a quiz: the same ideas, other numbers, another order
printed         versions and key as text and as HTML to print
word            the same as a Word document
latex           the same as LaTeX
answer_space    how much room a question leaves for its answer
qti             versions as a QTI 1.2 package
qti_parts       the elements of such a package
delivery        into a folder, nothing overwritten
"""
