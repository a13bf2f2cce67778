"""The interview room in a notebook: the same sittings as in the terminal, shown by widgets."""
