"""Storage: the files of a lake, its locks, its fragments and the DuckDB engine that reads them."""
