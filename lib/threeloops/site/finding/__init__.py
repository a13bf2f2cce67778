"""What a reader looks for, and the heading below which it stands.

spelt       words as they are compared: one spelling of each
index       every heading with its words, as a page fetches it when something is looked for
"""
