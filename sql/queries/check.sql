-- CHECK LAKE: what is kept, and rows that contradict each other.

-- name: damage
SELECT integrity_check FROM pragma_integrity_check(1000000) WHERE integrity_check <> 'ok';

-- name: kept_fragments
SELECT fragment_id, table_id, storage, path, row_count, size_bytes, sha256, first_row_id, has_row_ids FROM fragments ORDER BY fragment_id;

-- name: is_kept
SELECT count(*) FROM fragments WHERE fragment_id = :fragment_id;

-- name: is_adopted
SELECT EXISTS (SELECT 1 FROM adopted_columns WHERE fragment_id = :fragment_id);

-- name: kept_vectors
-- Each version, with the rows of its fragment (NULL: there is no such fragment).
SELECT v.fragment_id, v.begin_snapshot_id, v.branch_id, f.row_count
FROM deletion_vectors v LEFT JOIN fragments f ON f.fragment_id = v.fragment_id ORDER BY v.fragment_id, v.branch_id, v.begin_snapshot_id;

-- name: vector_version
SELECT bits, cardinality, row_count, crc32 FROM deletion_vectors WHERE fragment_id = :fragment_id AND begin_snapshot_id = :born;

-- name: kept_compactions
SELECT DISTINCT f.fragment_id, f.table_id, f.born_snapshot_id FROM fragments f JOIN compositions c ON c.output_fragment_id = f.fragment_id ORDER BY f.fragment_id;

-- name: misshapen
-- Texts that are not of their form. The queries below read them.
SELECT 'table ' || table_id, 'the columns of one of its constraints are no list of names and ids' FROM constraints c
WHERE CASE WHEN json_valid(columns) AND json_type(columns) = 'array' THEN EXISTS
      (SELECT 1 FROM json_each(c.columns) WHERE CASE WHEN type <> 'array' THEN true
              ELSE json_array_length(value) <> 2 OR json_type(value, '$[0]') <> 'text' OR json_type(value, '$[1]') <> 'integer' END) ELSE true END
UNION ALL
SELECT 'view ' || table_id, 'its names, or its comments, are no lists of texts, or it has no query' FROM views v
WHERE trim(query) = ''
   OR CASE WHEN json_valid(names) AND json_type(names) = 'array' THEN EXISTS (SELECT 1 FROM json_each(v.names) WHERE type <> 'text') ELSE true END
   OR CASE WHEN json_valid(comments) AND json_type(comments) = 'array' THEN EXISTS
      (SELECT 1 FROM json_each(v.comments) WHERE CASE WHEN type <> 'array' THEN true
              ELSE json_array_length(value) <> 2 OR json_type(value, '$[0]') <> 'text' OR json_type(value, '$[1]') <> 'text' END) ELSE true END
UNION ALL
SELECT 'snapshot ' || snapshot_id, 'its statements are no list of texts' FROM snapshots s
WHERE CASE WHEN json_valid(statements) AND json_type(statements) = 'array' THEN EXISTS
      (SELECT 1 FROM json_each(s.statements) WHERE type <> 'text') ELSE true END
UNION ALL
SELECT 'fragment ' || fragment_id, 'its partition is ' || coalesce(quote(value), 'NULL') || ', which is no number of a bucket' FROM fragment_partitions
WHERE buckets IS NOT NULL AND value IS NOT NULL AND CAST(CAST(value AS INTEGER) AS TEXT) <> value
UNION ALL
SELECT 'table ' || table_id, 'a column of it has no type, or is a field of itself' FROM columns
WHERE declared_type = '' OR stored_type = '' OR parent_field_id = field_id;

-- name: contradictions
-- What is wrong with an object of the catalog, each of them once.
SELECT 'fragment ' || f.fragment_id, 'it is live, though its table ' || f.table_id || ' was dropped or is not there'
FROM fragment_lives f
WHERE f.end_snapshot_id IS NULL AND NOT EXISTS
      (SELECT 1 FROM table_lives t WHERE t.table_id = f.table_id AND t.branch_id = f.branch_id AND t.end_snapshot_id IS NULL)
UNION ALL
SELECT 'fragment ' || f.fragment_id, 'no branch holds it' FROM fragments f
WHERE NOT EXISTS (SELECT 1 FROM fragment_lives l WHERE l.fragment_id = f.fragment_id)
UNION ALL
SELECT 'deletion vector of fragment ' || v.fragment_id, 'it is live, though its fragment is not'
FROM deletion_vectors v
WHERE v.end_snapshot_id IS NULL AND NOT EXISTS
      (SELECT 1 FROM fragment_lives f WHERE f.fragment_id = v.fragment_id AND f.branch_id = v.branch_id AND f.end_snapshot_id IS NULL)
