-- The catalog of a lake: what every snapshot holds, and how it came to be.
-- A row with begin_snapshot_id b and end_snapshot_id e is part of the snapshots b <= s < e (e NULL: up to the head).
-- Times are microseconds since 1970 in UTC. Ids come from `counters` and are never used twice.

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
    name    TEXT PRIMARY KEY CHECK (name IN ('table', 'field', 'schema', 'fragment', 'row')),
    next_id INTEGER NOT NULL CHECK (next_id > 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    snapshot_id      INTEGER PRIMARY KEY CHECK (snapshot_id >= 0),
    parent_id        INTEGER CHECK (parent_id < snapshot_id),
    branch           TEXT    NOT NULL CHECK (branch = 'main'),
    committed_at_us  INTEGER NOT NULL,
    author           TEXT,
    message          TEXT,
    operation        TEXT    NOT NULL,
    statements       TEXT    NOT NULL, -- a JSON list of texts
    isolation        TEXT    NOT NULL,
    base_snapshot_id INTEGER,
    attempts         INTEGER NOT NULL CHECK (attempts >= 1),
    transaction_id   TEXT    NOT NULL UNIQUE,
    blind            INTEGER NOT NULL CHECK (blind IN (0, 1))
) STRICT;
CREATE INDEX snapshots_by_time ON snapshots (committed_at_us); -- grows with snapshot_id, without two alike

-- What a snapshot did to each table that it changed. table_id NULL: the namespace (schemas). `kinds`: a comma separated list of
-- namespace, create, drop, schema, append, delete, update, overwrite, compaction (which moves rows and changes none).
CREATE TABLE effects (
    snapshot_id  INTEGER NOT NULL REFERENCES snapshots (snapshot_id) ON DELETE CASCADE,
    table_id     INTEGER,
    kinds        TEXT    NOT NULL CHECK (kinds <> ''),
    rows_added   INTEGER NOT NULL CHECK (rows_added >= 0),
    rows_removed INTEGER NOT NULL CHECK (rows_removed >= 0),
    UNIQUE (snapshot_id, table_id)
) STRICT;

-- The tables that a snapshot's transaction read, other than the rows that its own UPDATE or DELETE looked at.
CREATE TABLE reads (
    snapshot_id INTEGER NOT NULL REFERENCES snapshots (snapshot_id) ON DELETE CASCADE,
    table_id    INTEGER NOT NULL,
    PRIMARY KEY (snapshot_id, table_id)
) STRICT, WITHOUT ROWID;

-- The ledger: how each commit was reconciled with the winners it met.
CREATE TABLE resolutions (
    snapshot_id        INTEGER NOT NULL REFERENCES snapshots (snapshot_id) ON DELETE CASCADE,
    winner_snapshot_id INTEGER NOT NULL,
    table_id           INTEGER,
    rung               INTEGER NOT NULL CHECK (rung BETWEEN 1 AND 5),
    row_count          INTEGER NOT NULL CHECK (row_count >= 0),
    explanation        TEXT    NOT NULL,
    UNIQUE (snapshot_id, winner_snapshot_id, table_id)
) STRICT;

CREATE TABLE schemas (
    schema_id         INTEGER PRIMARY KEY,
    name              TEXT    NOT NULL CHECK (name <> ''),
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id)
) STRICT;

CREATE TABLE tables (
    table_id          INTEGER PRIMARY KEY,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    oldest_kept_id    INTEGER NOT NULL DEFAULT 0 -- VACUUM t: older snapshots no longer hold this table's rows
) STRICT;

CREATE TABLE table_names (
    table_id          INTEGER NOT NULL REFERENCES tables (table_id) ON DELETE CASCADE,
    schema_id         INTEGER NOT NULL REFERENCES schemas (schema_id),
    name              TEXT    NOT NULL CHECK (name <> ''),
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (table_id, begin_snapshot_id)
) STRICT, WITHOUT ROWID;

