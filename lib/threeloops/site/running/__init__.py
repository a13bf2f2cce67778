"""Code of the chapters that is run in the page, by the book's Python in the reader's browser.

names       which names a cell asks for, and which it leaves behind
needs       what a cell needs to be run: packages that a page has not, and cells above it
marks       what stands below a cell on its page: a place for its button, or what it needs
kernel      what runs there: a cell with those above it that it needs, each time from the beginning
"""
