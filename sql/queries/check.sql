-- CHECK LAKE: what is kept, and rows that contradict each other.

-- name: kept_fragments
SELECT fragment_id, table_id, storage, path, row_count, size_bytes, sha256, first_row_id, has_row_ids FROM fragments ORDER BY fragment_id;

-- name: is_kept
SELECT count(*) FROM fragments WHERE fragment_id = :fragment_id;

-- name: kept_vectors
-- Each version, with the rows of its fragment (NULL: there is no such fragment).
SELECT v.fragment_id, v.begin_snapshot_id, v.branch_id, f.row_count
FROM deletion_vectors v LEFT JOIN fragments f ON f.fragment_id = v.fragment_id ORDER BY v.fragment_id, v.branch_id, v.begin_snapshot_id;

-- name: vector_version
SELECT bits, cardinality, row_count, crc32 FROM deletion_vectors WHERE fragment_id = :fragment_id AND begin_snapshot_id = :born;

-- name: kept_compactions
SELECT DISTINCT f.fragment_id, f.table_id, f.born_snapshot_id FROM fragments f JOIN compositions c ON c.output_fragment_id = f.fragment_id ORDER BY f.fragment_id;

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