UNION ALL
SELECT 'deletion vector of fragment ' || v.fragment_id, 'the versions ' || v.begin_snapshot_id || ' and ' || w.begin_snapshot_id || ' are in force at once'
FROM deletion_vectors v JOIN deletion_vectors w ON w.fragment_id = v.fragment_id AND w.branch_id = v.branch_id AND w.begin_snapshot_id > v.begin_snapshot_id
WHERE v.end_snapshot_id IS NULL OR v.end_snapshot_id > w.begin_snapshot_id
UNION ALL
SELECT 'fragment ' || f.fragment_id, CASE WHEN f.storage = 'inline' THEN 'it is inline, and the catalog has no rows of it' ELSE 'it is a file, and the catalog has inline rows of it' END
FROM fragments f LEFT JOIN inline_rows i ON i.fragment_id = f.fragment_id WHERE (f.storage = 'inline') <> (i.fragment_id IS NOT NULL)
UNION ALL
SELECT 'fragment ' || c.output_fragment_id, 'its composition and its row map do not go together'
FROM compositions c LEFT JOIN row_maps m ON m.output_fragment_id = c.output_fragment_id
WHERE c.ordered <> (m.output_fragment_id IS NULL) GROUP BY c.output_fragment_id
UNION ALL
SELECT 'counter ' || c.name, 'the next id is ' || c.next_id || ', which is in use'
FROM counters c WHERE (c.name = 'fragment' AND c.next_id <= (SELECT max(fragment_id) FROM fragments))
   OR (c.name = 'table' AND c.next_id <= (SELECT max(table_id) FROM tables))
   OR (c.name = 'field' AND c.next_id <= (SELECT max(field_id) FROM columns))
   OR (c.name = 'row' AND c.next_id < (SELECT max(first_row_id + row_count) FROM fragments))
   OR (c.name = 'snapshot' AND c.next_id <= (SELECT max(snapshot_id) FROM snapshots))
   OR (c.name = 'branch' AND c.next_id <= (SELECT max(branch_id) FROM branches))
UNION ALL
SELECT 'snapshots', 'the parents of ' || count(*) || ' of them are missing, the first one is ' || min(s.snapshot_id)
FROM snapshots s JOIN branches b ON b.branch_id = s.branch_id
WHERE s.snapshot_id > b.oldest_kept_id AND NOT EXISTS (SELECT 1 FROM snapshots p WHERE p.snapshot_id = s.parent_id) HAVING count(*) > 0
UNION ALL
SELECT 'branch ' || b.name, 'it has no snapshot' FROM branches b
WHERE b.dropped_snapshot_id IS NULL AND NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.branch_id = b.branch_id)
UNION ALL
SELECT 'snapshot ' || d.snapshot_id, 'the rows of table ' || d.table_id || ' changed by ' || sum(d.rows) || ', its effect says ' ||
       coalesce((SELECT e.rows_added - e.rows_removed FROM effects e WHERE e.snapshot_id = d.snapshot_id AND e.table_id = d.table_id), 'nothing')
FROM (SELECT l.begin_snapshot_id AS snapshot_id, l.table_id, f.row_count AS rows FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id
      UNION ALL SELECT l.end_snapshot_id, l.table_id, -f.row_count FROM fragment_lives l JOIN fragments f ON f.fragment_id = l.fragment_id
                WHERE l.end_snapshot_id IS NOT NULL
      UNION ALL SELECT begin_snapshot_id, table_id, -cardinality FROM deletion_vectors
      UNION ALL SELECT end_snapshot_id, table_id, cardinality FROM deletion_vectors WHERE end_snapshot_id IS NOT NULL
      UNION ALL SELECT snapshot_id, table_id, 0 FROM effects WHERE table_id IS NOT NULL) d
JOIN snapshots s ON s.snapshot_id = d.snapshot_id JOIN branches b ON b.branch_id = s.branch_id
WHERE d.snapshot_id > b.oldest_kept_id
  AND d.snapshot_id > coalesce((SELECT max(t.oldest_kept_id) FROM table_lives t WHERE t.table_id = d.table_id AND t.branch_id = s.branch_id), 0)
