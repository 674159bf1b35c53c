-- Reading the catalog. Each statement is named by the line above it; parameters are named.
-- A snapshot says which branch it is of: what holds at it are that branch's rows that begin at it or before, and end after it or never.

-- name: head
SELECT (SELECT max(snapshot_id) FROM snapshots WHERE branch_id = :branch) FROM branches WHERE branch_id = :branch AND dropped_snapshot_id IS NULL;

-- name: newest
SELECT max(snapshot_id) FROM snapshots;

-- name: is_kept_version
-- Whether the snapshot is there, the newest one of the lake, and the oldest one that is kept of main.
SELECT EXISTS (SELECT 1 FROM snapshots WHERE snapshot_id = :snapshot), (SELECT max(snapshot_id) FROM snapshots),
       (SELECT oldest_kept_id FROM branches WHERE branch_id = 1);

-- name: branch_of
SELECT b.branch_id, b.name FROM snapshots s JOIN branches b ON b.branch_id = s.branch_id WHERE s.snapshot_id = :snapshot;

-- name: oldest_snapshot
-- The oldest kept one that led to :base, on its branch or on those that it comes from.
WITH RECURSIVE line (branch_id, until) AS (
    SELECT branch_id, snapshot_id FROM snapshots WHERE snapshot_id = :base
    UNION ALL SELECT s.branch_id, b.base_snapshot_id
    FROM line JOIN branches b ON b.branch_id = line.branch_id JOIN snapshots s ON s.snapshot_id = b.base_snapshot_id)
SELECT s.snapshot_id, s.committed_at_us FROM line JOIN branches b ON b.branch_id = line.branch_id JOIN snapshots s ON s.snapshot_id = b.oldest_kept_id
ORDER BY s.snapshot_id LIMIT 1;

-- name: snapshot_at_time
-- The newest one at a time, of those that led to :base.
WITH RECURSIVE line (branch_id, until) AS (
    SELECT branch_id, snapshot_id FROM snapshots WHERE snapshot_id = :base
    UNION ALL SELECT s.branch_id, b.base_snapshot_id
    FROM line JOIN branches b ON b.branch_id = line.branch_id JOIN snapshots s ON s.snapshot_id = b.base_snapshot_id)
SELECT max((SELECT s.snapshot_id FROM snapshots s
            WHERE s.committed_at_us <= :time_us AND +s.branch_id = line.branch_id AND +s.snapshot_id <= line.until ORDER BY s.committed_at_us DESC LIMIT 1))
FROM line;

-- name: snapshot_of_transaction
SELECT snapshot_id FROM snapshots WHERE transaction_id = :transaction_id;

-- name: history
WITH RECURSIVE line (branch_id, until) AS (
    SELECT branch_id, snapshot_id FROM snapshots WHERE snapshot_id = :base
    UNION ALL SELECT s.branch_id, b.base_snapshot_id
    FROM line JOIN branches b ON b.branch_id = line.branch_id JOIN snapshots s ON s.snapshot_id = b.base_snapshot_id)
SELECT s.snapshot_id, s.committed_at_us, s.author, s.message, s.operation, s.statements, s.isolation, s.base_snapshot_id, s.attempts, s.transaction_id,
       coalesce(sum(e.rows_added), 0), coalesce(sum(e.rows_removed), 0),
       (SELECT group_concat(r.explanation, '; ') FROM resolutions r WHERE r.snapshot_id = s.snapshot_id)
FROM line JOIN snapshots s ON s.branch_id = line.branch_id AND s.snapshot_id <= line.until LEFT JOIN effects e ON e.snapshot_id = s.snapshot_id
WHERE :table_id IS NULL OR e.table_id = :table_id
GROUP BY s.snapshot_id ORDER BY s.snapshot_id DESC LIMIT :limit;

-- name: schemas
SELECT s.schema_id, s.name FROM schemas s JOIN schema_lives l ON l.schema_id = s.schema_id
WHERE l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND l.begin_snapshot_id <= :snapshot AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :snapshot);

-- name: tables
SELECT n.table_id, n.schema_id, s.name, n.name
FROM table_names n JOIN schemas s ON s.schema_id = n.schema_id
WHERE n.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND n.begin_snapshot_id <= :snapshot AND (n.end_snapshot_id IS NULL OR n.end_snapshot_id > :snapshot);

-- name: views
SELECT table_id, query, names, comments FROM views
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot) AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot);

-- name: comments
SELECT table_id, field_id, comment FROM comments
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot) AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot);

-- name: options
SELECT table_id, name, value FROM table_options
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot) AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY table_id, name;

-- name: partition_keys
SELECT table_id, field_id, transform, buckets
FROM partition_keys
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY table_id, position;

-- name: columns
SELECT table_id, field_id, parent_field_id, name, declared_type, stored_type, nullable, default_sql, initial_value
FROM columns WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY table_id, position;

