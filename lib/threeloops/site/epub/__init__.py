"""The whole book as one EPUB, to read on a tablet, a phone or an e-reader, and on a train.

leaves      a page of the book as XHTML: formulas as MathML, drawings beside it, answers at the end
volume      all of them in one file, with a title page and contents
"""