GROUP BY d.snapshot_id, d.table_id
HAVING sum(d.rows) IS NOT (SELECT CASE WHEN ',' || e.kinds || ',' LIKE '%,drop,%' THEN sum(d.rows) ELSE e.rows_added - e.rows_removed END
                           FROM effects e WHERE e.snapshot_id = d.snapshot_id AND e.table_id = d.table_id);

-- name: strays
-- Rows that no object of the lake explains: what they refer to is not there.
WITH lived (name, object, table_id, branch_id, begin_snapshot_id, end_snapshot_id) AS (
    SELECT 'schema_lives', schema_id, NULL, branch_id, begin_snapshot_id, end_snapshot_id FROM schema_lives
    UNION ALL SELECT 'table_lives', table_id, NULL, branch_id, begin_snapshot_id, end_snapshot_id FROM table_lives
    UNION ALL SELECT 'table_names', table_id, table_id, branch_id, begin_snapshot_id, end_snapshot_id FROM table_names
    UNION ALL SELECT 'columns', field_id, table_id, branch_id, begin_snapshot_id, end_snapshot_id FROM columns
    UNION ALL SELECT 'constraints', table_id || '.' || position, table_id, branch_id, begin_snapshot_id, end_snapshot_id FROM constraints
    UNION ALL SELECT 'views', table_id, table_id, branch_id, begin_snapshot_id, end_snapshot_id FROM views
    UNION ALL SELECT 'comments', table_id || '.' || field_id, table_id, branch_id, begin_snapshot_id, end_snapshot_id FROM comments
    UNION ALL SELECT 'table_options', table_id || '.' || name, table_id, branch_id, begin_snapshot_id, end_snapshot_id FROM table_options
    UNION ALL SELECT 'partition_keys', table_id || '.' || position, table_id, branch_id, begin_snapshot_id, end_snapshot_id FROM partition_keys
    UNION ALL SELECT 'fragment_lives', fragment_id, NULL, branch_id, begin_snapshot_id, end_snapshot_id FROM fragment_lives
    -- A vector that a compaction has read stays for as long as its output does, whatever becomes of the branch.
    UNION ALL SELECT 'deletion_vectors', fragment_id, NULL, branch_id, begin_snapshot_id, end_snapshot_id FROM deletion_vectors v
    WHERE NOT EXISTS (SELECT 1 FROM compositions c WHERE c.source_fragment_id = v.fragment_id AND c.vector_snapshot_id = v.begin_snapshot_id))
SELECT 'catalog table ' || "table", count(*) || ' of its rows refer to ' || parent || ' that are not there'
FROM pragma_foreign_key_check GROUP BY "table", parent
UNION ALL
SELECT 'catalog table ' || l.name, count(*) || ' of its rows are of a branch that is not there, as ' || min(l.object) || ' is'
FROM lived l WHERE NOT EXISTS (SELECT 1 FROM branches b WHERE b.branch_id = l.branch_id) GROUP BY l.name
UNION ALL
SELECT 'catalog table ' || l.name, count(*) || ' of its rows begin or end with a snapshot that their branch does not have, as ' || min(l.object) || ' does'
FROM lived l JOIN branches b ON b.branch_id = l.branch_id
WHERE (l.begin_snapshot_id > b.oldest_kept_id AND NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.snapshot_id = l.begin_snapshot_id AND s.branch_id = l.branch_id))
   OR (l.end_snapshot_id > b.oldest_kept_id AND NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.snapshot_id = l.end_snapshot_id AND s.branch_id = l.branch_id))
GROUP BY l.name
UNION ALL
SELECT 'table ' || l.table_id, count(*) || ' rows of catalog table ' || l.name || ' are in force, though it was dropped or is not there'
FROM lived l
WHERE l.table_id IS NOT NULL AND l.end_snapshot_id IS NULL AND NOT EXISTS
      (SELECT 1 FROM table_lives t WHERE t.table_id = l.table_id AND t.branch_id = l.branch_id AND t.end_snapshot_id IS NULL)
GROUP BY l.table_id, l.name
UNION ALL
SELECT 'catalog table ' || a.name, count(*) || ' of its rows are in force twice at once, as ' || min(a.object) || ' is'
FROM lived a JOIN lived b ON b.name = a.name AND b.object = a.object AND b.table_id IS a.table_id AND b.branch_id = a.branch_id AND b.begin_snapshot_id > a.begin_snapshot_id
WHERE a.name <> 'deletion_vectors' AND (a.end_snapshot_id IS NULL OR a.end_snapshot_id > b.begin_snapshot_id) GROUP BY a.name
UNION ALL
SELECT 'table ' || t.table_id, 'it has no name' FROM table_lives t
WHERE t.end_snapshot_id IS NULL AND NOT EXISTS
      (SELECT 1 FROM table_names n WHERE n.table_id = t.table_id AND n.branch_id = t.branch_id AND n.end_snapshot_id IS NULL)
