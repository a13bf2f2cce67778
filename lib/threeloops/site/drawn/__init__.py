"""The pictures of the chapters drawn for the pages: as text, and in a form for a phone.

letters     words of a drawing, as wide in every font
anew        their cells run once more, while the pages are built
"""
