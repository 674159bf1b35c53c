-- Reading the catalog. Each statement is named by the line above it; parameters are named.

-- name: head
SELECT max(snapshot_id) FROM snapshots WHERE branch = 'main';

-- name: snapshot_range
SELECT (SELECT min(snapshot_id) FROM snapshots WHERE branch = 'main'), (SELECT max(snapshot_id) FROM snapshots WHERE branch = 'main');

-- name: oldest_snapshot
SELECT snapshot_id, committed_at_us FROM snapshots WHERE branch = 'main' ORDER BY snapshot_id LIMIT 1;

-- name: snapshot_at_time
SELECT (SELECT snapshot_id FROM snapshots WHERE committed_at_us <= :time_us AND branch = 'main' ORDER BY committed_at_us DESC LIMIT 1);

-- name: snapshot_of_transaction
SELECT snapshot_id FROM snapshots WHERE transaction_id = :transaction_id;

-- name: history
SELECT s.snapshot_id, s.committed_at_us, s.author, s.message, s.operation, s.statements, s.isolation, s.base_snapshot_id, s.attempts, s.transaction_id,
       coalesce(sum(e.rows_added), 0), coalesce(sum(e.rows_removed), 0),
       (SELECT group_concat(r.explanation, '; ') FROM resolutions r WHERE r.snapshot_id = s.snapshot_id)
FROM snapshots s LEFT JOIN effects e ON e.snapshot_id = s.snapshot_id
WHERE s.branch = 'main' AND (:table_id IS NULL OR e.table_id = :table_id)
GROUP BY s.snapshot_id ORDER BY s.snapshot_id DESC LIMIT :limit;

-- name: schemas
SELECT schema_id, name FROM schemas WHERE begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot);

-- name: tables
SELECT n.table_id, n.schema_id, s.name, n.name
FROM table_names n JOIN schemas s ON s.schema_id = n.schema_id
WHERE n.begin_snapshot_id <= :snapshot AND (n.end_snapshot_id IS NULL OR n.end_snapshot_id > :snapshot);

-- name: views
SELECT table_id, query, names, comments FROM views WHERE begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot);

-- name: comments
SELECT table_id, field_id, comment FROM comments WHERE begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot);

-- name: options
SELECT table_id, name, value FROM table_options WHERE begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY table_id, name;

-- name: partition_keys
SELECT table_id, field_id, transform, buckets
FROM partition_keys WHERE begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY table_id, position;

-- name: columns
SELECT table_id, field_id, parent_field_id, name, declared_type, stored_type, nullable, default_sql, initial_value
FROM columns WHERE begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY table_id, position;

-- name: constraints
SELECT table_id, kind, name, expression, columns
FROM constraints WHERE begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY table_id, position;

-- name: columns_between
-- The columns that a table had in any of the snapshots from :first to :last, and from when to when.
SELECT table_id, field_id, parent_field_id, name, declared_type, stored_type, nullable, default_sql, initial_value, begin_snapshot_id, end_snapshot_id
FROM columns WHERE table_id = :table_id AND begin_snapshot_id <= :last AND (end_snapshot_id IS NULL OR end_snapshot_id > :first)
ORDER BY position;

-- name: namesake
-- The newest other table that had this name (folded) in any of the snapshots from :first to :last: when it got it, and when it lost it.
SELECT n.begin_snapshot_id, n.end_snapshot_id FROM table_names n JOIN schemas s ON s.schema_id = n.schema_id
WHERE n.table_id <> :table_id AND lower(n.name) = :name AND lower(s.name) = :schema AND n.begin_snapshot_id <= :last AND n.end_snapshot_id > :first
ORDER BY n.end_snapshot_id DESC LIMIT 1;

-- name: fragments
SELECT fragment_id, table_id, storage, path, row_count, size_bytes, sha256, first_row_id, has_row_ids, begin_snapshot_id
FROM fragments WHERE table_id = :table_id AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY fragment_id;

-- name: fragments_born
SELECT fragment_id, table_id, storage, path, row_count, size_bytes, sha256, first_row_id, has_row_ids, begin_snapshot_id
FROM fragments WHERE table_id = :table_id AND begin_snapshot_id > :after AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot)
ORDER BY fragment_id;

-- name: fragments_gone
SELECT fragment_id FROM fragments WHERE table_id = :table_id AND end_snapshot_id > :after AND end_snapshot_id <= :snapshot;

-- name: statistics
SELECT s.fragment_id, s.field_id, s.minimum, s.maximum, s.null_count, s.exact, s.may_hold_nan
FROM fragment_statistics s JOIN fragments f ON f.fragment_id = s.fragment_id
WHERE f.table_id = :table_id AND f.begin_snapshot_id > :after AND f.begin_snapshot_id <= :snapshot AND (f.end_snapshot_id IS NULL OR f.end_snapshot_id > :snapshot);

-- name: partitions
SELECT p.fragment_id, p.field_id, p.transform, p.buckets, p.value
FROM fragment_partitions p JOIN fragments f ON f.fragment_id = p.fragment_id
WHERE f.table_id = :table_id AND f.begin_snapshot_id > :after AND f.begin_snapshot_id <= :snapshot AND (f.end_snapshot_id IS NULL OR f.end_snapshot_id > :snapshot)
ORDER BY p.fragment_id, p.position;