UNION ALL
SELECT 'table ' || t.table_id, 'it has neither columns nor a query' FROM table_lives t
WHERE t.end_snapshot_id IS NULL
  AND NOT EXISTS (SELECT 1 FROM columns c WHERE c.table_id = t.table_id AND c.branch_id = t.branch_id AND c.end_snapshot_id IS NULL)
  AND NOT EXISTS (SELECT 1 FROM views v WHERE v.table_id = t.table_id AND v.branch_id = t.branch_id AND v.end_snapshot_id IS NULL)
UNION ALL
SELECT 'table ' || min(n.table_id), 'its name is also that of table ' || max(n.table_id) FROM table_names n
WHERE n.end_snapshot_id IS NULL GROUP BY n.branch_id, n.schema_id, lower(n.name) HAVING count(*) > 1
UNION ALL
SELECT 'table ' || f.table_id, f.what || ' is of a column that it does not have (field ' || f.field_id || ')'
FROM (SELECT table_id, branch_id, parent_field_id AS field_id, 'a field inside' AS what FROM columns WHERE end_snapshot_id IS NULL AND parent_field_id IS NOT NULL
      UNION SELECT c.table_id, c.branch_id, j.value ->> 1, 'a constraint' FROM constraints c, json_each(c.columns) j WHERE c.end_snapshot_id IS NULL
      UNION SELECT table_id, branch_id, field_id, 'a partition' FROM partition_keys WHERE end_snapshot_id IS NULL
      UNION SELECT table_id, branch_id, field_id, 'a comment' FROM comments WHERE end_snapshot_id IS NULL AND field_id <> 0) f
WHERE NOT EXISTS (SELECT 1 FROM columns c WHERE c.table_id = f.table_id AND c.branch_id = f.branch_id AND c.field_id = f.field_id AND c.end_snapshot_id IS NULL)
UNION ALL
SELECT 'fragment ' || f.fragment_id, 'a row of ' || o.name || ' says that it is of table ' || o.table_id || ', it is of ' || f.table_id
FROM (SELECT 'fragment_lives' AS name, fragment_id, table_id FROM fragment_lives
      UNION SELECT 'deletion_vectors', fragment_id, table_id FROM deletion_vectors
      UNION SELECT 'adopted_columns', fragment_id, table_id FROM adopted_columns) o
JOIN fragments f ON f.fragment_id = o.fragment_id WHERE o.table_id <> f.table_id
UNION ALL
SELECT 'snapshot ' || s.snapshot_id, 'its branch ' || s.branch_id || ' is not there' FROM snapshots s
WHERE NOT EXISTS (SELECT 1 FROM branches b WHERE b.branch_id = s.branch_id)
UNION ALL
SELECT 'branch main', 'there is none of this name and number, which every lake has'
WHERE NOT EXISTS (SELECT 1 FROM branches WHERE branch_id = 1 AND name = 'main' AND dropped_snapshot_id IS NULL)
UNION ALL
SELECT 'schema main', 'branch ' || b.name || ' has none of this name and number, which every branch has'
FROM branches b
WHERE b.dropped_snapshot_id IS NULL AND NOT EXISTS
      (SELECT 1 FROM schemas s JOIN schema_lives l ON l.schema_id = s.schema_id
       WHERE s.name = 'main' AND s.schema_id = 1 AND l.branch_id = b.branch_id AND l.end_snapshot_id IS NULL);

-- name: histories
-- Snapshots, branches, counters and places in a list that do not follow one from the other.
WITH placed AS (
    SELECT snapshot_id, branch_id, parent_id, committed_at_us, lag(snapshot_id) OVER (PARTITION BY branch_id ORDER BY snapshot_id) AS before,
           lag(committed_at_us) OVER (ORDER BY snapshot_id) AS before_at FROM snapshots)
