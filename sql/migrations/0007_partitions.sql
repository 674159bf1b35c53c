-- The limits that a table has itself, instead of the lake's or the connection's.
CREATE TABLE table_options (
    table_id          INTEGER NOT NULL REFERENCES tables (table_id) ON DELETE CASCADE,
    name              TEXT    NOT NULL,
    value             TEXT    NOT NULL,
    branch_id         INTEGER NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (table_id, name, begin_snapshot_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX table_options_of_branch ON table_options (branch_id, end_snapshot_id);

-- What the rows of each file of a table share, in the order of PARTITIONED BY. buckets: of bucket(n, c).
CREATE TABLE partition_keys (
    table_id          INTEGER NOT NULL REFERENCES tables (table_id) ON DELETE CASCADE,
    position          INTEGER NOT NULL CHECK (position >= 0),
    field_id          INTEGER NOT NULL,
    transform         TEXT    NOT NULL CHECK (transform IN ('identity', 'year', 'month', 'day', 'hour', 'bucket')),
    buckets           INTEGER CHECK ((buckets IS NOT NULL) = (transform = 'bucket')),
    branch_id         INTEGER NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (table_id, position, begin_snapshot_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX partition_keys_of_branch ON partition_keys (branch_id, end_snapshot_id);

-- Of a fragment that holds one partition: each value as text (NULL: NULL), with the key that was in force when it was written.
CREATE TABLE fragment_partitions (
    fragment_id INTEGER NOT NULL REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    position    INTEGER NOT NULL CHECK (position >= 0),
    field_id    INTEGER NOT NULL,
    transform   TEXT    NOT NULL,
    buckets     INTEGER,
    value       TEXT,
    PRIMARY KEY (fragment_id, position)
) STRICT, WITHOUT ROWID;
