"""The oracles bite: deliberate bugs in the resolver, each in another code path, and a small part of a harness that fails for it.

Each case is run twice: without the bug it passes, with the bug planted it has to fail. What fails is the differential oracle of
that harness (test_pairs, test_compaction, test_machine, test_levels, test_savepoint_machine), or a named trap.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import interleave.test_alter_meets as meets
import interleave.test_compaction as compaction
import interleave.test_levels as levels
import interleave.test_machine as machine
import interleave.test_pairs as pairs
import interleave.test_returning_meets as returning
import interleave.test_traps as traps
import property.test_savepoint_machine as savepoints
import pytest
from oracle import Oracle
from planting import planted
from racing import meeting

import lakelite
from lakelite.composition import Composition
from lakelite.transaction import compare, conflicts, match, meetings, rebase, reconcile, rules, unaffected
from lakelite.transaction.delta import Delta
from lakelite.transaction.transaction import Transaction

Case = Callable[[], None]


# Small parts of the harnesses. Each raises an AssertionError where the lake is not what the oracle says.


def pair(
    mine: str | pairs.Kind, theirs: str, state: pairs.State = "clean", *, explicit: bool = False, level: pairs.Level = "write serializable"
) -> Case:
    """M meets W, by the names that they have in test_pairs, on the same rows."""

    def run() -> None:
        kinds = {kind.name: kind for kind in pairs.KINDS}
        case = pairs.Case(kinds[mine] if isinstance(mine, str) else mine, kinds[theirs], state, "same rows", explicit, level, number=0)
        with tempfile.TemporaryDirectory() as folder, closing(pairs.Three(Path(folder) / "lake", state)) as lake, closing(Oracle()) as oracle:
            lake.build([case], oracle)
            wrong = pairs.check(lake, case, oracle)
            assert not wrong, wrong

    return run


DELETE_AND_APPEND = pairs.kind("delete, append one column", "DELETE FROM {t} WHERE k = 99", "INSERT INTO {t} (k, s) VALUES (800, 'x')")
FILES = ("INSERT INTO t SELECT range, range % 7 FROM range(10)", "INSERT INTO t SELECT range + 20, range % 5 FROM range(10)")
WITH_DELETIONS = (FILES[0], "DELETE FROM t WHERE k IN (1, 4, 5)", FILES[1], "DELETE FROM t WHERE k = 22")


def overtaken(mine: tuple[str, ...], winners: tuple[str, ...], fill: tuple[str, ...] = FILES) -> Case:
    """A transaction that `winners` overtake, some of them compactions."""

    def run() -> None:
        with compaction.lake_of(*fill) as (con, other, oracle):
            con.execute("; ".join(("BEGIN", *mine)))
            for text in winners:
                compaction.run(other, oracle, text)
            con.execute("COMMIT")
            for text in mine:
                oracle.run(text)
            compaction.agree(con, oracle)

    return run


def compacted(text: str, winner: str, fill: tuple[str, ...] = FILES) -> Case:
    """An OPTIMIZE that `winner`, which only deletes or moves rows, overtakes."""

    def run() -> None:
        with compaction.lake_of(*fill) as (con, other, oracle):
            kept = compaction.ids(con)
            with meeting(lambda: compaction.run(other, oracle, winner)):
                con.execute(text)
            compaction.agree(con, oracle)
            assert compaction.ids(con).items() <= kept.items()

    return run


def altered(theirs: str, mine: str, want: list[tuple[int, ...]] | None) -> Case:
    """A statement that an ALTER and an INSERT overtake; `want`: the table then, None: an error."""

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, lakelite.connect(folder, autocommit=True) as m, lakelite.connect(folder, autocommit=True) as w:
            m.executescript("; ".join(meets.START))
            found = None
            with suppress(lakelite.ProgrammingError):
                meets.meet((m, w), theirs, mine)
                found = meets.rows(m)[1]
            assert found == want

    return run


def look(sql: str) -> machine.Change:
    return machine.Change("look", sql, None, "t")


def change(kind: str, sql: str) -> machine.Change:
    return machine.Change(kind, sql, sql.split()[2 if sql.startswith(("INSERT", "DELETE")) else 1])


def interleaved(mine: tuple[machine.Change, ...], winners: tuple[machine.Change, ...]) -> Case:
    """A transaction of the state machine of test_machine, and single statements that land before it commits."""

    def run() -> None:
        with pytest.MonkeyPatch.context() as patch, closing(_Torn(machine.Interleavings())) as torn:
            patch.setattr(machine, "note", lambda _: None)
            lake = torn.machine
            slot, other = lake.slots[:2]
            lake.begin(slot)
            for one in mine:
                lake.run(slot, one)
            for one in winners:
                lake.begin(other)
                lake.run(other, one)
                lake.commit(other)
            lake.commit(slot)

    return run


def saved(level: Literal["write serializable", "serializable"], *steps: str) -> Case:
    """A transaction with savepoints, against SQLite; a step "other: …" is a statement of another connection, which commits."""

    def run() -> None:
        made = savepoints.Savepoints if level == "write serializable" else savepoints.SerializableSavepoints
        with pytest.MonkeyPatch.context() as patch, closing(_Torn(made())) as torn:
            patch.setattr(savepoints, "note", lambda _: None)
            lake = torn.machine
            lake.begin()
            for step in steps:
                match step.split():
                    case ["other:", *words]:
                        lake.meanwhile(" ".join(words), "VALUES" in words)
                    case ["SAVEPOINT", name]:
                        lake.savepoint(name)
                    case ["ROLLBACK", "TO", name]:
                        lake.roll_back_to(name)
                    case ["LOOK", name]:
                        lake.look(name, hold=False)
                    case _:
                        lake.change(step)
            lake.commit()

    return run


@dataclass
class _Torn:
    """A state machine, torn down at the end."""

    machine: Any

    def close(self) -> None:
        self.machine.teardown()


def at_snapshot(mine: str, winner: str) -> Case:
    """Two transactions at level `snapshot`, against the model of test_levels."""

    def run() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            lakelite.connect(Path(folder) / "lake", autocommit=True, isolation="snapshot") as m,
            lakelite.connect(Path(folder) / "lake", autocommit=True) as w,
        ):
            w.execute("CREATE TABLE t (k INTEGER, v INTEGER); CREATE TABLE s (k INTEGER, v INTEGER); INSERT INTO t VALUES (0, 0), (1, 1), (2, 2)")
            levels.follows_its_model(m, w, [mine], [[winner]], lambda: None)

    return run


def returned(mine: str, winner: str, level: str | None = None) -> Case:
    """A statement that gives rows meets a winner, in autocommit or in a transaction of that level."""

    def run() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            lakelite.connect(Path(folder) / "lake", autocommit=True) as m,
            lakelite.connect(Path(folder) / "lake", autocommit=True) as w,
        ):
            w.execute("; ".join(returning.SETUP))
            if level is None:
                returning.agrees_in_autocommit(m, w, mine, winner)
            else:
                returning.agrees_in_a_transaction(m, w, mine, winner, level)

    return run


def trap(test: Callable[[Any], None]) -> Case:
    """A named trap of test_traps."""

    def run() -> None:
        made: list[Any] = []
        with tempfile.TemporaryDirectory() as folder:

            def connect(**options: Any) -> Any:
                made.append(lakelite.connect(Path(folder) / "lake", **{"autocommit": True, **options}))
                return made[-1]

            connect().execute("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t SELECT range, range FROM range(10)")
            try:
                test(connect)
            finally:
                for con in made:
                    con.close()

    return run


# The bugs.


@dataclass(frozen=True)
class Bug:
    """`right` in the source of `where` becomes `wrong`; `case` finds it."""

    name: str
    where: Callable[..., Any] | property
    right: str
    wrong: str
    case: Case


BUGS = (
    Bug(
        "positions are united and nothing is evaluated again", rebase.rebase,
        "_reevaluated(tx, head, deltas, added)", "_reevaluated(tx, head, deltas, {})",
        pair("delete by value", "update into range"),
    ),
    Bug(
        "a rank is one too high", Composition.place,
        "(positions - before)[mask]", "(positions - before)[mask] + 1",
        overtaken(("DELETE FROM t WHERE k = 7",), ("OPTIMIZE t",), WITH_DELETIONS),
    ),
    Bug(
        "the vector at the time of reading is forgotten", Composition.place,
        "if not absent:", "if True:",
        overtaken(("DELETE FROM t WHERE k = 7",), ("OPTIMIZE t",), WITH_DELETIONS),
    ),
    Bug(
        "a source that a winner emptied is dropped from a compaction's sight", rebase._gone,
        "else alive", "else deletion.span(0, 0)",
        compacted("OPTIMIZE t", "DELETE FROM t WHERE k < 10"),
    ),
    Bug(
        "rows of a source that was emptied are not carried over a compaction", Delta.carried,
        "if fragment_id in self.head.fragments:", "if fragment_id in self.head.fragments or some == self.base.alive(fragment_id):",
        overtaken(("DELETE FROM t WHERE k < 10",), ("OPTIMIZE t",)),
    ),
    Bug(
        "compositions are chained in reverse", Delta._followed,
        "made.place(fragment_id, current)", "(lambda m: m.place(m.sources[0], current))([*self.compositions.values()][-1 - [*self.compositions].index(output)])",
        overtaken(("DELETE FROM t WHERE k = 7",), ("OPTIMIZE t", "DELETE FROM t WHERE k IN (0, 3)", "OPTIMIZE t"), WITH_DELETIONS),
    ),
    Bug(
        "the output of a compaction is taken for new rows", Delta._from_base,
        "if made is None:", "if True:",
        overtaken(("UPDATE t SET v = v + 100",), ("OPTIMIZE t", FILES[0])),
    ),
    Bug(
        "the row map of a Z-order is ignored", Composition._at,
        "return ranks if self.permutation is None else", "return ranks if True else",
        pair("delete", "optimize in z-order"),
    ),
    Bug(
        "a bin that another compaction moved is moved once more", rebase.compaction,
        "_dead_in(made, delta) |", "deletion.span(0, 0) |",
        compacted("OPTIMIZE t", "OPTIMIZE t ZORDER BY (v)"),
    ),
    Bug(
        "new versions of rows that are gone are kept", rebase._moved,
        "if gone and any", "if False and any",
        pair("update", "delete"),
    ),
    Bug(
        "the delta is that of the last winner alone", rebase.delta_of,
        "base, now = tx.base.state(before)", "base, now = catalog.table_state(before, head.snapshot_id - 1)",
        interleaved(
            (change("update", "UPDATE t SET v = v + 1 WHERE k IN (1, 2)"),),
            (change("update", "UPDATE t SET v = v + 1 WHERE k IN (1, 2)"), change("append", "INSERT INTO t VALUES (1, 1)")),
        ),
    ),
    Bug(
        "statements are evaluated again in reverse order", rebase._reevaluated,
        "for entry in tx.log:", "for entry in reversed(tx.log):",
        interleaved(
            (change("update", "UPDATE t SET v = v + 1 WHERE k IN (1, 2)"), change("delete by value", "DELETE FROM t WHERE v > 8")),
            (change("append", "INSERT INTO t VALUES (1, 8)"),),
        ),
    ),
    Bug(
        "an UPDATE gives rows new ids", match._row_ids,
        "missing & (first < 0)", "missing | True",
        pair("update", "delete", "inline"),
    ),
    Bug(
        "the number of rows is that of the base", reconcile._rebase,
        "moved.correction", "0",
        pair("delete", "delete"),
    ),
    Bug(
        "what was read counts for nothing against an append", rules.rule,
        'mine == "shown" and', 'mine in ("read", "shown") and',
        trap(traps.test_31_an_append_that_counted_what_a_winner_appended_to),
    ),
    Bug(
        "what a winner defined anew is not noticed", meetings.meetings,
        "effect.kinds & _THEIRS", 'effect.kinds & {"append", "overwrite"}',
        pair(DELETE_AND_APPEND, "replace, not null and default", explicit=True),
    ),
    Bug(
        "the head is shown under its own names", reconcile.meet,
        "verdict.bound", "()",
        altered("ALTER TABLE t RENAME v TO w; INSERT INTO t VALUES (7, 7)", "UPDATE t SET v = v + 1", [(1, 2), (2, 3), (7, 8)]),
    ),
    Bug(
        "a column that is gone may be read", conflicts.missing,
        "for table_id in sorted(bound_names(mine, met, head)):", "for table_id in ():",
        altered("ALTER TABLE t DROP v; INSERT INTO t VALUES (9)", "DELETE FROM t WHERE v IS NULL", None),
    ),
    Bug(
        "an append that was superseded stays", reconcile._superseded,
        "replace(tx.work.changes, tables={})", "tx.work.changes",
        pair("append values", "overwrite"),
    ),
    Bug(
        "rows that were shown are compared as sets", compare._same_rows,
        "EXCEPT ALL", "EXCEPT",
        interleaved(
            (look("SELECT k FROM t WHERE k < 5"), change("append", "INSERT INTO u VALUES (0, 0)")),
            (change("append from itself", "INSERT INTO t SELECT k, v FROM t WHERE k = 1"),),
        ),
    ),
    Bug(
        "rows that were shown are always different", compare._same_rows,
        "== 0", "< 0",
        interleaved(
            (look("SELECT k FROM t"), change("append", "INSERT INTO u VALUES (0, 0)")),
            (change("update", "UPDATE t SET v = v + 1 WHERE k IN (1, 2)"),),
        ),
    ),
    Bug(
        "at serializable, rows of blind appends do not count as shown", Transaction._same,
        'self.isolation == "write serializable"', "True",
        saved("serializable", "LOOK t", "INSERT INTO u VALUES (1, 1)", "other: INSERT INTO t VALUES (4, 4)"),
    ),
    Bug(
        "at serializable, the number of rows told is not compared", Transaction._again,
        "done.rowcount != event.rowcount", "False",
        saved("serializable", "UPDATE t SET v = v + 1 WHERE k = 1", "other: INSERT INTO t VALUES (1, 4)"),
    ),
    Bug(
        "at serializable, an error told is not tried again", Transaction._fails_again,
        "return False", "return True",
        saved("serializable", "SELECT * FROM x", "INSERT INTO u VALUES (1, 1)", "other: CREATE TABLE x (k INTEGER, v INTEGER)"),
    ),
    Bug(
        "a replay forgets what was undone", Transaction._again,
        "self._again(event.events, touched)", "[]",
        saved(
            "write serializable", "SAVEPOINT a", "INSERT INTO t VALUES (1, 2)", "LOOK t", "ROLLBACK TO a", "INSERT INTO u VALUES (1, 1)",
            "other: UPDATE t SET v = v + 1 WHERE k = 1",
        ),
    ),
    Bug(
        "RETURNING gives what the first attempt did", Transaction.returned_of,
        "entry.returned is not None", "False",
        returned("UPDATE t SET v = v + 1 WHERE k < 3 RETURNING v", "UPDATE t SET v = 50 WHERE k = 1"),
    ),
    Bug(
        "what RETURNING gave is not compared", Transaction._again,
        "not self._returns_again(event, told, done, before)", "False",
        returned("DELETE FROM t USING s WHERE t.k = s.k RETURNING t.v", "UPDATE t SET v = 50 WHERE k = 1", "write serializable"),
    ),
    Bug(
        "rows of blind appends count against what RETURNING gave", Transaction._returns_again,
        'self.isolation != "write serializable"', "True",
        returned("UPDATE t SET v = v + 1 WHERE k < 3 RETURNING v", "INSERT INTO t VALUES (-1, -1)", "write serializable"),
    ),
    Bug(
        "at snapshot, two updates of one row pass", rebase._is_contested,
        "return bool(", "return False and bool(",
        at_snapshot("UPDATE t SET v = v + 1 WHERE k IN (1, 2)", "UPDATE t SET v = v + 5 WHERE k IN (1)"),
    ),
    Bug(
        "the precise check takes rows that matter for ones that do not", unaffected._holds_one,
        "return bool(done.rows.fetchall())", "return False",
        interleaved(
            (look("SELECT * FROM t WHERE k = 1"), change("append", "INSERT INTO u VALUES (0, 0)")),
            (change("delete", "DELETE FROM t WHERE k IN (1, 5)"),),
        ),
    ),
    Bug(
        "the precise check asks the rows that are gone only", unaffected._concerns,
        "(delta.head.defined_as(table), delta.added)", "(delta.base, {})",
        interleaved(
            (change("append from other", "INSERT INTO u SELECT k, v FROM t WHERE k = 5"),),
            (change("update key", "UPDATE t SET k = k + 1 WHERE v = 5"),),
        ),
    ),
)  # fmt: skip


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-").replace(",", ""))
def test_a_planted_bug_is_found(bug: Bug) -> None:
    bug.case()
    with planted(bug.where, bug.right, bug.wrong), pytest.raises(AssertionError):
        bug.case()