SELECT 'counter ' || w.value, 'it is not there' FROM json_each('["table", "field", "schema", "fragment", "row", "snapshot", "branch"]') w
WHERE NOT EXISTS (SELECT 1 FROM counters c WHERE c.name = w.value)
UNION ALL
SELECT 'counter schema', 'the next id is ' || next_id || ', which is in use' FROM counters WHERE name = 'schema' AND next_id <= (SELECT max(schema_id) FROM schemas)
UNION ALL
SELECT 'snapshot ' || p.snapshot_id, 'its parent is not the snapshot before it on its branch, ' || p.before FROM placed p JOIN branches b ON b.branch_id = p.branch_id
WHERE p.snapshot_id > b.oldest_kept_id AND p.snapshot_id > b.first_snapshot_id AND p.parent_id IS NOT p.before
UNION ALL
SELECT 'snapshot ' || min(snapshot_id), 'it was committed before the one in front of it, and ' || (count(*) - 1) || ' others were too' FROM placed
WHERE committed_at_us <= before_at HAVING count(*) > 0
UNION ALL
SELECT 'snapshot ' || s.snapshot_id, 'what it says of its transaction cannot be: an isolation level that is none, or a base that is no older snapshot' FROM snapshots s
WHERE s.isolation NOT IN ('serializable', 'write serializable', 'snapshot') OR s.base_snapshot_id >= s.snapshot_id
   OR s.branch_id = (SELECT p.branch_id FROM snapshots p WHERE p.snapshot_id = s.merge_parent_id)
UNION ALL
SELECT 'snapshot ' || e.snapshot_id, 'its effect is of a kind that there is not: ' || e.kinds FROM effects e
WHERE EXISTS (SELECT 1 FROM json_each('["' || replace(replace(e.kinds, '"', '?'), ',', '","') || '"]') k WHERE k.value NOT IN
      ('namespace', 'create', 'drop', 'schema', 'extend', 'shrink', 'rename', 'rewrite', 'append', 'delete', 'update', 'overwrite', 'supersede', 'compaction'))
UNION ALL
SELECT 'snapshot ' || snapshot_id, 'it met ' || winner_snapshot_id || ', which came behind it' FROM resolutions WHERE winner_snapshot_id >= snapshot_id
UNION ALL
SELECT 'branch ' || b.name, 'its snapshots are not where it says: it begins with ' || b.first_snapshot_id || ', and keeps those from ' || b.oldest_kept_id || ' on'
FROM branches b
WHERE b.first_snapshot_id > b.oldest_kept_id OR (b.dropped_snapshot_id IS NULL AND b.oldest_kept_id > (SELECT max(snapshot_id) FROM snapshots s WHERE s.branch_id = b.branch_id))
   OR (b.branch_id <> 1 AND (b.base_snapshot_id IS NULL OR b.base_snapshot_id >= b.first_snapshot_id))
   OR b.dropped_snapshot_id < (SELECT max(snapshot_id) FROM snapshots s WHERE s.branch_id = b.branch_id)
UNION ALL
SELECT 'table ' || table_id, 'it keeps its rows from snapshot ' || oldest_kept_id || ' on, which is not there yet' FROM table_lives
WHERE oldest_kept_id > (SELECT max(snapshot_id) FROM snapshots)
UNION ALL
SELECT 'schema ' || s.name, 'no branch has it' FROM schemas s WHERE NOT EXISTS (SELECT 1 FROM schema_lives l WHERE l.schema_id = s.schema_id)
UNION ALL
SELECT 'schema ' || min(s.name), 'its name is also that of another one' FROM schemas s JOIN schema_lives l ON l.schema_id = s.schema_id
WHERE l.end_snapshot_id IS NULL GROUP BY l.branch_id, lower(s.name) HAVING count(*) > 1
UNION ALL
SELECT DISTINCT 'table ' || table_id, 'two of its columns are at one place, or of one name' FROM columns
WHERE end_snapshot_id IS NULL AND parent_field_id IS NULL GROUP BY table_id, branch_id
HAVING count(DISTINCT position) < count(*) OR count(DISTINCT lower(name)) < count(*)
UNION ALL
SELECT 'fragment ' || f.fragment_id, 'it was brought by snapshot ' || f.born_snapshot_id || ', and is part of ' || min(l.begin_snapshot_id) FROM fragments f
JOIN fragment_lives l ON l.fragment_id = f.fragment_id GROUP BY f.fragment_id HAVING f.born_snapshot_id > min(l.begin_snapshot_id) OR f.born_snapshot_id < 1
UNION ALL
SELECT 'table ' || table_id, 'its partition keys are not one behind the other' FROM partition_keys
WHERE end_snapshot_id IS NULL GROUP BY table_id, branch_id HAVING max(position) + 1 <> count(*)
UNION ALL
SELECT 'fragment ' || fragment_id, 'the values of its partition are not one behind the other' FROM fragment_partitions GROUP BY fragment_id HAVING max(position) + 1 <> count(*);
