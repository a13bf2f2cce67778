"""What goes with an answer beside the verdict.

sure         how sure an answer is said to be: `27.6 kB @80`
at_desk      the same on a card of a notebook
calibration  how often answers were right that were said to be so sure, and topics where they were right too seldom
following    which question follows on the mistake just made
"""
