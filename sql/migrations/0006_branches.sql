-- Branches. What is immutable is split from where it lives: a row with begin_snapshot_id b, end_snapshot_id e and branch_id r is part of
-- those snapshots of branch r that are b <= s < e. Snapshots are numbered across all branches, and each belongs to one.
-- A new branch begins with a snapshot of its own, on which all that lives at its base begins once more: the same ids, the same files.
-- (Tables that others refer to are made anew, with foreign keys off: to drop or rename a column takes SQLite 2 ms, at each opening of a lake.)

-- base_snapshot_id: the snapshot that it was made from, which is first_snapshot_id's parent. oldest_kept_id: VACUUM has removed the
-- branch's older snapshots, but for those that a tag or the base of a merge holds. dropped_snapshot_id: the newest one of the lake when it was dropped.
CREATE TABLE branches (
    branch_id           INTEGER PRIMARY KEY,
    name                TEXT    NOT NULL CHECK (name <> ''),
    base_snapshot_id    INTEGER,
    first_snapshot_id   INTEGER NOT NULL,
    oldest_kept_id      INTEGER NOT NULL,
    created_at_us       INTEGER NOT NULL,
    dropped_snapshot_id INTEGER
) STRICT;
CREATE UNIQUE INDEX branches_by_name ON branches (name COLLATE NOCASE) WHERE dropped_snapshot_id IS NULL;
INSERT INTO branches (branch_id, name, first_snapshot_id, oldest_kept_id, created_at_us)
SELECT 1, 'main', 0, coalesce(min(snapshot_id), 0), coalesce(min(committed_at_us), CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) FROM snapshots;

