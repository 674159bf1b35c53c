-- The stored value, as DuckDB's text, of rows in fragments that lack the field, since it was added later (NULL: NULL).
ALTER TABLE columns ADD COLUMN initial_value TEXT;
