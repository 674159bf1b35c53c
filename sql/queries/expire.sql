-- VACUUM: what no kept snapshot can reach. :floor is the oldest snapshot that stays readable.

-- name: floor_by_time
SELECT coalesce(
    (SELECT snapshot_id FROM snapshots WHERE committed_at_us <= :time_us AND branch = 'main' ORDER BY committed_at_us DESC LIMIT 1),
    (SELECT min(snapshot_id) FROM snapshots WHERE branch = 'main'));

-- name: expired_files
SELECT table_id, path, size_bytes FROM fragments WHERE end_snapshot_id <= :floor AND path IS NOT NULL AND (:table_id IS NULL OR table_id = :table_id);

-- name: expired_counts
SELECT (SELECT count(*) FROM snapshots WHERE snapshot_id < :floor),
       (SELECT count(*) FROM fragments WHERE end_snapshot_id <= :floor AND (:table_id IS NULL OR table_id = :table_id));

-- name: delete_fragments
DELETE FROM fragments WHERE end_snapshot_id <= :floor AND (:table_id IS NULL OR table_id = :table_id);

-- name: delete_vectors
-- A compaction may have read a version that is older than what any reader needs: it stays for as long as the source does.
DELETE FROM deletion_vectors WHERE end_snapshot_id <= :floor AND (:table_id IS NULL OR table_id = :table_id)
AND NOT EXISTS (SELECT 1 FROM compositions c WHERE c.source_fragment_id = deletion_vectors.fragment_id AND c.vector_snapshot_id = deletion_vectors.begin_snapshot_id);

-- name: set_oldest_kept
UPDATE tables SET oldest_kept_id = max(oldest_kept_id, :floor) WHERE table_id = :table_id;

-- name: delete_columns
DELETE FROM columns WHERE end_snapshot_id <= :floor;

-- name: delete_constraints
DELETE FROM constraints WHERE end_snapshot_id <= :floor;

-- name: delete_views
DELETE FROM views WHERE end_snapshot_id <= :floor;

-- name: delete_comments
DELETE FROM comments WHERE end_snapshot_id <= :floor;

-- name: delete_options
DELETE FROM table_options WHERE end_snapshot_id <= :floor;

-- name: delete_partition_keys
DELETE FROM partition_keys WHERE end_snapshot_id <= :floor;

-- name: delete_table_names
DELETE FROM table_names WHERE end_snapshot_id <= :floor;

-- name: delete_tables
DELETE FROM tables WHERE end_snapshot_id <= :floor;

-- name: delete_schemas
DELETE FROM schemas WHERE end_snapshot_id <= :floor;

-- name: delete_snapshots
DELETE FROM snapshots WHERE snapshot_id < :floor;
