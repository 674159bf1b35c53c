-- Writing a commit. All of it runs inside one BEGIN IMMEDIATE … COMMIT, under the commit lock.
-- The snapshot comes first: the rest is of its branch.

-- name: reserve
UPDATE counters SET next_id = next_id + :count WHERE name = :name RETURNING next_id - :count;

-- name: add_snapshot
INSERT INTO snapshots (snapshot_id, parent_id, merge_parent_id, branch_id, committed_at_us, author, message, operation, statements, isolation, base_snapshot_id, attempts, transaction_id, blind)
VALUES (:snapshot, :parent, :merged, :branch, max(:now_us, coalesce((SELECT committed_at_us + 1 FROM snapshots WHERE snapshot_id = (SELECT max(snapshot_id) FROM snapshots)), 0)),
        :author, :message, :operation, :statements, :isolation, :base, :attempts, :transaction_id, :blind);

-- name: add_effect
INSERT INTO effects (snapshot_id, table_id, kinds, rows_added, rows_removed) VALUES (:snapshot, :table_id, :kinds, :rows_added, :rows_removed);

-- name: add_read
INSERT INTO reads (snapshot_id, table_id) VALUES (:snapshot, :table_id);

-- name: add_resolution
INSERT INTO resolutions (snapshot_id, winner_snapshot_id, table_id, rung, row_count, explanation) VALUES (:snapshot, :winner, :table_id, :rung, :row_count, :explanation);

-- name: add_schema
INSERT INTO schemas (schema_id, name) VALUES (:schema_id, :name) ON CONFLICT (schema_id) DO NOTHING;

-- name: add_schema_life
INSERT INTO schema_lives (schema_id, branch_id, begin_snapshot_id)
VALUES (:schema_id, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_schema
UPDATE schema_lives SET end_snapshot_id = :snapshot
WHERE schema_id = :schema_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: add_table
INSERT INTO tables (table_id) VALUES (:table_id) ON CONFLICT (table_id) DO NOTHING;

-- name: add_table_life
INSERT INTO table_lives (table_id, branch_id, begin_snapshot_id)
VALUES (:table_id, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_table
UPDATE table_lives SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: add_table_name
INSERT INTO table_names (table_id, schema_id, name, branch_id, begin_snapshot_id)
VALUES (:table_id, :schema_id, :name, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_table_name
UPDATE table_names SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: add_column
INSERT INTO columns (table_id, field_id, parent_field_id, position, name, declared_type, stored_type, nullable, default_sql, initial_value, branch_id, begin_snapshot_id)
VALUES (:table_id, :field_id, :parent, :position, :name, :declared_type, :stored_type, :nullable, :default_sql, :initial,
        (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_columns
UPDATE columns SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: add_constraint
INSERT INTO constraints (table_id, position, kind, name, expression, columns, branch_id, begin_snapshot_id)
VALUES (:table_id, :position, :kind, :name, :expression, :columns, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_constraints
UPDATE constraints SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: add_view
INSERT INTO views (table_id, query, names, comments, branch_id, begin_snapshot_id)
VALUES (:table_id, :text, :names, :comments, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_view
UPDATE views SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: add_comment
INSERT INTO comments (table_id, field_id, comment, branch_id, begin_snapshot_id)
VALUES (:table_id, :field_id, :comment, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_comments
UPDATE comments SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: add_option
INSERT INTO table_options (table_id, name, value, branch_id, begin_snapshot_id)
VALUES (:table_id, :name, :value, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_options
UPDATE table_options SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot) AND end_snapshot_id IS NULL;

-- name: add_partition_key
INSERT INTO partition_keys (table_id, position, field_id, transform, buckets, branch_id, begin_snapshot_id)
VALUES (:table_id, :position, :field_id, :transform, :buckets, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: end_partition_keys
UPDATE partition_keys SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot) AND end_snapshot_id IS NULL;

-- name: add_partition_value
INSERT INTO fragment_partitions (fragment_id, position, field_id, transform, buckets, value)
VALUES (:fragment_id, :position, :field_id, :transform, :buckets, :value);

-- name: add_fragment
INSERT INTO fragments (fragment_id, table_id, storage, path, row_count, size_bytes, sha256, first_row_id, has_row_ids, born_snapshot_id)
VALUES (:fragment_id, :table_id, :storage, :path, :row_count, :size_bytes, :sha256, :first_row_id, :has_row_ids, :snapshot);

-- name: add_fragment_life
INSERT INTO fragment_lives (fragment_id, table_id, branch_id, begin_snapshot_id)
VALUES (:fragment_id, :table_id, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: add_inline_rows
INSERT INTO inline_rows (fragment_id, ipc) VALUES (:fragment_id, :ipc);

-- name: set_statistics
UPDATE fragment_statistics SET minimum = :minimum, maximum = :maximum, null_count = :null_count, exact = :exact, may_hold_nan = :may_hold_nan
WHERE fragment_id = :fragment_id AND field_id = :field_id;

-- name: add_statistics
INSERT INTO fragment_statistics (fragment_id, field_id, minimum, maximum, null_count, exact, may_hold_nan)
VALUES (:fragment_id, :field_id, :minimum, :maximum, :null_count, :exact, :may_hold_nan);

-- name: end_fragment
UPDATE fragment_lives SET end_snapshot_id = :snapshot
WHERE fragment_id = :fragment_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: end_vector
UPDATE deletion_vectors SET end_snapshot_id = :snapshot
WHERE fragment_id = :fragment_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot) AND begin_snapshot_id IS :born;

-- name: add_vector
INSERT INTO deletion_vectors (fragment_id, table_id, bits, cardinality, row_count, crc32, branch_id, begin_snapshot_id)
VALUES (:fragment_id, :table_id, :bits, :cardinality, :row_count, :crc32, (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot), :snapshot);

-- name: add_run
INSERT INTO compositions (output_fragment_id, source_fragment_id, source_order, output_start, live_count, physical_count, vector_snapshot_id, ordered)
VALUES (:output, :source, :source_order, :output_start, :live_count, :physical_count, :vector_born, :ordered);

-- name: add_row_map
INSERT INTO row_maps (output_fragment_id, positions) VALUES (:output, :positions);

-- name: set_setting
INSERT INTO settings (name, value) VALUES (:name, :value) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: end_table_fragments
UPDATE fragment_lives SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);

-- name: end_table_vectors
UPDATE deletion_vectors SET end_snapshot_id = :snapshot
WHERE table_id = :table_id AND end_snapshot_id IS NULL AND branch_id = (SELECT branch_id FROM snapshots WHERE snapshot_id = :snapshot);
