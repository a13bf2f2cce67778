"""What a page asks for before it is seen, made small.

styles      of style sheets, the rules that some page uses
gathered    one style sheet and one script for all pages, in place of thirty files
"""
