"""What other libraries raise, as errors of lakelite: the one place that words DuckDB, SQLite, pyarrow and the operating system."""
