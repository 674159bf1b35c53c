-- The columns of adopted files.

-- name: add_adopted_column
INSERT INTO adopted_columns (table_id, fragment_id, field_id, name, value, type) VALUES (:table_id, :fragment_id, :field_id, :name, :value, :type);

-- name: adopted_columns
SELECT c.fragment_id, c.field_id, c.name, c.value, c.type
FROM fragment_lives l JOIN adopted_columns c ON c.table_id = l.table_id AND c.fragment_id = l.fragment_id
WHERE l.table_id = :table_id AND l.branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot)
  AND l.begin_snapshot_id > :after AND l.begin_snapshot_id <= :snapshot AND (l.end_snapshot_id IS NULL OR l.end_snapshot_id > :snapshot)
ORDER BY c.fragment_id, c.field_id;

-- name: adopted_columns_of
SELECT fragment_id, field_id, name, value, type FROM adopted_columns
WHERE table_id = :table_id AND fragment_id IN (SELECT value FROM json_each(:fragments)) ORDER BY fragment_id, field_id;
