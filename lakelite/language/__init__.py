"""From SQL text to typed statements (parse.py), and from those to plans."""