-- One row per node of a column's stored type: parent_field_id NULL is the column itself, which alone has a declared type.
CREATE TABLE columns (
    table_id          INTEGER NOT NULL REFERENCES tables (table_id) ON DELETE CASCADE,
    field_id          INTEGER NOT NULL CHECK (field_id > 0),
    parent_field_id   INTEGER,
    position          INTEGER NOT NULL CHECK (position >= 0),
    name              TEXT    NOT NULL,
    declared_type     TEXT    CHECK ((declared_type IS NULL) = (parent_field_id IS NOT NULL)),
    stored_type       TEXT    NOT NULL,
    nullable          INTEGER NOT NULL CHECK (nullable IN (0, 1)),
    default_sql       TEXT,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (table_id, field_id, begin_snapshot_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE fragments (
    fragment_id       INTEGER PRIMARY KEY,
    table_id          INTEGER NOT NULL REFERENCES tables (table_id),
    storage           TEXT    NOT NULL CHECK (storage IN ('parquet', 'inline')),
    path              TEXT    CHECK (path NOT GLOB '*[^a-z0-9.-]*' AND path NOT GLOB '.*' AND path GLOB '*.parquet'),
    row_count         INTEGER NOT NULL CHECK (row_count > 0),
    size_bytes        INTEGER NOT NULL CHECK (size_bytes > 0),
    sha256            TEXT    NOT NULL CHECK (length(sha256) = 64),
    first_row_id      INTEGER NOT NULL CHECK (first_row_id > 0),
    has_row_ids       INTEGER NOT NULL CHECK (has_row_ids IN (0, 1)),
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    CHECK ((path IS NULL) = (storage = 'inline')),
    UNIQUE (table_id, path)
) STRICT;
CREATE INDEX fragments_born ON fragments (table_id, begin_snapshot_id);
CREATE INDEX fragments_gone ON fragments (table_id, end_snapshot_id);

-- The rows of an inline fragment: an Arrow IPC stream whose columns are called f<field_id>.
CREATE TABLE inline_rows (
    fragment_id INTEGER PRIMARY KEY REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    ipc         BLOB    NOT NULL
) STRICT;

CREATE TABLE fragment_statistics (
    fragment_id  INTEGER NOT NULL REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    field_id     INTEGER NOT NULL,
    minimum      TEXT,
    maximum      TEXT,
    null_count   INTEGER CHECK (null_count >= 0),
    exact        INTEGER NOT NULL CHECK (exact IN (0, 1)),
    may_hold_nan INTEGER NOT NULL CHECK (may_hold_nan IN (0, 1)),
    PRIMARY KEY (fragment_id, field_id)
) STRICT, WITHOUT ROWID;

-- Versions of deletion vectors: at most one without an end per fragment.
CREATE TABLE deletion_vectors (
    fragment_id       INTEGER NOT NULL REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    table_id          INTEGER NOT NULL REFERENCES tables (table_id),
    bits              BLOB    NOT NULL,
    cardinality       INTEGER NOT NULL CHECK (cardinality > 0),
    row_count         INTEGER NOT NULL CHECK (row_count >= cardinality),
    crc32             INTEGER NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (fragment_id, begin_snapshot_id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX deletion_vectors_live ON deletion_vectors (fragment_id) WHERE end_snapshot_id IS NULL;
CREATE INDEX deletion_vectors_born ON deletion_vectors (table_id, begin_snapshot_id);

-- Which rows of a source became which rows of a compaction's output. vector_snapshot_id: the begin of the deletion vector that was applied (NULL: none).
CREATE TABLE compositions (
    output_fragment_id INTEGER NOT NULL REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    source_fragment_id INTEGER NOT NULL,
    source_order       INTEGER NOT NULL CHECK (source_order >= 0),
    output_start       INTEGER NOT NULL CHECK (output_start >= 0),
    live_count         INTEGER NOT NULL CHECK (live_count > 0),
    physical_count     INTEGER NOT NULL CHECK (physical_count >= live_count),
    vector_snapshot_id INTEGER,
    ordered            INTEGER NOT NULL CHECK (ordered IN (0, 1)),
    PRIMARY KEY (output_fragment_id, source_order)
) STRICT, WITHOUT ROWID;

INSERT INTO counters (name, next_id) VALUES ('table', 1), ('field', 1), ('schema', 2), ('fragment', 1), ('row', 1);
INSERT INTO schemas (schema_id, name, begin_snapshot_id) VALUES (1, 'main', 0);
