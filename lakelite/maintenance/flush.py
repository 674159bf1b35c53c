"""Flush: many small inline fragments of a table become one Parquet fragment.

A flush is a compaction: it moves rows, keeps their row ids and order, changes none, and records its composition. What
winners delete in its sources meanwhile is carried over (`transaction/rebase.py`).
"""

from __future__ import annotations

from dataclasses import replace

from lakelite import composition
from lakelite.contents import Inline
from lakelite.model import Limits, Table, quote
from lakelite.storage import fragment as fragments
from lakelite.transaction import changes as ch
from lakelite.transaction.transaction import Transaction


def is_due(before: Inline, after: Inline, limits: Limits) -> bool:
    """Whether it is for this commit to flush: it took a table past so much inline that reading it costs more than a file would.

    One writer of many finds that: the one whose commit passes a bound, or a multiple of it where the flush before has failed.
    """

    def passed(least: int, old: int, new: int) -> bool:
        return new // least > old // least

    return passed(limits.flush_fragments + 1, before.fragments, after.fragments) or passed(limits.flush_rows + 1, before.rows, after.rows)


def flush(tx: Transaction, table: Table) -> None:
    """Stages the flush of `table` in `tx`, which has done nothing else; the caller commits it."""
    execution = tx.execution
    state = execution.view.state(table)
    scan = execution.engine.addressed(state, [f for f in state.fragments.values() if f.storage == "inline"])
    sources = list(scan.fragments.values())
    if not sources:
        return
    firsts = ", ".join(f"({number}, {i}, {f.first_row_id})" for i, (number, f) in enumerate(scan.fragments.items()))
    columns = ", ".join(f"s.{quote(c.name)}" for c in table.columns)
    row_id = quote("_lake_kept_row_id")
    rows = (
        f"SELECT {columns}, coalesce(s.{scan.row_id}, m.first + s.{scan.position}) AS {row_id}"
        f" FROM ({scan.sql}) s JOIN (VALUES {firsts}) m(source, place, first) ON m.source = s.{scan.source} ORDER BY m.place, s.{scan.position}"
    )
    place = replace(execution.place(), limits=replace(execution.limits, inline_rows=0, inline_bytes=0))
    staged = execution.keep(fragments.write(execution.engine, place, table, rows, {}, row_id=row_id))
    if staged is None:
        return
    read = [(f, state.vectors.get(f.fragment_id)) for f in sources]
    change = ch.TableChange(
        table,
        kinds=frozenset({"compaction"}),
        deleted={f.fragment_id: state.alive(f.fragment_id) for f in sources},
        staged={staged.fragment.fragment_id: staged},
        made={staged.fragment.fragment_id: composition.of(read)},
    )
    tx.work = replace(tx.work, changes=replace(tx.work.changes.with_change(change), blind=False))
