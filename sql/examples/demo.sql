-- What `lakelite demo` shows, over a lake with flights, planes, airports, airlines and weather (snapshots 1 to 5).
-- It runs by hand as well: lakelite demo DIR, then lakelite DIR -f demo.sql. A line "say" is printed, an "act" is played by the demo.

-- say: A join over two tables: which airlines left New York late in 2013?
SELECT a.name AS airline, count(*) AS flights, round(avg(f.dep_delay), 1) AS average_delay
FROM flights AS f JOIN airlines AS a USING (carrier)
GROUP BY ALL
ORDER BY average_delay DESC
LIMIT 5;

-- say: Correct one row out of 336,776. The file stays as it is: a deletion vector hides the old row, a small new fragment holds the new one.
UPDATE flights SET dep_delay = 301, arr_delay = 272 WHERE flight_id = 7073;

-- say: Delete the flights that never left. Again no file is written anew.
DELETE FROM flights WHERE dep_time IS NULL;

-- say: Each of these was a snapshot. Snapshot 5 is the lake as it was loaded, and it is still there:
SELECT 'snapshot 5' AS version, count(*) AS flights, max(dep_delay) AS longest_delay FROM flights AT (VERSION => 5)
UNION ALL
SELECT 'now', count(*), max(dep_delay) FROM flights;

-- say: Time travel joins with the present: the row that was corrected, before and after.
SELECT flight_id, carrier, flight, origin, dest, old.dep_delay AS delay_before, new.dep_delay AS delay_now
FROM flights AT (VERSION => 5) AS old JOIN flights AS new USING (flight_id, carrier, flight, origin, dest)
WHERE flight_id = 7073;

-- say: Two connections now change the same file at the same time.
-- act: two_connections

-- say: Who did what, newest first:
DESCRIBE HISTORY;