-- name: vectors
SELECT fragment_id, bits, cardinality, row_count, crc32, begin_snapshot_id
FROM deletion_vectors WHERE table_id = :table_id AND begin_snapshot_id > :after AND begin_snapshot_id <= :snapshot AND (end_snapshot_id IS NULL OR end_snapshot_id > :snapshot);

-- name: table_born
SELECT begin_snapshot_id FROM tables WHERE table_id = :table_id;

-- name: table_effects
SELECT snapshot_id, kinds FROM effects WHERE table_id = :table_id AND snapshot_id BETWEEN :first AND :last;

-- name: fragments_touched
-- The fragments of a table that came, went, or lost rows in the snapshots from :first to :last.
SELECT fragment_id, table_id, storage, path, row_count, size_bytes, sha256, first_row_id, has_row_ids, begin_snapshot_id, end_snapshot_id
FROM fragments WHERE fragment_id IN (
    SELECT fragment_id FROM fragments WHERE table_id = :table_id AND begin_snapshot_id BETWEEN :first AND :last
    UNION ALL SELECT fragment_id FROM fragments WHERE table_id = :table_id AND end_snapshot_id BETWEEN :first AND :last
    UNION ALL SELECT fragment_id FROM deletion_vectors WHERE table_id = :table_id AND begin_snapshot_id BETWEEN :first AND :last)
ORDER BY fragment_id;

-- name: vectors_touched
-- Their deletion vectors, from the ones that were in force before :first on, each fragment's in order.
SELECT fragment_id, bits, cardinality, row_count, crc32, begin_snapshot_id
FROM deletion_vectors WHERE fragment_id IN (SELECT value FROM json_each(:fragments))
  AND begin_snapshot_id <= :last AND (end_snapshot_id IS NULL OR end_snapshot_id >= :first)
ORDER BY fragment_id, begin_snapshot_id;

-- name: deaths
-- Every version of the deletion vectors that came in (base, head], also those that were replaced since, oldest first.
SELECT fragment_id, bits, cardinality, row_count, crc32, begin_snapshot_id FROM deletion_vectors
WHERE table_id = :table_id AND begin_snapshot_id > :base AND begin_snapshot_id <= :head ORDER BY begin_snapshot_id;

-- name: ends
SELECT fragment_id, end_snapshot_id FROM fragments WHERE table_id = :table_id AND end_snapshot_id > :base AND end_snapshot_id <= :head;

-- name: inline_rows
SELECT i.ipc, f.sha256 FROM inline_rows i JOIN fragments f ON f.fragment_id = i.fragment_id WHERE i.fragment_id = :fragment_id;

-- name: winners
SELECT snapshot_id, committed_at_us, author, statements, operation, blind, transaction_id FROM snapshots WHERE snapshot_id > :base AND snapshot_id <= :head AND branch = 'main' ORDER BY snapshot_id;

-- name: effects
SELECT snapshot_id, table_id, kinds, rows_added, rows_removed FROM effects WHERE snapshot_id > :base AND snapshot_id <= :head ORDER BY snapshot_id;

-- name: settings
SELECT name, value FROM settings;

-- name: data_files
SELECT table_id, path FROM fragments WHERE path IS NOT NULL;

-- name: row_counts
SELECT coalesce(sum(f.row_count), 0), coalesce(sum(v.cardinality), 0), coalesce(sum(f.storage = 'inline'), 0), coalesce(sum(f.row_count) FILTER (WHERE f.storage = 'inline'), 0),
       count(f.path)
FROM fragments f LEFT JOIN deletion_vectors v ON v.fragment_id = f.fragment_id AND v.end_snapshot_id IS NULL
WHERE f.table_id = :table_id AND f.end_snapshot_id IS NULL;

-- name: compositions
SELECT c.output_fragment_id, f.row_count, c.ordered, c.source_fragment_id, c.source_order, c.output_start, c.live_count, c.physical_count, c.vector_snapshot_id,
       v.bits, v.cardinality, v.row_count, v.crc32
FROM fragments f JOIN compositions c ON c.output_fragment_id = f.fragment_id
LEFT JOIN deletion_vectors v ON v.fragment_id = c.source_fragment_id AND v.begin_snapshot_id = c.vector_snapshot_id
WHERE f.table_id = :table_id AND f.begin_snapshot_id > :base AND f.begin_snapshot_id <= :head
ORDER BY c.output_fragment_id, c.source_order;

-- name: blind_births
SELECT f.first_row_id, f.row_count FROM fragments f JOIN snapshots s ON s.snapshot_id = f.begin_snapshot_id
WHERE f.table_id = :table_id AND s.blind = 1 AND f.begin_snapshot_id > :base AND f.begin_snapshot_id <= :head ORDER BY f.first_row_id;

-- name: row_map
SELECT positions FROM row_maps WHERE output_fragment_id = :output;

-- name: oldest_kept
SELECT (SELECT min(snapshot_id) FROM snapshots), coalesce((SELECT oldest_kept_id FROM tables WHERE table_id = :table_id), 0);
