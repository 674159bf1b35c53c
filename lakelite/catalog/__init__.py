"""The catalog: one SQLite file that says what every snapshot of a lake holds."""
