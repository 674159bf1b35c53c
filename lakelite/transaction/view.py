"""A snapshot as a transaction reads it: immutable content, loaded table by table when it is first needed."""

from __future__ import annotations

from lakelite.catalog.decoding import Row
from lakelite.catalog.store import Catalog
from lakelite.contents import Namespace, TableState
from lakelite.errors import OperationalError, Position, ProgrammingError
from lakelite.model import Table
from lakelite.transaction import definitions


class LakeView:
    """One snapshot of the lake. Not shared between sessions; the session's lease keeps what it reads from being removed."""

    def __init__(self, catalog: Catalog, snapshot_id: int, namespace: Namespace, states: dict[int, TableState] | None = None) -> None:
        self._catalog = catalog
        self.snapshot_id = snapshot_id
        self.namespace = namespace
        self._states = states or {}
        self._older: dict[int, tuple[TableState, int]] = {}
        self._actual: LakeView | None = None  # what is shown under other names here
        self._newer: LakeView | None = None  # the last one that `advanced` made: a commit asks for the head several times
        self._effects: tuple[int, list[Row]] | None = None  # what led to it

    @classmethod
    def load(cls, catalog: Catalog, snapshot_id: int) -> LakeView:
        return cls(catalog, snapshot_id, definitions.check(catalog.namespace(snapshot_id)))

    def state(self, table: Table) -> TableState:
        """The table's fragments and deletion vectors at this snapshot."""
        found = self._states.get(table.table_id)
        if found is None and self._actual is not None:
            found = self._states[table.table_id] = self._actual.state(self._actual.namespace.by_id[table.table_id]).defined_as(table)
        if found is None:
            older = self._older.pop(table.table_id, None)
            if older is None:
                found = self._catalog.table_state(table, self.snapshot_id)
            else:
                found = self._catalog.advance(older[0], table, older[1], self.snapshot_id)
                if older[1] < max(
                    self._catalog.row("removed_before", table_id=table.table_id, snapshot=self.snapshot_id)
                ):  # VACUUM removed what the step was read from
                    found = self._catalog.table_state(table, self.snapshot_id)
            self._states[table.table_id] = found
        return found

    @property
    def bound(self) -> frozenset[int]:
        """The tables that are shown under other names than their own."""
        own = {} if self._actual is None else self._actual.namespace.by_id
        return frozenset(k for k, table in self.namespace.by_id.items() if k in own and own[k] != table)

    def under(self, namespace: Namespace) -> LakeView:
        """The same snapshot under other names of its tables and columns (binding.py)."""
        if namespace is self.namespace:
            return self
        view = LakeView(self._catalog, self.snapshot_id, namespace)
        view._actual = self
        return view

    def advanced(self, head: int) -> LakeView:
        """The view of a newer snapshot. Tables that nobody touched since keep their states; the others read only what changed."""
        if head == self.snapshot_id:
            return self
        if self._actual is not None:
            return self._actual.advanced(head)
        if self._newer is None or self._newer.snapshot_id != head:
            self._newer = self._advanced(head)
        return self._newer

    def effects(self, head: int) -> list[Row]:
        """What was done to tables in (this snapshot, `head`]: snapshot, table, kinds, rows added and removed."""
        if self._actual is not None:
            return self._actual.effects(head)
        if self._effects is None or self._effects[0] != head:
            self._effects = head, self._catalog.rows("effects", base=self.snapshot_id, head=head)
        return self._effects[1]

    def _advanced(self, head: int) -> LakeView:
        effects = self.effects(head)
        if self.snapshot_id < self._catalog.row("removed_before", table_id=None, snapshot=head)[0]:  # VACUUM removed some of the records just read
            return LakeView.load(self._catalog, head)
        touched = {row[1] for row in effects}
        redefined = any(set(row[2].split(",")) & {"namespace", "create", "drop", "schema", "extend", "shrink"} for row in effects)
        namespace = definitions.check(self._catalog.namespace(head)) if redefined else self.namespace
        view = LakeView(self._catalog, head, namespace, {k: s for k, s in self._states.items() if k not in touched})
        view._older = {k: (s, self.snapshot_id) for k, s in self._states.items() if k in touched and k in namespace.by_id}
        view._older.update({k: v for k, v in self._older.items() if k in namespace.by_id and k not in view._states})
        return view


class PastView(LakeView):
    """A version that a session stays on. OperationalError for a table whose rows of then have expired."""

    def state(self, table: Table) -> TableState:
        found = super().state(table)  # before it is asked what is kept: VACUUM may come between
        check_kept(self._catalog, table, self.snapshot_id)
        return found


def check_version(catalog: Catalog, snapshot_id: int, position: Position | None = None) -> None:
    """ProgrammingError where there is no such version, OperationalError where it has expired."""
    is_kept, newest, oldest = catalog.row("is_kept_version", snapshot=snapshot_id)
    if is_kept:
        return
    if snapshot_id > newest or snapshot_id < 0:
        raise ProgrammingError(
            f"there is no version {snapshot_id}; the newest one is {newest}", hint="DESCRIBE HISTORY lists the versions", position=position
        )
    message = f"version {snapshot_id} has expired; the oldest kept one is {oldest}"
    raise OperationalError(message, hint="DESCRIBE HISTORY lists the kept versions", position=position)


def check_kept(catalog: Catalog, table: Table, snapshot_id: int, position: Position | None = None) -> None:
    """OperationalError if VACUUM has removed the rows that `table` had at a version, or was about to."""
    of_lake, of_table = catalog.row("oldest_kept", table_id=table.table_id, snapshot=snapshot_id)
    if snapshot_id < max(of_lake, of_table):
        what = f"version {snapshot_id}" if snapshot_id < of_lake else f"version {snapshot_id} of {table.qualified}"
        message = f"{what} has expired; the oldest kept one is {max(of_lake, of_table)}"
        raise OperationalError(message, hint="DESCRIBE HISTORY lists the kept versions", position=position)
