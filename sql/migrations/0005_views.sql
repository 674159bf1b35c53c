-- A view is a row of `tables` with a name in `table_names`, and without columns or fragments. `names`: a JSON list of those that its
-- first columns have instead of their own; `comments`: a JSON list of [name of a column, comment].
CREATE TABLE views (
    table_id          INTEGER NOT NULL REFERENCES tables (table_id) ON DELETE CASCADE,
    query             TEXT    NOT NULL,
    names             TEXT    NOT NULL,
    comments          TEXT    NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (table_id, begin_snapshot_id)
) STRICT, WITHOUT ROWID;

-- COMMENT ON: field_id 0 is the table or the view itself.
CREATE TABLE comments (
    table_id          INTEGER NOT NULL REFERENCES tables (table_id) ON DELETE CASCADE,
    field_id          INTEGER NOT NULL,
    comment           TEXT    NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (table_id, field_id, begin_snapshot_id)
) STRICT, WITHOUT ROWID;
