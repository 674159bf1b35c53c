"""Tables that are not the lake's: what a caller holds as a DataFrame, an Arrow table, a reader, a dataset or any Arrow stream.

Owns which objects are tables and what DuckDB is given for each: the object itself where it can be read as often as one likes,
else a RecordBatchReader, which refuses to be read twice. Imports none of pandas, polars and pyarrow before an object asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from lakelite.errors import DataError, Error, NotSupportedError, OperationalError, ProgrammingError
from lakelite.mapping.names import near
from lakelite.model import fold
from lakelite.storage.turns import Turns

if TYPE_CHECKING:
    import duckdb


class Variables(Protocol):
    """The caller's variables."""

    def __call__(self, name: str, /) -> Any:
        """The value of one; None where there is none of that name."""

    def names(self) -> Iterable[str]:
        """The names of all of them."""


_LAZY = (("polars", "LazyFrame"), ("pyarrow.dataset", "Dataset"))
_MANY_READS = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch"),
               ("pyarrow.dataset", "Dataset"))  # fmt: skip
_COLUMNS_ALONE = (("pandas", "Series"), ("polars", "Series"), ("pyarrow", "Array"), ("pyarrow", "ChunkedArray"))
_WHAT_IS_ONE = "a table is a pandas or Polars DataFrame, a pyarrow Table, RecordBatchReader or Dataset, or any object with __arrow_c_stream__"
_OF_ROWS = "pa.Table.from_pylist([{…}, …]) of pyarrow makes a table of dicts, pa.table({…}) one of columns; executemany takes rows as they are"


class Frames:
    """The caller's tables that statements name, shown to DuckDB under the names of their variables while a statement runs.

    Each object is opened once per statement: a reader that was read is not taken for an empty one.
    """

    def __init__(self, work: duckdb.DuckDBPyConnection, turns: Turns) -> None:
        """`work`: the cursor that is used for more than one statement; `turns`: is told when a caller's objects are used."""
        self._work = work
        self._turns = turns
        self._variables: Variables | None = None
        self._opened: dict[str, tuple[str, Any]] = {}
        self._shown: set[str] = set()

    @contextmanager
    def visible(self, variables: Variables | None) -> Iterator[None]:
        """A statement runs in the block, whose caller has these variables. What it used is let go at the end."""
        before = self._variables, self._opened, self._shown
        self._variables, self._opened, self._shown = variables, {}, set()
        try:
            yield
        finally:
            for name in self._shown:
                self._work.unregister(name)
            self._variables, self._opened, self._shown = before

    def variable(self, name: str) -> Any:
        """The value of the caller's variable, or None."""
        return None if self._variables is None else self._variables(name)

    def near(self, name: str) -> list[str]:
        """The names of the caller's variables that hold a table and that `name` may be a slip of."""
        found = [] if self._variables is None else near(name, self._variables.names())
        return [one for one in found if is_table(self.variable(one))]

    def described(self, name: str) -> str | None:
        """What there is to say of the caller's variable of that name, which was not found as a table; None if there is none."""
        value = self.variable(name)
        if value is None:
            return None
        why = ": in a query, its name alone means it" if is_table(value) else ", and no table"
        return f"the variable {name} is {described(value)}{why}"

    def named(self, names: Iterable[str]) -> dict[str, Any]:
        """Those of `names` that are variables which hold a table, each with what DuckDB reads."""
        return {name: opened for name in names if (opened := self._open(name)) is not None}

    def _open(self, name: str) -> Any:
        value = self.variable(name)
        if value is None or not is_table(value):
            return None
        known, opened = self._opened.get(fold(name), (name, None))
        if known != name:
            raise ProgrammingError(f"{known} and {name} are two variables, but one name in SQL", hint="rename one of them")
        if opened is None:
            self._turns.uses(reads=False)
            opened = scannable(value)
            self._opened[fold(name)] = (name, opened)
        return opened

    @property
    def opened(self) -> frozenset[str]:
        """The names, folded, of those that the statement has used."""
        return frozenset(self._opened)

    @property
    def are_lazy(self) -> bool:
        """Whether one of the tables that were opened is computed when it is read, and may be another one then."""
        return any(_is_one(opened, _LAZY) for _, opened in self._opened.values())

    def hold(self, name: str) -> Any:
        """That table for more than one reading: the rows of a reader are taken into memory; DataError if they cannot be read."""
        opened = self._opened[fold(name)][1]
        if not can_be_read_again(opened):
            try:
                opened = opened.read_all()
            except Exception as error:  # a stranger's code gives the rows
                raise DataError(f"reading {name} failed: {error}", hint="look at the object that gives the rows") from error
            self._opened[fold(name)] = (name, opened)
        return opened

    def show(self, tables: Mapping[str, Any], cursor: duckdb.DuckDBPyConnection) -> None:
        """Makes names mean tables, for `cursor`, which is going to read them."""
        if tables:
            self._turns.uses(reads=True)
        for name, opened in tables.items():
            _register(cursor, name, opened)
            if cursor is self._work:
                self._shown.add(name)


