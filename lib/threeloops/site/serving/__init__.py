"""The page that sizes a service: the calculator of `threeloops serve`, in the reader's browser.

fields         what it asks, and the flag that each stands for
page           its form
"""
