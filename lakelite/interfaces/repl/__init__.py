"""The prompt of a terminal: editing, colours, completion. Nothing else needs prompt_toolkit and Pygments, and only a terminal imports it."""
