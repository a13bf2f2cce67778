"""The interview room on a page: the same sittings, clock and memory as at the desk, without a server.

sitting     what runs in the reader's browser
page        the page
"""