-- name: constraints
SELECT table_id, kind, name, expression, columns
FROM constraints WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY table_id, position;

-- name: columns_between
-- The columns that a table had in any of the snapshots from :first to :last, and from when to when.
SELECT table_id, field_id, parent_field_id, name, declared_type, stored_type, nullable, default_sql, initial_value, begin_snapshot_id, end_snapshot_id
FROM columns WHERE table_id = :table_id AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :last)
  AND begin_snapshot_id <= :last AND (end_snapshot_id IS NULL OR end_snapshot_id > :first)
ORDER BY position;

-- name: namesake
-- The newest other table that had this name (folded) in any of the snapshots from :first to :last: when it got it, and when it lost it.
SELECT n.begin_snapshot_id, n.end_snapshot_id FROM table_names n JOIN schemas s ON s.schema_id = n.schema_id
WHERE n.table_id <> :table_id AND n.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :last) AND lower(n.name) = :name AND lower(s.name) = :schema AND n.begin_snapshot_id <= :last AND n.end_snapshot_id > :first
ORDER BY n.end_snapshot_id DESC LIMIT 1;

-- name: fragments
SELECT f.fragment_id, f.table_id, f.storage, f.path, f.row_count, f.size_bytes, f.sha256, f.first_row_id, f.has_row_ids, f.born_snapshot_id
FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id
WHERE l.table_id = :table_id AND l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND l.begin_snapshot_id <= :snapshot AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :snapshot)
ORDER BY l.fragment_id;

-- name: fragments_born
SELECT f.fragment_id, f.table_id, f.storage, f.path, f.row_count, f.size_bytes, f.sha256, f.first_row_id, f.has_row_ids, f.born_snapshot_id
FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id
WHERE l.table_id = :table_id AND l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND l.begin_snapshot_id > :after AND l.begin_snapshot_id <= :snapshot AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :snapshot)
ORDER BY l.fragment_id;

-- name: fragments_gone
SELECT fragment_id FROM fragment_lives
WHERE table_id = :table_id AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot) AND end_snapshot_id > :after AND end_snapshot_id <= :snapshot;

-- name: statistics
SELECT s.fragment_id, s.field_id, s.minimum, s.maximum, s.null_count, s.exact, s.may_hold_nan
FROM fragment_lives l JOIN fragment_statistics s ON s.fragment_id = l.fragment_id
WHERE l.table_id = :table_id AND l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND l.begin_snapshot_id > :after AND l.begin_snapshot_id <= :snapshot AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :snapshot);

-- name: partitions
SELECT p.fragment_id, p.field_id, p.transform, p.buckets, p.value
FROM fragment_lives l JOIN fragment_partitions p ON p.fragment_id = l.fragment_id
WHERE l.table_id = :table_id AND l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND l.begin_snapshot_id > :after AND l.begin_snapshot_id <= :snapshot AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :snapshot)
ORDER BY p.fragment_id, p.position;

-- name: vectors
SELECT fragment_id, bits, cardinality, row_count, crc32, begin_snapshot_id
FROM deletion_vectors WHERE table_id = :table_id AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND begin_snapshot_id > :after AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot);

-- name: table_born
-- Since when the table is on the branch of :snapshot, the branch's first snapshot, and the one that it was made from.
SELECT (SELECT min(begin_snapshot_id) FROM table_lives l WHERE l.table_id = :table_id AND l.branch_id = b.branch_id), b.first_snapshot_id, b.base_snapshot_id
FROM snapshots s JOIN branches b ON b.branch_id = s.branch_id WHERE s.snapshot_id = :snapshot;

-- name: table_effects
SELECT e.snapshot_id, e.kinds FROM effects e JOIN snapshots s ON s.snapshot_id = e.snapshot_id
WHERE e.table_id = :table_id AND e.snapshot_id BETWEEN :first AND :last AND s.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :last);

-- name: fragments_touched
-- The fragments of a table that came, went, or lost rows in the snapshots from :first to :last.
SELECT f.fragment_id, f.table_id, f.storage, f.path, f.row_count, f.size_bytes, f.sha256, f.first_row_id, f.has_row_ids, l.begin_snapshot_id, l.end_snapshot_id
FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id
WHERE l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :last) AND l.fragment_id IN (
    SELECT fragment_id FROM fragment_lives WHERE table_id = :table_id AND begin_snapshot_id BETWEEN :first AND :last
    UNION ALL SELECT fragment_id FROM fragment_lives WHERE table_id = :table_id AND end_snapshot_id BETWEEN :first AND :last
    UNION ALL SELECT fragment_id FROM deletion_vectors WHERE table_id = :table_id AND begin_snapshot_id BETWEEN :first AND :last)
ORDER BY l.fragment_id;

