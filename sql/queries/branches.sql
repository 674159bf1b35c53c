-- Branches and tags.

-- name: branch
-- The living branch of a name, whatever the case of its letters.
SELECT branch_id, name FROM branches WHERE name = :name COLLATE NOCASE AND dropped_snapshot_id IS NULL;

-- name: tag
SELECT snapshot_id FROM tags WHERE name = :name COLLATE NOCASE;

-- name: torn_tables
-- The tables of a snapshot whose rows of then VACUUM may have removed: their names.
SELECT n.name FROM table_lives t JOIN snapshots s ON s.snapshot_id = :snapshot AND s.branch_id = t.branch_id
JOIN table_names n ON n.table_id = t.table_id AND n.branch_id = t.branch_id AND n.begin_snapshot_id <= :snapshot AND (n.end_snapshot_id IS NULL OR n.end_snapshot_id > :snapshot)
WHERE t.begin_snapshot_id <= :snapshot AND (t.end_snapshot_id IS NULL OR t.end_snapshot_id > :snapshot) AND t.oldest_kept_id > :snapshot
  AND NOT EXISTS (SELECT 1 FROM tags g WHERE g.snapshot_id = :snapshot) ORDER BY n.name;

-- name: add_branch
INSERT INTO branches (branch_id, name, base_snapshot_id, first_snapshot_id, oldest_kept_id, created_at_us)
VALUES (:branch, :name, :base, :snapshot, :snapshot, (SELECT committed_at_us FROM snapshots WHERE snapshot_id = :snapshot));

-- name: drop_branch
UPDATE branches SET dropped_snapshot_id = (SELECT max(snapshot_id) FROM snapshots) WHERE branch_id = :branch AND dropped_snapshot_id IS NULL;

-- name: add_tag
INSERT INTO tags (name, snapshot_id, created_at_us) VALUES (:name, :snapshot, :now_us);

-- name: drop_tag
DELETE FROM tags WHERE name = :name COLLATE NOCASE;

-- name: copy_schema_lives
INSERT INTO schema_lives (schema_id, branch_id, begin_snapshot_id) SELECT schema_id, :branch, :snapshot FROM schema_lives
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: copy_table_lives
INSERT INTO table_lives (table_id, branch_id, begin_snapshot_id) SELECT table_id, :branch, :snapshot FROM table_lives
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: copy_table_names
INSERT INTO table_names (table_id, schema_id, name, branch_id, begin_snapshot_id) SELECT table_id, schema_id, name, :branch, :snapshot FROM table_names
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: copy_columns
INSERT INTO columns (table_id, field_id, parent_field_id, position, name, declared_type, stored_type, nullable, default_sql, initial_value, branch_id, begin_snapshot_id) SELECT table_id, field_id, parent_field_id, position, name, declared_type, stored_type, nullable, default_sql, initial_value, :branch, :snapshot FROM columns
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: copy_constraints
INSERT INTO constraints (table_id, position, kind, name, expression, columns, branch_id, begin_snapshot_id) SELECT table_id, position, kind, name, expression, columns, :branch, :snapshot FROM constraints
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: copy_views
INSERT INTO views (table_id, query, names, comments, branch_id, begin_snapshot_id) SELECT table_id, query, names, comments, :branch, :snapshot FROM views
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: copy_comments
INSERT INTO comments (table_id, field_id, comment, branch_id, begin_snapshot_id) SELECT table_id, field_id, comment, :branch, :snapshot FROM comments
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: copy_fragment_lives
-- By the tables that are there: an index of all fragments by branch would cost every INSERT.
INSERT INTO fragment_lives (fragment_id, table_id, branch_id, begin_snapshot_id) SELECT l.fragment_id, l.table_id, :branch, :snapshot
FROM table_lives t CROSS JOIN fragment_lives l ON l.table_id = t.table_id AND l.branch_id = t.branch_id
WHERE t.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND t.begin_snapshot_id <= :base AND (t.end_snapshot_id IS NULL OR t.end_snapshot_id > :base)
  AND l.begin_snapshot_id <= :base AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :base);

-- name: copy_deletion_vectors
INSERT INTO deletion_vectors (fragment_id, table_id, bits, cardinality, row_count, crc32, branch_id, begin_snapshot_id) SELECT v.fragment_id, v.table_id, v.bits, v.cardinality, v.row_count, v.crc32, :branch, :snapshot
FROM table_lives t CROSS JOIN deletion_vectors v ON v.table_id = t.table_id AND v.branch_id = t.branch_id
WHERE t.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND t.begin_snapshot_id <= :base AND (t.end_snapshot_id IS NULL OR t.end_snapshot_id > :base)
  AND v.begin_snapshot_id <= :base AND (v.end_snapshot_id IS NULL OR v.end_snapshot_id > :base);

-- name: copy_table_options
INSERT INTO table_options (table_id, name, value, branch_id, begin_snapshot_id) SELECT table_id, name, value, :branch, :snapshot FROM table_options
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: copy_partition_keys
INSERT INTO partition_keys (table_id, position, field_id, transform, buckets, branch_id, begin_snapshot_id) SELECT table_id, position, field_id, transform, buckets, :branch, :snapshot FROM partition_keys
WHERE branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :base)
  AND begin_snapshot_id <= :base AND (end_snapshot_id IS NULL OR end_snapshot_id > :base);

-- name: living_branches
SELECT branch_id FROM branches WHERE dropped_snapshot_id IS NULL;

-- name: merge_choices
-- What was chosen for rows of a merge: a JSON list.
SELECT json_group_array(json_object('row_id', row_id, 'ours', ours, 'theirs', theirs, 'resolution', resolution))
FROM merge_choices WHERE ours_branch_id = :ours AND theirs_branch_id = :theirs;

-- name: drop_merge_choices
DELETE FROM merge_choices WHERE ours_branch_id = :ours AND theirs_branch_id = :theirs
  AND row_id IN (SELECT json_extract(value, '$.row_id') FROM json_each(:choices));

-- name: forget_merge_choices
-- All that were made for a merge that lands: of the branch that the snapshot :merged is of.
DELETE FROM merge_choices WHERE ours_branch_id = :ours AND theirs_branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :merged);

-- name: add_merge_choices
INSERT INTO merge_choices (ours_branch_id, theirs_branch_id, row_id, ours, theirs, resolution)
SELECT :ours, :theirs, json_extract(value, '$.row_id'), json_extract(value, '$.ours'), json_extract(value, '$.theirs'), json_extract(value, '$.resolution')
FROM json_each(:choices) WHERE json_extract(value, '$.resolution') IS NOT NULL;
