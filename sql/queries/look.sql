-- What the system views of schema `lake` show; the order of the columns is that of catalog/system.py.
-- Views of history are read from one snapshot (:after, without it) to another (:until).

-- name: look_snapshots
SELECT s.snapshot_id, s.parent_id, b.name, s.committed_at_us, s.author, s.message, s.operation, s.statements, s.isolation, s.base_snapshot_id,
       s.attempts, s.transaction_id, coalesce(sum(e.rows_added), 0), coalesce(sum(e.rows_removed), 0), s.merge_parent_id
FROM snapshots s JOIN branches b ON b.branch_id = s.branch_id LEFT JOIN effects e ON e.snapshot_id = s.snapshot_id
WHERE s.snapshot_id > :after AND s.snapshot_id <= :until
GROUP BY s.snapshot_id ORDER BY s.snapshot_id;

-- name: look_deletion_vectors
SELECT fragment_id, begin_snapshot_id, cardinality, table_id
FROM deletion_vectors WHERE begin_snapshot_id > :after AND begin_snapshot_id <= :until ORDER BY begin_snapshot_id, fragment_id;

-- name: look_compositions
SELECT c.output_fragment_id, c.source_fragment_id, c.source_order, c.output_start, c.live_count, c.physical_count, c.ordered, f.born_snapshot_id, f.table_id
FROM compositions c JOIN fragments f ON f.fragment_id = c.output_fragment_id
WHERE f.born_snapshot_id > :after AND f.born_snapshot_id <= :until ORDER BY c.output_fragment_id, c.source_order;

-- name: look_resolutions
SELECT r.snapshot_id, r.winner_snapshot_id, n.name, r.rung, r.row_count, r.explanation, s.name, r.table_id
FROM resolutions r JOIN snapshots x ON x.snapshot_id = r.snapshot_id
LEFT JOIN table_names n ON n.table_id = r.table_id
     AND n.begin_snapshot_id = (SELECT max(o.begin_snapshot_id) FROM table_names o WHERE o.table_id = r.table_id AND o.branch_id = x.branch_id AND o.begin_snapshot_id <= r.snapshot_id)
LEFT JOIN schemas s ON s.schema_id = n.schema_id
WHERE r.snapshot_id > :after AND r.snapshot_id <= :until ORDER BY r.snapshot_id, r.winner_snapshot_id, r.table_id;

-- name: look_fragments
-- :changed is a JSON list of table ids: the fragments of those alone, or of all others.
SELECT f.fragment_id, f.storage, CASE WHEN f.path IS NOT NULL THEN 'data/' || f.table_id || '/' || f.path END, f.row_count, coalesce(v.cardinality, 0),
       f.size_bytes, f.born_snapshot_id, f.table_id,
       (SELECT group_concat(part, ', ') FROM (
            SELECT CASE p.transform WHEN 'identity' THEN c.name WHEN 'bucket' THEN 'bucket(' || p.buckets || ', ' || c.name || ')'
                   ELSE p.transform || '(' || c.name || ')' END || ' = ' || coalesce(p.value, 'NULL') AS part
            FROM fragment_partitions p JOIN columns c
                 ON c.table_id = f.table_id AND c.field_id = p.field_id AND c.branch_id = l.branch_id AND c.begin_snapshot_id <= :snapshot AND (c.end_snapshot_id IS NULL OR c.end_snapshot_id > :snapshot)
            WHERE p.fragment_id = f.fragment_id ORDER BY p.position))
FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id LEFT JOIN deletion_vectors v
     ON v.fragment_id = l.fragment_id AND v.branch_id = l.branch_id AND v.begin_snapshot_id <= :snapshot AND (v.end_snapshot_id IS NULL OR v.end_snapshot_id > :snapshot)
WHERE l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND l.begin_snapshot_id <= :snapshot AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :snapshot)
  AND (f.table_id IN (SELECT value FROM json_each(:changed))) = :of_changed ORDER BY f.fragment_id;

-- name: look_tables
SELECT f.table_id, sum(f.row_count) - coalesce(sum(v.cardinality), 0), count(*), coalesce(sum(v.cardinality), 0), sum(f.size_bytes)
FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id LEFT JOIN deletion_vectors v
     ON v.fragment_id = l.fragment_id AND v.branch_id = l.branch_id AND v.begin_snapshot_id <= :snapshot AND (v.end_snapshot_id IS NULL OR v.end_snapshot_id > :snapshot)
WHERE l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND l.begin_snapshot_id <= :snapshot AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :snapshot) GROUP BY f.table_id;

-- name: look_expired
-- What differs once VACUUM has removed rows that views of history show.
SELECT (SELECT min(snapshot_id) FROM snapshots), (SELECT sum(oldest_kept_id) FROM branches), (SELECT count(*) FROM branches),
       (SELECT coalesce(sum(oldest_kept_id), 0) FROM table_lives);

-- name: look_branches
SELECT name, (SELECT max(s.snapshot_id) FROM snapshots s WHERE s.branch_id = b.branch_id), base_snapshot_id, created_at_us
FROM branches b WHERE dropped_snapshot_id IS NULL ORDER BY branch_id;

-- name: look_tags
SELECT t.name, t.snapshot_id, b.name, t.created_at_us FROM tags t JOIN snapshots s ON s.snapshot_id = t.snapshot_id JOIN branches b ON b.branch_id = s.branch_id
ORDER BY t.name;
