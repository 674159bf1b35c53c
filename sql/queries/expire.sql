-- VACUUM: what no kept snapshot can reach. :floors is a JSON object: by branch id the oldest snapshot that stays readable (4611686018427387904: none does; without an
-- entry: all do);
-- :points a JSON list of [branch id, snapshot]: older ones that stay all the same. :table_id NULL: all tables.

-- fragment: life_expired
-- No branch holds any more what lived from one snapshot to another.
coalesce(end_snapshot_id, 4611686018427387904) <= coalesce(json_extract(:floors, '$."' || branch_id || '"'), 0)
  AND NOT EXISTS (SELECT 1 FROM json_each(:points) p WHERE json_extract(p.value, '$[0]') = branch_id
                  AND json_extract(p.value, '$[1]') >= begin_snapshot_id AND json_extract(p.value, '$[1]') < coalesce(end_snapshot_id, 4611686018427387904))

-- fragment: snapshot_expired
snapshot_id < coalesce(json_extract(:floors, '$."' || branch_id || '"'), 0)
  AND NOT EXISTS (SELECT 1 FROM json_each(:points) p WHERE json_extract(p.value, '$[1]') = snapshot_id)

-- name: branch_states
-- Every branch, with its newest snapshot, the newest one that had been there at a time, and the first of the newest :versions (NULL: none).
SELECT branch_id, first_snapshot_id, base_snapshot_id, oldest_kept_id, dropped_snapshot_id,
       (SELECT max(s.snapshot_id) FROM snapshots s WHERE s.branch_id = branches.branch_id),
       (SELECT s.snapshot_id FROM snapshots s WHERE s.committed_at_us <= :time_us AND +s.branch_id = branches.branch_id ORDER BY s.committed_at_us DESC LIMIT 1),
       (SELECT s.snapshot_id FROM snapshots s WHERE s.branch_id = branches.branch_id ORDER BY s.snapshot_id DESC LIMIT 1 OFFSET :versions - 1)
FROM branches ORDER BY branch_id;

-- name: newest_until
-- The newest snapshot of a branch that is not newer than another one.
SELECT max(snapshot_id) FROM snapshots WHERE branch_id = :branch AND snapshot_id <= :until;

-- name: lineage
-- The snapshots at which ways part or meet, and :heads (a JSON list): with parents, branch, and the oldest one that is kept of that. Older ones all count.
WITH junctions (snapshot_id) AS (
    SELECT value FROM json_each(:heads)
    UNION SELECT first_snapshot_id FROM branches UNION SELECT base_snapshot_id FROM branches UNION SELECT oldest_kept_id FROM branches
    UNION SELECT snapshot_id FROM snapshots WHERE merge_parent_id IS NOT NULL
    UNION SELECT merge_parent_id FROM snapshots WHERE merge_parent_id IS NOT NULL
    UNION SELECT s.snapshot_id FROM branches b CROSS JOIN snapshots s ON s.branch_id = b.branch_id AND s.snapshot_id < b.oldest_kept_id)
SELECT s.snapshot_id, s.parent_id, s.merge_parent_id, s.branch_id, b.oldest_kept_id
FROM junctions j JOIN snapshots s ON s.snapshot_id = j.snapshot_id JOIN branches b ON b.branch_id = s.branch_id ORDER BY s.snapshot_id;

-- name: tagged
SELECT s.branch_id, t.snapshot_id FROM tags t JOIN snapshots s ON s.snapshot_id = t.snapshot_id;

-- name: expired_fragments
-- Those that no branch holds any more: how many, and of those that are files table, name and bytes.
SELECT f.table_id, f.path, f.size_bytes FROM fragments f
WHERE (:table_id IS NULL OR f.table_id = :table_id) AND NOT EXISTS (SELECT 1 FROM fragment_lives l WHERE l.fragment_id = f.fragment_id AND NOT ({life_expired}));

-- name: expired_snapshots
SELECT count(*) FROM snapshots s WHERE {snapshot_expired};

-- name: delete_fragment_lives
DELETE FROM fragment_lives WHERE (:table_id IS NULL OR table_id = :table_id)
  AND {life_expired};

-- name: delete_fragments
DELETE FROM fragments WHERE (:table_id IS NULL OR table_id = :table_id)
  AND NOT EXISTS (SELECT 1 FROM fragment_lives l WHERE l.fragment_id = fragments.fragment_id);

-- name: delete_vectors
-- A compaction may have read a version that is older than what any reader needs: it stays for as long as the source does.
DELETE FROM deletion_vectors WHERE (:table_id IS NULL OR table_id = :table_id)
  AND {life_expired}
  AND NOT EXISTS (SELECT 1 FROM compositions c WHERE c.source_fragment_id = deletion_vectors.fragment_id AND c.vector_snapshot_id = deletion_vectors.begin_snapshot_id);

-- name: set_table_oldest_kept
UPDATE table_lives SET oldest_kept_id = max(oldest_kept_id, min(coalesce(json_extract(:floors, '$."' || branch_id || '"'), 0), (SELECT max(snapshot_id) FROM snapshots)))
WHERE table_id = :table_id;

-- name: delete_columns
DELETE FROM columns WHERE {life_expired};

-- name: delete_constraints
DELETE FROM constraints WHERE {life_expired};

-- name: delete_views
DELETE FROM views WHERE {life_expired};

-- name: delete_comments
DELETE FROM comments WHERE {life_expired};

-- name: delete_options
DELETE FROM table_options WHERE {life_expired};

-- name: delete_partition_keys
DELETE FROM partition_keys WHERE {life_expired};

-- name: delete_table_names
DELETE FROM table_names WHERE {life_expired};

-- name: delete_table_lives
DELETE FROM table_lives WHERE {life_expired};

-- name: delete_schema_lives
DELETE FROM schema_lives WHERE {life_expired};

-- name: delete_tables
DELETE FROM tables WHERE NOT EXISTS (SELECT 1 FROM table_lives l WHERE l.table_id = tables.table_id);

-- name: delete_schemas
DELETE FROM schemas WHERE NOT EXISTS (SELECT 1 FROM schema_lives l WHERE l.schema_id = schemas.schema_id);

-- name: delete_snapshots
DELETE FROM snapshots WHERE {snapshot_expired};

-- name: set_oldest_kept
UPDATE branches SET oldest_kept_id = max(oldest_kept_id, min(coalesce(json_extract(:floors, '$."' || branch_id || '"'), 0), coalesce(dropped_snapshot_id + 1, 4611686018427387904)));

-- name: delete_branches
DELETE FROM branches WHERE dropped_snapshot_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.branch_id = branches.branch_id);
