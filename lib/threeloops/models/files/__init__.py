"""What people have of a model on their disk: its config.json, or a file beside it that is taken for one."""
