"""Machines that a reader's own kernels run on: one file each, the standard library alone, because the file is carried
into the sandbox with what is to be tried.
"""
