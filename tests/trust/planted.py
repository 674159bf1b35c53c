"""The bugs that the harnesses have to find: what each is, how it is planted, and which harness finds it.

The list is that of the design (reliability.md). A row names a bug of `interleave/test_planted.py` or of `bugs.py`, which have tests of
their own, or plants one itself; then `test_planted_rows.py` shows that its case passes without it and fails with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import interleave.test_traps as traps
from interleave.test_planted import Bug, compacted, pair, trap

import lakelite
from lakelite.storage import statistics
from lakelite.transaction import commit, publish, rebase, reconcile
from lakelite.transaction.transaction import Transaction
from trust import elle, partition


@dataclass(frozen=True, slots=True)
class Row:
    """`found_by`: the harness of tier 1. `planted`: a bug with its case; or the name of one that is planted, and found, elsewhere: `where`."""

    name: str
    found_by: str
    planted: Bug | str
    where: str = "test_planted_rows.py"


def lists(level: str) -> Callable[[], None]:
    """List-append in threads."""

    def run() -> None:
        wrong = elle.in_threads(1, 15, [level])
        assert not wrong, wrong[:3]

    return run


def skew() -> None:
    """The smallest history of list-append that only a conflict keeps in order."""
    with tempfile.TemporaryDirectory() as folder:
        path, level = next(lake for lake in elle.prepared(Path(folder)) if lake[1] == "write serializable")
        with lakelite.connect(path, autocommit=True) as one, lakelite.connect(path, autocommit=True) as other:
            for con, k in ((one, 0), (other, 1)):
                con.execute("BEGIN")
                assert con.execute(f"SELECT v FROM l WHERE k = {1 - k}").fetchall() == [([],)]
                con.execute(f"UPDATE l SET v = list_append(v, {k + 7}) WHERE k = {k}")
            landed = [_commits(con) for con in (one, other)]
        lists = [[([("read", f"l{1 - k}", ()), ("append", f"l{k}", (k + 7,))], landed[k])] for k in (0, 1)]
        wrong, _, _ = elle.judged([(path, level)], [[one] for one in lists])
        assert not wrong, wrong


def _commits(con: Any) -> bool:
    try:
        con.execute("COMMIT")
    except lakelite.TransactionConflict:
        return False
    return True


def parts() -> None:
    figures = partition.run(5, 12)
    assert not figures.failures, figures.failures[0].what


def pruned() -> None:
    made: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:

        def connect(**options: Any) -> Any:
            made.append(lakelite.connect(Path(folder) / "lake", **{"autocommit": True, **options}))
            return made[-1]

        connect().execute("CREATE TABLE t (k INTEGER, v INTEGER); INSERT INTO t SELECT range, range FROM range(10)")
        try:
            traps.test_17_a_base_that_was_pruned_is_refused_or_in_autocommit_run_on_the_head(connect, Path(folder))
        finally:
            for con in made:
                con.close()


RESOLVER, FILES = "interleave/test_planted.py", "bugs.py"
ROWS = (
    Row(
        "read version taken at commit", "elle",
        Bug("read version", commit.commit, "settled = _catch_up(tx, landing)",
            "settled = tx.move(tx.base.advanced(landing.catalog.head(tx.execution.branch)), tx.work, 0) or ()", lists("write serializable")),
    ),
    Row("delete against update merged as two deletes", "pairs", "positions are united and nothing is evaluated again", RESOLVER),
    Row("no file sync", "power", "no sync of files", FILES),
    Row("no directory sync", "power", "no sync of directories", FILES),
    Row("synchronous NORMAL", "power", "synchronous NORMAL", FILES),
    Row("rank off by one", "compaction", "a rank is one too high", RESOLVER),
    Row("deletion vector overwritten instead of unioned", "kill", "deletion vector overwritten", FILES),
    Row(
        "late deletes ignored by a compaction", "compaction",
        Bug("late deletes", rebase.compaction, "_dead_in(made, delta) |", "deletion.span(0, 0) |", compacted("OPTIMIZE t", "DELETE FROM t WHERE k = 3")),
    ),
    Row("sweep without the liveness test", "kill", "sweep without asking who lives", FILES),
    Row("plain BEGIN", "foreign", "plain BEGIN", FILES),
    Row("two compactions of one file allowed", "compaction", "a bin that another compaction moved is moved once more", RESOLVER),
    Row(
        "pruned record ignored", "traps",
        Bug("pruned", reconcile.meet, "if [winner.parent_id for winner in won] != line[:-1] or line[-1] != head.snapshot_id:", "if False:", pruned),
    ),
    Row(
        "replay applied twice", "pairs",
        Bug("replay", Transaction.replay, "differing = self._again(events, touched)",
            "differing = self._again(events, touched) + self._again(events, touched)", trap(traps.test_31_an_append_that_counted_what_a_winner_appended_to)),
    ),
    Row("compositions chained in reverse", "compaction", "compositions are chained in reverse", RESOLVER),
    Row(
        "an id reused", "elle",
        Bug("row ids", publish._add_fragment, 'writer.reserve("row", fragment.row_count)', "1", lists("serializable")),
    ),
    Row(
        "stale statistics that skip a fragment", "partition",
        Bug("statistics", statistics._from_one, 'maximum=found.get("max")', 'maximum=found.get("min")', parts),
    ),
    Row(
        "re-evaluation that misses rows a winner changed", "pairs",
        Bug("re-evaluation", rebase.rebase, "(new := delta.added)",
            "(new := {f: p for f, p in delta.added.items() if not delta.head.fragments[f].has_row_ids})", pair("delete by value", "update into range")),
    ),
    Row("a superseded append that leaves rows", "pairs", "an append that was superseded stays", RESOLVER),
    Row(
        "what was shown is not looked at again", "elle",
        Bug("shown", Transaction.look_again_at, "event.may_change(touched) and", "False and", skew),
    ),
)  # fmt: skip
