-- The columns of adopted files.

-- name: add_adopted_column
INSERT INTO adopted_columns (table_id, fragment_id, field_id, name, value, type) VALUES (:table_id, :fragment_id, :field_id, :name, :value, :type);

-- name: adopted_columns
SELECT fragment_id, field_id, name, value, type FROM adopted_columns WHERE table_id = :table_id ORDER BY fragment_id, field_id;
