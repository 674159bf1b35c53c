-- Two people change one table at the same time, and neither is lost. Open two prompts, `lakelite shop.lake --author ann` and
-- `lakelite shop.lake --author bob`, and type into each what stands behind its name. A result behind --> is checked by a test.

-- ann:
CREATE TABLE stock (item VARCHAR, amount INTEGER);
INSERT INTO stock VALUES ('bolt', 40), ('nut', 70), ('washer', 10);
INSERT INTO stock VALUES ('screw', 5);

-- A DELETE against an OPTIMIZE: the file with the row is gone when the DELETE commits. It is told where the row stands now.
-- ann:
BEGIN;
DELETE FROM stock WHERE item = 'washer';
-- bob:
OPTIMIZE stock;
-- ann:
COMMIT;
SELECT * FROM stock ORDER BY item; --> [('bolt', 40), ('nut', 70), ('screw', 5)]

-- An UPDATE against an UPDATE of the same row: the second one is evaluated again on the row that the first one left.
-- ann:
BEGIN;
UPDATE stock SET amount = amount - 15 WHERE item = 'bolt';
-- bob:
UPDATE stock SET amount = amount - 5 WHERE item = 'bolt';
-- ann:
COMMIT;
SELECT amount FROM stock WHERE item = 'bolt'; --> [(20,)]

-- An append against a job that writes the table anew from what it holds: what the job did not see stays.
-- ann:
BEGIN;
INSERT INTO stock VALUES ('nail', 900);
-- bob:
INSERT OVERWRITE stock SELECT item, amount FROM stock WHERE amount > 10;
-- ann:
COMMIT;
SELECT * FROM stock ORDER BY item; --> [('bolt', 20), ('nail', 900), ('nut', 70)]

-- The other way round the job, which comes last, runs again and reads the new row too.
-- bob:
BEGIN;
INSERT OVERWRITE stock SELECT upper(item), amount FROM stock;
-- ann:
INSERT INTO stock VALUES ('hook', 30);
-- bob:
COMMIT;
SELECT * FROM stock ORDER BY item; --> [('BOLT', 20), ('HOOK', 30), ('NAIL', 900), ('NUT', 70)]

-- How each was reconciled:
SELECT winner_snapshot_id AS winner, rung, explanation FROM lake.resolutions ORDER BY snapshot_id;