-- name: vectors_touched
-- Their deletion vectors, from the ones that were in force before :first on, each fragment's in order.
SELECT fragment_id, bits, cardinality, row_count, crc32, begin_snapshot_id
FROM deletion_vectors WHERE fragment_id IN (SELECT value FROM json_each(:fragments)) AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :last)
  AND begin_snapshot_id <= :last AND (end_snapshot_id IS NULL OR end_snapshot_id >= :first)
ORDER BY fragment_id, begin_snapshot_id;

-- name: deaths
-- Every version of the deletion vectors that came in (base, head], also those that were replaced since, oldest first.
SELECT fragment_id, bits, cardinality, row_count, crc32, begin_snapshot_id FROM deletion_vectors
WHERE table_id = :table_id AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :head) AND begin_snapshot_id > :base AND begin_snapshot_id <= :head
ORDER BY begin_snapshot_id;

-- name: ends
SELECT fragment_id, end_snapshot_id FROM fragment_lives
WHERE table_id = :table_id AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :head) AND end_snapshot_id > :base AND end_snapshot_id <= :head;

-- name: inline_rows
SELECT i.ipc, f.sha256 FROM inline_rows i JOIN fragments f ON f.fragment_id = i.fragment_id WHERE i.fragment_id = :fragment_id;

-- name: winners
SELECT snapshot_id, parent_id, committed_at_us, author, statements, operation, blind, transaction_id FROM snapshots
WHERE snapshot_id > :base AND snapshot_id <= :head AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :head) ORDER BY snapshot_id;

-- name: with_parent
SELECT parent_id, snapshot_id FROM snapshots WHERE snapshot_id = :snapshot;

-- name: effects
SELECT e.snapshot_id, e.table_id, e.kinds, e.rows_added, e.rows_removed FROM effects e JOIN snapshots s ON s.snapshot_id = e.snapshot_id
WHERE e.snapshot_id > :base AND e.snapshot_id <= :head AND s.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :head) ORDER BY e.snapshot_id;

-- name: settings
SELECT name, value FROM settings;

-- name: data_files
SELECT table_id, path FROM fragments WHERE path IS NOT NULL;

-- name: row_counts
SELECT coalesce(sum(f.row_count), 0), coalesce(sum(v.cardinality), 0), coalesce(sum(f.storage = 'inline'), 0), coalesce(sum(f.row_count) FILTER (WHERE f.storage = 'inline'), 0),
       count(f.path)
FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id
LEFT JOIN deletion_vectors v ON v.fragment_id = l.fragment_id AND v.branch_id = l.branch_id AND v.end_snapshot_id IS NULL
WHERE l.table_id = :table_id AND l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot) AND l.end_snapshot_id IS NULL;

-- name: compositions
SELECT c.output_fragment_id, f.row_count, c.ordered, c.source_fragment_id, c.source_order, c.output_start, c.live_count, c.physical_count, c.vector_snapshot_id,
       v.bits, v.cardinality, v.row_count, v.crc32
FROM fragment_lives l JOIN compositions c ON c.output_fragment_id = l.fragment_id JOIN fragments f ON f.fragment_id = l.fragment_id
LEFT JOIN deletion_vectors v ON v.fragment_id = c.source_fragment_id AND v.begin_snapshot_id = c.vector_snapshot_id
WHERE l.table_id = :table_id AND l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :head) AND l.begin_snapshot_id > :base AND l.begin_snapshot_id <= :head
ORDER BY c.output_fragment_id, c.source_order;

-- name: blind_births
SELECT f.first_row_id, f.row_count FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id JOIN snapshots s ON s.snapshot_id = l.begin_snapshot_id
WHERE l.table_id = :table_id AND l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :head) AND s.blind = 1 AND l.begin_snapshot_id > :base AND l.begin_snapshot_id <= :head ORDER BY f.first_row_id;

-- name: row_map
SELECT positions FROM row_maps WHERE output_fragment_id = :output;

-- name: oldest_kept
-- The oldest version that could be read instead of :snapshot, of the lake (0 where that is there), and of a table.
SELECT CASE WHEN EXISTS (SELECT 1 FROM snapshots WHERE snapshot_id = :snapshot) THEN 0
            ELSE max(:snapshot + 1, (SELECT oldest_kept_id FROM branches WHERE branch_id = 1)) END,
       CASE WHEN EXISTS (SELECT 1 FROM tags WHERE snapshot_id = :snapshot) THEN 0
            ELSE coalesce((SELECT max(oldest_kept_id) FROM table_lives WHERE table_id = :table_id AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)), 0) END;

-- name: removed_before
-- What a table's branch held before these two snapshots may be gone: of the lake, and of the table.
SELECT b.oldest_kept_id, coalesce((SELECT max(oldest_kept_id) FROM table_lives WHERE table_id = :table_id AND branch_id = b.branch_id), 0)
FROM snapshots s JOIN branches b ON b.branch_id = s.branch_id WHERE s.snapshot_id = :snapshot;
