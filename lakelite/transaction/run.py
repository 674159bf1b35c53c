"""Which function runs which operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakelite.errors import NotSupportedError
from lakelite.language import statements as st
from lakelite.transaction import alter, define, describe, execute, restore
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
    st.RestoreTable: restore.restore_table,
}
READS_ONLY = (st.Query, st.CopyTo)


def run(execution: Execution, work: ch.Work, operation: st.Operation, call: Call) -> Done:
    """Runs one operation that reads or writes tables; raises the statement's ordinary error and changes nothing then."""
    handler = HANDLERS.get(type(operation))
    if handler is None:
        raise NotSupportedError(f"{type(operation).__name__} cannot be part of a transaction")
    return handler(execution, work, operation, call)
