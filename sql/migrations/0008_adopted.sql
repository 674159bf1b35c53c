-- Files that were taken as they are: under which name such a file has a column; or, of a column that it lacks, the value of its rows
-- (`value`: DuckDB's text of a value of the stored type `type`, NULL: NULL). A field without a row here came after the file.
CREATE TABLE adopted_columns (
    table_id    INTEGER NOT NULL,
    fragment_id INTEGER NOT NULL REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    field_id    INTEGER NOT NULL,
    name        TEXT,
    value       TEXT,
    type        TEXT    NOT NULL,
    CHECK (name IS NULL OR value IS NULL),
    PRIMARY KEY (table_id, fragment_id, field_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX adopted_by_fragment ON adopted_columns (fragment_id);
