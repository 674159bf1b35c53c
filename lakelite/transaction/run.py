"""Which function runs which operation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakelite.errors import IntegrityError, NotSupportedError
from lakelite.language import statements as st
from lakelite.mapping.sets import belongs_to
from lakelite.storage import fragment as fragments
from lakelite.transaction import alter, constraints, define, describe, execute, merge, merge_branch, restore
from lakelite.transaction import changes as ch
from lakelite.transaction.execution import Call, Done, Execution

HANDLERS: dict[type, Callable[[Execution, ch.Work, Any, Call], Done]] = {
    st.Query: execute.query,
    st.CopyTo: execute.copy_to,
    st.Insert: execute.insert,
    st.CopyFrom: execute.copy_from,
    st.Append: execute.append,
    st.Delete: execute.delete,
    st.Truncate: execute.truncate,
    st.Update: execute.update,
    st.Merge: merge.merge,
    st.CreateSchema: define.create_schema,
    st.DropSchema: define.drop_schema,
    st.CreateTable: define.create_table,
    st.CreateTableAs: define.create_table_as,
    st.DropTable: define.drop_table,
    st.CreateTableLike: describe.create_table_like,
    st.CreateView: describe.create_view,
    st.DropView: describe.drop_view,
    st.RenameView: describe.rename_view,
    st.CommentOn: describe.comment_on,
    st.AlterTable: alter.alter_table,
    st.TuneTable: alter.tune_table,
    st.RestoreTable: restore.restore_table,
    st.MergeBranch: merge_branch.merge_branch,
}
READS_ONLY = (st.Query, st.CopyTo)


def run(execution: Execution, work: ch.Work, operation: st.Operation, call: Call, many: Sequence[Mapping[str, Any]] | None = None) -> Done:
    """Runs one operation that reads or writes tables; raises the statement's ordinary error and changes nothing then.

    `many`: the parameter sets of an INSERT … VALUES that runs for all of them at once.
    """
    handler = HANDLERS.get(type(operation))
    if handler is None:
        raise NotSupportedError(f"{type(operation).__name__} cannot be part of a transaction", hint="COMMIT first, and run it by itself")
    if many is not None:
        assert isinstance(operation, st.Insert)
        return _insert_many(execution, work, operation, call, many)
    done = handler(execution, work, operation, call)
    constraints.check_statement(execution, work, done.work, operation)
    return done


def _insert_many(execution: Execution, work: ch.Work, operation: st.Insert, call: Call, many: Sequence[Mapping[str, Any]]) -> Done:
    """An INSERT … VALUES for all parameter sets; an error of a constraint says with which set it is broken."""

    def insert(count: int) -> Done:
        done = execute.insert_many(execution, work, operation, call, many[:count])
        constraints.check_statement(execution, work, done.work, operation)
        return done

    def fails(count: int) -> bool:
        try:
            insert(count)
        except IntegrityError:
            return True
        return False

    try:
        return insert(len(many))
    except IntegrityError as error:
        belongs_to(error, bisect_left(range(1, len(many)), True, key=fails) + 1, len(many))
        raise


def again(execution: Execution, work: ch.Work, operation: st.Operation, call: Call, staged: tuple[fragments.Staged, ...], rowcount: int) -> Done:
    """The replay of a statement that read nothing of the lake: the rows of its first run, as they were, beside those that are there now."""
    done = execute.again(work, operation, call, staged, rowcount)
    constraints.check_statement(execution, work, done.work, operation)
    return done