CREATE TABLE tags (
    name          TEXT    PRIMARY KEY COLLATE NOCASE CHECK (name <> ''),
    snapshot_id   INTEGER NOT NULL REFERENCES snapshots (snapshot_id),
    created_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_by_snapshot ON tags (snapshot_id);

-- merge_parent_id: the snapshot of another branch that a MERGE BRANCH took in.
CREATE TABLE held AS SELECT * FROM snapshots;
DROP TABLE snapshots;
CREATE TABLE snapshots (
    snapshot_id      INTEGER PRIMARY KEY CHECK (snapshot_id >= 0),
    parent_id        INTEGER CHECK (parent_id < snapshot_id),
    merge_parent_id  INTEGER CHECK (merge_parent_id < snapshot_id),
    branch_id        INTEGER NOT NULL,
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
INSERT INTO snapshots
SELECT snapshot_id, parent_id, NULL, 1, committed_at_us, author, message, operation, statements, isolation, base_snapshot_id, attempts, transaction_id, blind
FROM held;
DROP TABLE held;
CREATE INDEX snapshots_by_time ON snapshots (committed_at_us); -- grows with snapshot_id, without two alike
CREATE INDEX snapshots_of_branch ON snapshots (branch_id);
CREATE INDEX snapshots_of_merges ON snapshots (merge_parent_id) WHERE merge_parent_id IS NOT NULL;

CREATE TABLE held AS SELECT * FROM counters;
DROP TABLE counters;
CREATE TABLE counters (
    name    TEXT PRIMARY KEY CHECK (name IN ('table', 'field', 'schema', 'fragment', 'row', 'snapshot', 'branch')),
    next_id INTEGER NOT NULL CHECK (next_id > 0)
) STRICT, WITHOUT ROWID;
INSERT INTO counters (name, next_id) SELECT name, next_id FROM held;
INSERT INTO counters (name, next_id) SELECT 'snapshot', coalesce(max(snapshot_id), 0) + 1 FROM snapshots;
INSERT INTO counters (name, next_id) VALUES ('branch', 2);
DROP TABLE held;

CREATE TABLE schema_lives (
    schema_id         INTEGER NOT NULL REFERENCES schemas (schema_id) ON DELETE CASCADE,
    branch_id         INTEGER NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (schema_id, begin_snapshot_id)
) STRICT, WITHOUT ROWID;
INSERT INTO schema_lives SELECT schema_id, 1, begin_snapshot_id, end_snapshot_id FROM schemas;
CREATE TABLE held AS SELECT schema_id, name FROM schemas;
DROP TABLE schemas;
CREATE TABLE schemas (
    schema_id INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL CHECK (name <> '')
) STRICT;
INSERT INTO schemas SELECT schema_id, name FROM held;
DROP TABLE held;

-- oldest_kept_id: VACUUM t: older snapshots of the branch no longer hold this table's rows.
CREATE TABLE table_lives (
    table_id          INTEGER NOT NULL REFERENCES tables (table_id) ON DELETE CASCADE,
    branch_id         INTEGER NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    oldest_kept_id    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (table_id, begin_snapshot_id)
) STRICT, WITHOUT ROWID;
INSERT INTO table_lives SELECT table_id, 1, begin_snapshot_id, end_snapshot_id, oldest_kept_id FROM tables;
DROP TABLE tables;
CREATE TABLE tables (
    table_id INTEGER PRIMARY KEY
) STRICT;
INSERT INTO tables SELECT DISTINCT table_id FROM table_lives;

-- born_snapshot_id: the snapshot that brought the fragment, on whatever branch.
CREATE TABLE fragment_lives (
    fragment_id       INTEGER NOT NULL REFERENCES fragments (fragment_id) ON DELETE CASCADE,
    table_id          INTEGER NOT NULL,
    branch_id         INTEGER NOT NULL,
    begin_snapshot_id INTEGER NOT NULL,
    end_snapshot_id   INTEGER CHECK (end_snapshot_id > begin_snapshot_id),
    PRIMARY KEY (fragment_id, begin_snapshot_id)
) STRICT, WITHOUT ROWID;
INSERT INTO fragment_lives SELECT fragment_id, table_id, 1, begin_snapshot_id, end_snapshot_id FROM fragments;
CREATE INDEX fragment_lives_born ON fragment_lives (table_id, branch_id, begin_snapshot_id);
CREATE INDEX fragment_lives_gone ON fragment_lives (table_id, branch_id, end_snapshot_id);
CREATE TABLE held AS SELECT * FROM fragments;
DROP TABLE fragments;
CREATE TABLE fragments (
    fragment_id      INTEGER PRIMARY KEY,
    table_id         INTEGER NOT NULL REFERENCES tables (table_id),
    storage          TEXT    NOT NULL CHECK (storage IN ('parquet', 'inline')),
    path             TEXT    CHECK (path NOT GLOB '*[^a-z0-9.-]*' AND path NOT GLOB '.*' AND path GLOB '*.parquet'),
    row_count        INTEGER NOT NULL CHECK (row_count > 0),
    size_bytes       INTEGER NOT NULL CHECK (size_bytes > 0),
    sha256           TEXT    NOT NULL CHECK (length(sha256) = 64),
    first_row_id     INTEGER NOT NULL CHECK (first_row_id > 0),
    has_row_ids      INTEGER NOT NULL CHECK (has_row_ids IN (0, 1)),
    born_snapshot_id INTEGER NOT NULL,
    CHECK ((path IS NULL) = (storage = 'inline')),
    UNIQUE (table_id, path)
) STRICT;
INSERT INTO fragments
SELECT fragment_id, table_id, storage, path, row_count, size_bytes, sha256, first_row_id, has_row_ids, begin_snapshot_id FROM held;
DROP TABLE held;

ALTER TABLE table_names ADD COLUMN branch_id INTEGER NOT NULL DEFAULT 1;
ALTER TABLE columns ADD COLUMN branch_id INTEGER NOT NULL DEFAULT 1;
ALTER TABLE constraints ADD COLUMN branch_id INTEGER NOT NULL DEFAULT 1;
ALTER TABLE views ADD COLUMN branch_id INTEGER NOT NULL DEFAULT 1;
ALTER TABLE comments ADD COLUMN branch_id INTEGER NOT NULL DEFAULT 1;

-- What a snapshot holds is looked up by its branch: what ended earlier, and what other branches hold, is not read.
CREATE INDEX schema_lives_of_branch ON schema_lives (branch_id, end_snapshot_id);
CREATE INDEX table_lives_of_branch ON table_lives (branch_id, end_snapshot_id);
CREATE INDEX table_names_of_branch ON table_names (branch_id, end_snapshot_id);
CREATE INDEX columns_of_branch ON columns (branch_id, end_snapshot_id);
CREATE INDEX constraints_of_branch ON constraints (branch_id, end_snapshot_id);
CREATE INDEX views_of_branch ON views (branch_id, end_snapshot_id);
CREATE INDEX comments_of_branch ON comments (branch_id, end_snapshot_id);

ALTER TABLE deletion_vectors ADD COLUMN branch_id INTEGER NOT NULL DEFAULT 1;
DROP INDEX deletion_vectors_live;
CREATE UNIQUE INDEX deletion_vectors_live ON deletion_vectors (fragment_id, branch_id) WHERE end_snapshot_id IS NULL;
