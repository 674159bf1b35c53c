"""The adapter for Harlequin, the SQL IDE of the terminal, which finds it as `harlequin -a lakelite LAKE`.

Promises: threads of Harlequin's may use it at once; every error is one of Harlequin's own classes. The tree of tables shows what is
committed on the branch of the connection, and is read beside it: a statement that runs does not delay it, and it opens no transaction.
Needs Harlequin, and only Harlequin imports this module.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harlequin.adapter import HarlequinAdapter, HarlequinConnection, HarlequinCursor
from harlequin.autocomplete.completion import HarlequinCompletion
from harlequin.catalog import Catalog, CatalogItem
from harlequin.exception import HarlequinConfigError, HarlequinConnectionError, HarlequinError, HarlequinQueryError
from harlequin.options import HarlequinAdapterOption, TextOption
from harlequin.transaction_mode import HarlequinTransactionMode

import lakelite
from lakelite.catalog.system import VIEWS
from lakelite.errors import Error
from lakelite.interfaces.commands.command import written
from lakelite.interfaces.repl.vocabulary import OURS
from lakelite.interfaces.repl.words import KEYWORDS, TYPES
from lakelite.interfaces.values import plain
from lakelite.language.tokens import shown_name
from lakelite.model import DEFAULT_LEVEL, MAIN_BRANCH, RESERVED_SCHEMA

if TYPE_CHECKING:
    import pyarrow as pa

_LABELS = {
    "BOOLEAN": "t/f", "TINYINT": "#", "SMALLINT": "#", "INTEGER": "#", "BIGINT": "##", "HUGEINT": "###", "UTINYINT": "u#", "USMALLINT": "u#",
    "UINTEGER": "u#", "UBIGINT": "u##", "UHUGEINT": "u##", "FLOAT": "#.#", "DOUBLE": "#.#", "DECIMAL": "#.#", "VARCHAR": "s", "ENUM": "s",
    "JSON": "{}", "STRUCT": "{}", "MAP": "{m}", "BLOB": "0b", "BIT": "010", "UUID": "uid", "DATE": "d", "TIME": "t", "INTERVAL": "|-|",
    "TIMESTAMP": "ts", "TIMESTAMP WITH TIME ZONE": "ttz", "TIME WITH TIME ZONE": "ttz",
}  # fmt: skip
_FUNCTIONS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_name ~ '^[a-z]' ORDER BY 1"
_KEYWORD_RANK, _FUNCTION_RANK = 100, 1000  # Harlequin's own
_OPTIONS: list[HarlequinAdapterOption] | None = [
    TextOption("branch", "The branch that the connection is on.", default=MAIN_BRANCH),
    TextOption("author", "Who is recorded with every snapshot."),
    TextOption("isolation", "The level of its transactions.", default=DEFAULT_LEVEL),
]

Relation = tuple[str, str, str, Sequence[tuple[str, str]]]  # schema, name, "t" or "v", name and type of each column


class LakeliteCursor(HarlequinCursor):
    """A result."""

    def __init__(self, cursor: lakelite.Cursor) -> None:
        self._cursor = cursor
        self._limit: int | None = None

    def columns(self) -> list[tuple[str, str]]:
        return [(name, _label(str(kind))) for name, kind, *_ in self._cursor.description or ()]

    def set_limit(self, limit: int) -> LakeliteCursor:
        self._limit = limit
        return self

    def fetchall(self) -> pa.Table:
        """All rows, or with a limit the first ones; no more than those are held then."""
        with _as(HarlequinQueryError, "lakelite could not read the result"):
            if self._limit is None:
                return self._cursor.to_arrow()
            description = self._cursor.description or []
            return _table([(name, str(kind)) for name, kind, *_ in description], self._cursor.fetchmany(self._limit))


class LakeliteConnection(HarlequinConnection):
    """A connection to a lake."""

    def __init__(self, connection: lakelite.Connection, path: str, ending: ExitStack, *, init_message: str = "") -> None:
        """`path`: of its lake. `ending`: what ends with it."""
        super().__init__(init_message=init_message)
        self.init_message = init_message
        self._connection = connection
        self._path = path
        self._ending = ending

    def execute(self, query: str) -> LakeliteCursor | None:
        with _as(HarlequinQueryError, "lakelite could not run the query"):
            cursor = self._connection.execute(query)
        return None if cursor.description is None else LakeliteCursor(cursor)

    def cancel(self) -> None:
        self._connection.interrupt()

    def get_catalog(self) -> Catalog:
        with _as(HarlequinQueryError, "lakelite could not list the tables"), self._beside() as connection:
            schemas = [row[1] for row in connection.execute("SHOW SCHEMAS").fetchall()]
            relations = [*_relations(connection), *_system_views()]
        return Catalog([_schema(name, [r for r in relations if r[0] == name]) for name in schemas])

    def get_completions(self) -> list[HarlequinCompletion]:
        with _as(HarlequinQueryError, "lakelite could not list the functions"), self._beside() as connection:
            functions = [*OURS, *(row[0] for row in connection.execute(_FUNCTIONS).fetchall())]
        return [
            *_completions(sorted(word.lower() for word in KEYWORDS), "kw", _KEYWORD_RANK),
            *_completions(sorted(word.lower() for word in TYPES), "type", _KEYWORD_RANK),
            *_completions(functions, "fn", _FUNCTION_RANK),
        ]

    @contextmanager
    def _beside(self) -> Iterator[lakelite.Connection]:
        """Another connection, which sees what is committed on the same branch."""
        branch = self._connection.branch
        with closing(lakelite.connect(self._path, autocommit=True, read_only=True, create=False, branch=branch)) as connection:
            yield connection

    @property
    def transaction_mode(self) -> HarlequinTransactionMode:
        if self._connection.autocommit:
            return HarlequinTransactionMode("Auto")
        return HarlequinTransactionMode("Manual", commit=self._commit, rollback=self._connection.rollback)

    def toggle_transaction_mode(self) -> HarlequinTransactionMode:
        """Auto or Manual; an open transaction is committed."""
        self._commit()
        self._connection.autocommit = not self._connection.autocommit
        return self.transaction_mode

    def _commit(self) -> None:
        with _as(HarlequinQueryError, "lakelite could not commit"):
            self._connection.commit()

    def close(self) -> None:
        self._ending.close()


class LakeliteAdapter(HarlequinAdapter):
    """Opens a lake, or without a path a temporary one."""

    ADAPTER_OPTIONS = _OPTIONS
    IMPLEMENTS_CANCEL = True
    IMPLEMENTS_READ_ONLY = True
    ADAPTER_DETAILS = f"lakelite {lakelite.__version__}"

    def __init__(self, conn_str: Sequence[str], read_only: bool = False, **options: Any) -> None:
        places = [place for place in conn_str if place]
        if len(places) > 1:
            raise HarlequinConfigError("lakelite opens one lake, the directory that is given", "Harlequin could not initialize the adapter.")
        self._path = places[0] if places else None
        self._read_only = read_only
        self._options = {name: value for name, value in options.items() if name in ("branch", "author", "isolation") and value}

    @property
    def connection_id(self) -> str:
        return "" if self._path is None else str(Path(self._path).resolve())

    def connect(self) -> LakeliteConnection:
        with ExitStack() as stack, _as(HarlequinConnectionError, "lakelite could not open the lake"):
            path = self._path or str(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakelite-"))) / "lake")
            connection = lakelite.connect(path, autocommit=True, read_only=self._read_only, **self._options)
            stack.callback(connection.close)
            return LakeliteConnection(connection, path, stack.pop_all())


@contextmanager
def _as(kind: type[HarlequinError], title: str) -> Iterator[None]:
    """Errors of lakelite's become Harlequin's."""
    try:
        yield
    except Error as error:
        raise kind(str(error), title) from error


def _relations(connection: lakelite.Connection) -> Iterator[Relation]:
    views = set(connection.execute("SELECT schema_name, view_name FROM lake.views").fetchall())
    for _, schema, name, columns, types, *_ in connection.execute("SHOW ALL TABLES").fetchall():
        yield schema, name, "v" if (schema, name) in views else "t", list(zip(columns, types, strict=True))


def _system_views() -> Iterator[Relation]:
    for name, view in VIEWS.items():
        yield RESERVED_SCHEMA, name, "v", view.columns


def _schema(name: str, relations: Iterable[Relation]) -> CatalogItem:
    shown = shown_name(name)
    return CatalogItem(shown, shown, name, "sch", [_relation(*relation) for relation in relations], "SCHEMA")


def _relation(schema: str, name: str, label: str, columns: Sequence[tuple[str, str]]) -> CatalogItem:
    whole = f"{shown_name(schema)}.{shown_name(name)}"
    items = [CatalogItem(f"{whole}.{shown_name(c)}", shown_name(c), c, _label(kind), type_name=kind) for c, kind in columns]
    return CatalogItem(whole, written(schema, name), name, label, items, "VIEW" if label == "v" else "BASE TABLE")


def _label(kind: str) -> str:
    """A type in three characters at most."""
    if kind.endswith("]"):
        return "[]"
    return _LABELS.get(kind.partition("(")[0], "ts" if kind.startswith("TIMESTAMP") else "?")


def _completions(words: Iterable[str], label: str, rank: int) -> Iterator[HarlequinCompletion]:
    return (HarlequinCompletion(word, label, word, rank) for word in words)


def _table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows of values as an Arrow table; columns of values that Arrow has not as text."""
    import pyarrow as pa

    def column(number: int, kind: str) -> pa.Array:
        values = [row[number] for row in rows]
        try:
            return pa.array(values)
        except (pa.ArrowException, OverflowError):
            return pa.array([None if value is None else plain(value, kind) for value in values], pa.string())

    return pa.Table.from_arrays([column(number, kind) for number, (_, kind) in enumerate(columns)], names=[name for name, _ in columns])
