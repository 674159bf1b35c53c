"""Keys in a merge of two branches: a row that comes over may have a key that another row has on the side that it comes to.

    meet     which rows meet in a key, of those that `merge_rows.three_ways` has put side by side; two that are alike are one
    decide   which of them are conflicts, given what was chosen for each, and what becomes of the rows

A row is decided by one choice: it comes, and all rows that it meets go, or it stays away. A row that stays away leaves the other side's
version of it where it was, which may meet others that come: so it goes on, until nothing is left to meet. Cost follows the rows that get a key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakelite.contents import TableState
from lakelite.model import Constraint, Fragment, Table, literal, quote
from lakelite.storage.statistics import holding_any
from lakelite.transaction import key_lookup, merge_rows
from lakelite.transaction.execution import Execution
from lakelite.transaction.merge_rows import WAYS, Taking

KIND = "key taken on both"
_MEETINGS, _PARTNERS, _DECIDED, _STAYING = (f"temp.lake_merge_{name}" for name in ("meetings", "partners", "decided", "staying"))


def meet(execution: Execution, table: Table, onto: TableState, rebuilt: Collection[int], taking: Taking) -> bool:
    """Finds the rows that have a key in common. `onto`: the side that rows come to, all of it. Whether there are any that are not alike."""
    for key in table.keys:
        _meet_in(execution, table, onto, key, rebuilt, taking)
    found = execution.engine.work.execute(f"SELECT DISTINCT o FROM {_MEETINGS} ORDER BY o").fetchnumpy()["o"]
    merge_rows.put_rows(execution, "partners", onto, table, found, rebuilt)
    if len(found):
        _join_alike(execution, table, taking)
    return bool(execution.engine.run(f"SELECT 1 FROM {_MEETINGS} LIMIT 1"))


def _meet_in(execution: Execution, table: Table, onto: TableState, key: Constraint, rebuilt: Collection[int], taking: Taking) -> None:
    places = {c.field_id: f"c{i}" for i, c in enumerate(table.columns)}
    columns = [places[field_id] for _, field_id in key.columns]
    other = _onto(taking)
    keys = ", ".join(f"t.{c} AS k{i}" for i, c in enumerate(columns))
    given, is_new = " AND ".join(f"t.{c} IS NOT NULL" for c in columns), " OR ".join(f"own.{c} IS DISTINCT FROM t.{c}" for c in columns)
    execution.engine.run(
        f"CREATE OR REPLACE TEMP TABLE lake_merge_keys AS SELECT t.id, {keys} FROM temp.lake_merge_{taking} t"
        f" JOIN {WAYS} w ON w.id = t.id AND w.doing <> 'deleted' LEFT JOIN temp.lake_merge_{other} own ON own.id = t.id"
        f" WHERE {given} AND (own.id IS NULL OR {is_new})"
    )
    near = {f.fragment_id: f for f in _near(execution, table, onto, key)}
    if not near:
        return
    rows, _ = merge_rows.scanned(execution, onto.part(near.values()), table, rebuilt)
    shown = " || ', ' || ".join(f"{literal(name + ': ')} || CAST(k.k{i} AS VARCHAR)" for i, name in enumerate(key_lookup.key_names(table, key)))
    met = " AND ".join(f"r.{c} = k.k{i}" for i, c in enumerate(columns))
    execution.engine.run(
        f"INSERT INTO {_MEETINGS} SELECT k.id, r.id, {shown} FROM ({rows}) r JOIN temp.lake_merge_keys k ON {met} WHERE r.id <> k.id"
    )


def _near(execution: Execution, table: Table, onto: TableState, key: Constraint) -> Collection[Fragment]:
    """The fragments of a side in which one of the keys may be, by statistics and key filters where the columns are the same there."""
    least = execution.engine.run("SELECT min(k0)::VARCHAR, max(k0)::VARCHAR, count(*) FROM temp.lake_merge_keys")[0]
    if not least[2]:
        return ()
    mine, there = ({c.field_id: c for c in columns} for columns in (table.columns, onto.table.columns))
    if any(there.get(field_id) != mine[field_id] for _, field_id in key.columns):
        return onto.fragments.values()
    field_id = key.columns[0][1]
    chosen = holding_any(onto.fragments.values(), field_id, mine[field_id].type, least[:2], between=True)
    if least[2] > key_lookup.MOST_KEYS or not key_lookup.has_filters(table, key):
        return chosen
    hashes = execution.engine.work.execute(f"SELECT {key_lookup.hash_of(key)} AS h FROM temp.lake_merge_keys").fetchnumpy()["h"]
    return [f for fragments, _ in key_lookup.among(execution, onto, chosen, key, hashes) for f in fragments]


def _join_alike(execution: Execution, table: Table, taking: Taking) -> None:
    """A row that both sides added alike, but for its id, is one: that of the side that it comes to."""
    execution.engine.run(
        f"UPDATE {WAYS} SET what = 'kept' FROM {_MEETINGS} m JOIN temp.lake_merge_{taking} t ON t.id = m.t JOIN {_PARTNERS} o ON o.id = m.o"
        f" WHERE {WAYS.removeprefix('temp.')}.id = m.t AND what = 'added' AND NOT ({merge_rows.values_differ(table, 't', 'o')})"
        f" AND m.o NOT IN (SELECT id FROM {WAYS})"
    )
    execution.engine.run(f"DELETE FROM {_MEETINGS} WHERE t IN (SELECT id FROM {WAYS} WHERE what = 'kept')")


def _onto(taking: Taking) -> Taking:
    return "ours" if taking == "theirs" else "theirs"


# What is decided.


def decide(execution: Execution, table: Table, choices: str, taking: Taking, *, comes: bool) -> str:
    """Decides each row by what was chosen for it (`choices`: a table with digests of both versions), or else by `comes`, and notes in the ways
    what is done. Returns a SELECT of the conflicts, as `lake.merge_conflicts` shows them.

    A row for which nothing was chosen remains a conflict there.
    """
    _put_decided(execution, table, choices, taking, comes=comes)
    _put_staying(execution)
    is_met = f"EXISTS (FROM {_MEETINGS} m JOIN {_STAYING} s ON s.o = m.o WHERE m.t = d.id)"
    execution.engine.run(f"DELETE FROM {_DECIDED} d WHERE NOT is_torn AND NOT {is_met}")
    execution.engine.run(f"UPDATE {_DECIDED} d SET is_met = {is_met}")
    became = f"CASE d.resolution WHEN {literal(taking)} THEN doing WHEN {literal(_onto(taking))} THEN 'kept' ELSE 'conflict' END"
    found = _shown(table, taking)
    execution.engine.run(f"CREATE OR REPLACE TEMP TABLE lake_merge_found AS {found}")
    execution.engine.run(f"UPDATE {WAYS} SET what = {became} FROM {_DECIDED} d WHERE d.id = {WAYS.removeprefix('temp.')}.id")
    return "SELECT * FROM temp.lake_merge_found ORDER BY row_id"


def _put_decided(execution: Execution, table: Table, choices: str, taking: Taking, *, comes: bool) -> None:
    """A table of the rows that may be conflicts. The digest of the other side is of all rows that it meets, whatever becomes of them."""
    side = _onto(taking)
    met = (
        f"SELECT m.t, string_agg({merge_rows.digest(table, 'o')}, '' ORDER BY m.o) AS digests"
        f" FROM (SELECT DISTINCT t, o FROM {_MEETINGS}) m JOIN {_PARTNERS} o ON o.id = m.o GROUP BY m.t"
    )
    own = merge_rows.digest(table, side)
    digests = {
        taking: merge_rows.digest(table, taking),
        side: f"CASE WHEN met.digests IS NULL THEN {own} ELSE sha256(coalesce({own}, '') || met.digests) END",
    }
    found = (
        f"SELECT w.id, w.what = 'conflict' AS is_torn, {digests['ours']} AS ours_digest, {digests['theirs']} AS theirs_digest FROM {WAYS} w"
        f" LEFT JOIN ({met}) met ON met.t = w.id LEFT JOIN temp.lake_merge_ours ours ON ours.id = w.id"
        f" LEFT JOIN temp.lake_merge_theirs theirs ON theirs.id = w.id WHERE w.what = 'conflict' OR met.t IS NOT NULL"
    )
    execution.engine.run(
        f"CREATE OR REPLACE TEMP TABLE lake_merge_decided AS SELECT f.*, c.resolution, false AS is_met,"
        f" coalesce(c.resolution = {literal(taking)}, {comes}) AS comes FROM ({found}) f LEFT JOIN {choices} c ON c.row_id = f.id"
        " AND c.ours IS NOT DISTINCT FROM f.ours_digest AND c.theirs IS NOT DISTINCT FROM f.theirs_digest"
    )


def _put_staying(execution: Execution) -> None:
    """A table of the rows of the side that others come to which stay as they are there, as far as others meet them."""
    execution.engine.run(
        f"CREATE OR REPLACE TEMP TABLE lake_merge_staying AS WITH RECURSIVE stay AS ("
        f"SELECT m.o FROM {_MEETINGS} m LEFT JOIN {WAYS} w ON w.id = m.o LEFT JOIN {_DECIDED} d ON d.id = m.o"
        " WHERE w.id IS NULL OR w.what = 'kept' OR (w.what = 'conflict' AND NOT d.comes)"
        f" UNION SELECT m.t FROM stay s JOIN {_MEETINGS} m ON m.o = s.o JOIN {_DECIDED} d ON d.id = m.t WHERE NOT d.comes) SELECT o FROM stay"
    )


def _shown(table: Table, taking: Taking) -> str:
    """A SELECT of the conflicts. What a row meets is one version, or a list of them."""
    side = _onto(taking)
    together = (
        f"SELECT id, list(version ORDER BY place, o) AS versions FROM (SELECT d.id, 0 AS place, d.id AS o, {_version(table, side)} AS version"
        f" FROM {_DECIDED} d JOIN temp.lake_merge_{side} {side} ON {side}.id = d.id WHERE d.is_torn UNION ALL"
        f" SELECT m.t, 1, m.o, {_version(table, 'o')} FROM (SELECT DISTINCT m.t, m.o FROM {_MEETINGS} m SEMI JOIN {_STAYING} s ON s.o = m.o) m"
        f" JOIN {_PARTNERS} o ON o.id = m.o) GROUP BY id"
    )
    keys = f"SELECT m.t, string_agg(DISTINCT m.key, '; ' ORDER BY m.key) AS key FROM {_MEETINGS} m SEMI JOIN {_STAYING} s ON s.o = m.o GROUP BY m.t"
    shown = dict(_sides(table, taking))
    return (
        f"SELECT {literal(table.qualified)} AS table_name, d.id AS row_id, CASE WHEN d.is_met THEN {literal(KIND)} ELSE w.kind END AS kind,"
        f" {_version(table, 'base')} AS base, {shown['ours']} AS ours, {shown['theirs']} AS theirs, d.ours_digest, d.theirs_digest, d.resolution,"
        f" k.key FROM {_DECIDED} d JOIN {WAYS} w ON w.id = d.id LEFT JOIN temp.lake_merge_base base ON base.id = d.id"
        f" LEFT JOIN temp.lake_merge_{taking} {taking} ON {taking}.id = d.id LEFT JOIN ({together}) g ON g.id = d.id"
        f" LEFT JOIN ({keys}) k ON k.t = d.id"
    )


def _sides(table: Table, taking: Taking) -> Iterator[tuple[str, str]]:
    yield taking, _version(table, taking)
    yield _onto(taking), "CASE WHEN len(g.versions) > 1 THEN '[' || array_to_string(g.versions, ',') || ']' ELSE g.versions[1] END"


def _version(table: Table, side: str) -> str:
    shown = ", ".join(f"{quote(c.name)} := {side}.c{i}" for i, c in enumerate(table.columns))
    return f"CASE WHEN {side}.id IS NOT NULL THEN CAST(to_json(struct_pack({shown})) AS VARCHAR) END"


def shown_keys(execution: Execution, table: Table, most: int) -> tuple[str, ...]:
    """Up to `most` of the rows that remain conflicts, by the key that is taken, or their own, or by row id where the table has none."""
    columns = {c.field_id: (f"c{i}", c.name) for i, c in enumerate(table.columns)}
    key = [columns[field_id] for _, field_id in table.keys[0].columns] if table.keys else []
    value = " || ', ' || ".join(
        f"{literal(name + ': ')} || coalesce(CAST(CASE WHEN base.id IS NULL THEN theirs.{place} ELSE base.{place} END AS VARCHAR), 'NULL')"
        for place, name in key
    )
    joined = "LEFT JOIN temp.lake_merge_base base ON base.id = f.row_id LEFT JOIN temp.lake_merge_theirs theirs ON theirs.id = f.row_id"
    shown = f"coalesce(f.key, {value or repr('row id ') + ' || f.row_id'})"
    found = execution.engine.run(f"SELECT {shown} FROM temp.lake_merge_found f {joined} WHERE f.resolution IS NULL ORDER BY f.row_id LIMIT {most}")
    return tuple(row[0] for row in found)


def left(execution: Execution) -> tuple[int, int]:
    """How many rows remain conflicts: those that both changed, and those of which a key is taken."""
    counted = f"count(*) FILTER (kind <> {literal(KIND)}), count(*) FILTER (kind = {literal(KIND)})"
    rows, keys = execution.engine.run(f"SELECT {counted} FROM temp.lake_merge_found WHERE resolution IS NULL")[0]
    return rows, keys
