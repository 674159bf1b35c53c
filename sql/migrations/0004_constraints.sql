-- CHECK, UNIQUE and PRIMARY KEY of a table, in the order in which they were declared. name: the user's (NULL: none). expression: of a CHECK.
-- columns: a JSON list of [name, field id]; the names are those that the expression uses.
CREATE TABLE constraints (
    table_id          INTEGER NOT NULL REFERENCES tables (table_id) ON DELETE CASCADE,
    position          INTEGER NOT NULL CHECK (position >= 0),
    kind              TEXT    NOT NULL CHECK (kind IN ('check', 'unique', 'primary key')),
    name              TEXT,
    expression        TEXT    CHECK ((expression IS NOT NULL) = (kind = 'check')),
    columns           TEXT    NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (table_id, position, begin_snapshot_id)
) STRICT, WITHOUT ROWID;