def _register(cursor: duckdb.DuckDBPyConnection, name: str, opened: Any) -> None:
    """NotSupportedError for a DataFrame with a column whose type DuckDB cannot read; it names the column, which DuckDB does not."""
    import duckdb

    try:
        cursor.register(name, opened)
    except duckdb.NotSupportedError as error:
        columns = {str(column): str(dtype) for column, dtype in getattr(opened, "dtypes", {}).items()}
        found = next((column for column, dtype in columns.items() if f"'{dtype}'" in str(error)), None)
        if found is None:
            raise
        message = f'the column "{found}" of the DataFrame is of the type {columns[found]}, which cannot be read'
        raise NotSupportedError(message, hint=f'convert it, for instance to text: df["{found}"].astype(str)') from error


class Rows:
    """What a caller handed over to be read, until `close`. `kind`: of what class it is, for a person."""

    def __init__(self, value: object) -> None:
        """ProgrammingError if `value` is no table."""
        self.kind = described(value)
        self._scannable: Any = scannable(value)

    @property
    def scannable(self) -> Any:
        """What DuckDB reads; OperationalError once it was closed."""
        if self._scannable is None:
            raise OperationalError(f"the rows of {self.kind} were let go and cannot be read again", hint="run the transaction again")
        return self._scannable

    def close(self) -> None:
        """Lets the rows go."""
        self._scannable = None


def is_table(value: object) -> bool:
    """Whether `value` is something whose rows can be read; a proxy of what is not there (it raises whatever it is asked) is none."""
    if issubclass(type(value), type) or _is_one(value, _COLUMNS_ALONE):
        return False
    try:
        streams = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    except Exception:  # a stranger's code answers
        return False
    return streams or _is_one(value, (*_MANY_READS, ("pyarrow.dataset", "Scanner")))


def scannable(value: object) -> Any:
    """What DuckDB is given to read the rows of `value`; ProgrammingError if it is no table. A stream is opened here, once."""
    if not is_table(value):
        raise ProgrammingError(f"{described(value)} is not a table", hint=_hint(value))
    if _is_one(value, _MANY_READS):
        _check_types(value, value)
        return value
    try:
        opened = _opened(value)
        _check_types(opened, value)
        return opened
    except Error:
        raise
    except Exception as error:  # what a stranger's object raises when it is opened can be anything
        raise ProgrammingError(f"the rows of {described(value)} cannot be read: {error}", hint=_WHAT_IS_ONE) from error


def _check_types(opened: Any, value: object) -> None:
    """NotSupportedError for a column of Arrow whose type DuckDB cannot read; it names the column, which DuckDB does not."""
    if type(opened).__module__.partition(".")[0] != "pyarrow":
        return
    arrow = sys.modules["pyarrow"]
    for field in opened.schema:
        if kind := next((kind for kind in _parts(field.type) if arrow.types.is_float16(kind) or arrow.types.is_decimal256(kind)), None):
            message = f'the column "{field.name}" of {described(value)} is of the type {kind}, which cannot be read'
            raise NotSupportedError(message, hint="cast it before, for instance to float64 or string")


def _parts(kind: Any) -> Iterator[Any]:
    """A type of Arrow and those inside of it."""
    yield kind
    for index in range(kind.num_fields):
        yield from _parts(kind.field(index).type)


def _opened(value: Any) -> Any:
    import pyarrow as pa

    if isinstance(value, pa.RecordBatchReader):
        return value
    if _is_one(value, (("pyarrow.dataset", "Scanner"),)):
        return value.to_reader()
    return pa.RecordBatchReader.from_stream(value) if hasattr(value, "__arrow_c_stream__") else pa.record_batch(value)


def _hint(value: object) -> str:
    if issubclass(type(value), list | tuple | dict):  # a proxy of nothing has no __class__ to be asked for
        return _OF_ROWS
    return "use its to_frame(), or put it into a table" if _is_one(value, _COLUMNS_ALONE) else _WHAT_IS_ONE


def can_be_read_again(scannable_: Any) -> bool:
    """Whether what `scannable` gave has its rows for a second reading too."""
    return _is_one(scannable_, _MANY_READS)


def column_names(scannable_: Any) -> list[str]:
    """The names of its columns as they stand in it: there may be two of a name, which DuckDB would rename. ProgrammingError if it cannot tell."""
    if _is_one(scannable_, (("pandas", "DataFrame"),)):
        return [str(name) for name in scannable_.columns]
    if _is_one(scannable_, (("polars", "LazyFrame"),)):
        try:
            return list(scannable_.collect_schema().names())
        except Exception as error:  # of Polars, or of whatever the plan reads
            raise ProgrammingError(f"the columns of the LazyFrame cannot be told: {error}", hint="collect() it first") from error
    return list(scannable_.columns if _is_one(scannable_, (("polars", "DataFrame"),)) else scannable_.schema.names)


def index_names(scannable_: Any) -> list[str]:
    """The names that the index of a pandas DataFrame has: its values are no column."""
    index = scannable_.index.names if _is_one(scannable_, (("pandas", "DataFrame"),)) else []
    return [str(name) for name in index if name is not None]


def described(value: object) -> str:
    """What `value` is, in words: "a DataFrame of pandas", "an int"."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    article = "an" if kind.__name__[:1].lower() in "aeio" else "a"
    return f"{article} {kind.__name__}" + ("" if library in ("builtins", "__main__") else f" of {library}")


def _is_one(value: object, kinds: tuple[tuple[str, str], ...]) -> bool:
    """Whether `value` is of one of the classes (module, name). A module that nobody imported has no objects."""
    return any((module := sys.modules.get(name)) is not None and issubclass(type(value), getattr(module, kind, ())) for name, kind in kinds)
