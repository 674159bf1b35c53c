"""One open lake as a session uses it: its DuckDB, its lease, its lock, its settings and its view of the head.

Starts transactions and pins what they read. Knows no statement: `session.py` runs them, `landing.py` commits them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from lakelite.catalog.store import Catalog
from lakelite.maintenance.compaction import Progress
from lakelite.model import MAIN, Branch, Isolation
from lakelite.opening import Opened
from lakelite.settings import DUCKDB_SETTINGS, OF_CONNECTION, Settings
from lakelite.storage import files
from lakelite.storage.engine import Engine
from lakelite.storage.files import LakePaths
from lakelite.storage.leases import SessionLease
from lakelite.transaction import commit as committing
from lakelite.transaction.execution import Execution, MergeReport
from lakelite.transaction.transaction import Transaction
from lakelite.transaction.view import LakeView, PastView, check_version

VERSIONS_KEPT = 64
_DUCKDB_SETTINGS = "SELECT lower(name), value, description FROM duckdb_settings()"


class Lake:
    """Used by one thread at a time: the session sees to it."""

    def __init__(self, opened: Opened, isolation: str, author: str | None) -> None:
        self.session_id = opened.session_id
        self.paths: LakePaths = opened.paths
        self.catalog: Catalog = opened.catalog
        self.settings = Settings(opened.catalog.settings(), isolation, author)
        self.lease = SessionLease(opened.paths, opened.session_id)
        try:
            spill = str(opened.paths.spill_folder(opened.session_id))
            self.engine = Engine(opened.paths, spill, opened.catalog.inline_rows, self.settings.limits.cache_bytes)
        except BaseException:
            self.lease.close()
            raise
        self.branch = MAIN
        self.view: LakeView | None = None
        self.pinned_version: int | None = None  # what all transactions read from now on, instead of the head
        self.progress: Progress | None = None  # who wants to know how far an OPTIMIZE is
        self._opened = opened
        self.merge = MergeReport()
        self._versions: dict[int, LakeView] = {}  # of time travel, as long as they are few
        self._locks_held = 0
        self._transactions = 0
        self._numbers = 0

    # Transactions and what they read.

    def start(self, *, explicit: bool, isolation: Isolation, read_only: bool) -> Transaction:
        """A transaction on the head, which is pinned until `unpin`."""
        view = self.pinned_view()
        self._transactions += 1
        execution = Execution(
            self.engine,
            self.catalog,
            self.paths,
            self.settings.limits,
            view,
            f"{self.session_id}-{self._transactions}",
            self._number,
            self._reserve,
            self.lease,
            self._versions,
            self.all_settings,
            self.branch.branch_id,
            merge=self.merge,
            temporaries=self.engine.temporary.current,
        )
        if explicit:
            self.engine.temporary.freeze()
        return Transaction(execution, explicit=explicit, isolation=isolation, read_only=read_only, now_us=committing.now_us())

    def unpin(self, tx: Transaction) -> None:
        """The end of a transaction: what it read may go."""
        for snapshot in (tx.first_base, *tx.execution.pinned):
            self.lease.unpin(snapshot)

    def pinned_view(self) -> LakeView:
        """The head, pinned by the lease. An older snapshot is pinned first, so that nothing between the two reads can be vacuumed."""
        if self.pinned_version is not None and self.view is not None:
            self.lease.pin(self.pinned_version)
            return self.view
        first = self.view.snapshot_id if self.view else self.catalog.head(self.branch.branch_id)
        self.lease.pin(first)
        try:
            self.view = committing.view_of_head(self.catalog, self.view, self.branch.branch_id)
            self.lease.pin(self.view.snapshot_id)
        finally:
            self.lease.unpin(first)
        return self.view

    def use(self, branch: Branch) -> None:
        """What begins from now on is on that branch. No transaction is open."""
        self.branch, self.view = branch, None

    def stay_at(self, version: int | None) -> None:
        """From now on transactions read a version of the lake; None: the head again. ProgrammingError, OperationalError: there is no such one."""
        if version is not None:
            self.lease.pin(version)
            try:
                check_version(self.catalog, version)
                view: LakeView | None = PastView.load(self.catalog, version)
            except BaseException:
                self.lease.unpin(version)
                raise
        else:
            view = None
        if self.pinned_version is not None:
            self.lease.unpin(self.pinned_version)
        self.view, self.pinned_version = view, version

    @contextmanager
    def head(self) -> Iterator[LakeView]:
        """The head, pinned while the block runs."""
        view = self.pinned_view()
        try:
            yield view
        finally:
            self.lease.unpin(view.snapshot_id)

    def trim(self) -> None:
        """Bounds what is cached; called between statements."""
        self.engine.trim()
        if len(self._versions) > VERSIONS_KEPT:
            self._versions.clear()

    def all_settings(self) -> list[tuple[str, str, str, str]]:
        """Name, value, scope and description of each setting, DuckDB's that are passed on included, by name.

        The scope is `lake` where SET GLOBAL sets it for all connections to come, else `connection`.
        """
        theirs = {name: (value, about) for name, value, about in self.engine.do(_DUCKDB_SETTINGS) if name in DUCKDB_SETTINGS}
        ours = {**self.settings.all(), **theirs}
        of_connection = OF_CONNECTION | DUCKDB_SETTINGS
        return [(name, value, "connection" if name in of_connection else "lake", about) for name, (value, about) in sorted(ours.items())]

    # The lock and ids.

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The commit lock; re-entrant for this session."""
        if self._locks_held == 0:
            self._opened.lock.acquire(self.settings.limits.lock_timeout_ms)
        self._locks_held += 1
        try:
            self.catalog.wait_at_most(self.settings.limits.lock_timeout_ms)
            yield
        finally:
            self._locks_held -= 1
            if self._locks_held == 0:
                self._opened.lock.release()

    def _reserve(self, counter: str, count: int) -> int:
        """Lake-wide ids for new tables and columns: the files that a transaction writes already carry them. Those of a rollback stay unused."""
        with self.locked(), self.catalog.transaction("reserving ids") as writer:
            return writer.reserve(counter, count)

    def spill_folder(self) -> str:
        """A new folder for another DuckDB of this session to spill into. (DuckDB makes no more than the last part of its path.)"""
        folder = self.paths.spill_folder(self.session_id) / f"view-{self._number()}"
        folder.mkdir(parents=True)
        return str(folder)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # The end.

    def close(self, first: Sequence[Callable[[], None]]) -> None:
        """Does what is to be done `first`, then frees everything, whatever goes wrong on the way; raises the first error."""
        acts = [*first, self.engine.close, self.lease.close]
        _do_all([*acts, lambda: files.remove_spill_folder(self.paths, self.session_id), self._opened.close])


def _do_all(acts: Sequence[Callable[[], None]]) -> None:
    """Does each of them, whatever becomes of the others; raises the first error."""
    failed: list[BaseException] = []
    for act in acts:
        try:
            act()
        except BaseException as error:
            failed.append(error)
    if failed:
        for other in failed[1:]:
            failed[0].add_note(f"after it: {other}")
        raise failed[0]
