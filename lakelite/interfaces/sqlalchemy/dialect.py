"""The dialect: how SQLAlchemy connects to a lake, what a lake can do, and how its transactions are used.

The URL is `lakelite:///path` (relative; `lakelite:////path` from the root), `lakelite://` a temporary lake. Its query takes the
arguments of `lakelite.connect`, and any setting of SET. Transactions are serializable unless the URL says otherwise: SQLAlchemy goes by
the numbers of rows that its statements tell, and only that level promises them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from sqlalchemy import Table, exc, pool, util
from sqlalchemy.engine import URL
from sqlalchemy.sql.compiler import InsertmanyvaluesSentinelOpts as Sentinel

from lakelite.interfaces.sqlalchemy.compiler import LakeliteCompiler, Preparer
from lakelite.interfaces.sqlalchemy.ddl import LakeliteDDL
from lakelite.interfaces.sqlalchemy.reflection import DEFAULT_SCHEMA, Reflection
from lakelite.interfaces.sqlalchemy.types import COLSPECS, TypeCompiler

AUTOCOMMIT = "AUTOCOMMIT"
_SWITCHES = ("read_only", "create", "preload")
_ARGUMENTS = ("isolation", "branch", "author", *_SWITCHES)


class LakeliteDialect(Reflection):
    """SQLAlchemy's view of lakelite."""

    name = "lakelite"
    driver = "lakelite"
    default_paramstyle = "numeric_dollar"
    supports_statement_cache = True

    statement_compiler = LakeliteCompiler
    ddl_compiler = LakeliteDDL
    type_compiler_cls = TypeCompiler
    preparer = Preparer
    colspecs = COLSPECS
    construct_arguments = [(Table, {"partitioned_by": None, "with": None})]  # noqa: RUF012

    supports_alter = False  # of foreign keys, which are left out; ALTER TABLE is there
    supports_comments = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_enum = True
    supports_native_uuid = True
    supports_default_values = True
    supports_default_metavalue = True
    supports_empty_insert = False
    supports_multivalues_insert = True
    div_is_floordiv = False
    postfetch_lastrowid = False
    insert_returning = True
    update_returning = True
    delete_returning = True
    use_insertmanyvalues = True
    insertmanyvalues_max_parameters = 65_535  # of a statement, in DuckDB
    insertmanyvalues_implicit_sentinel = Sentinel.AUTOINCREMENT | Sentinel.IDENTITY | Sentinel.SEQUENCE | Sentinel.USE_INSERT_FROM_SELECT

    def __init__(self, paramstyle: Any = None, json_serializer: Any = None, json_deserializer: Any = None, **kw: Any) -> None:
        super().__init__(paramstyle=paramstyle or "numeric_dollar", **kw)
        self._json_serializer, self._json_deserializer = json_serializer, json_deserializer

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        import lakelite

        return lakelite

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """One connection for a temporary lake, which ends with it; else a queue of them, each with transactions of its own."""
        return pool.QueuePool if _path(url) else pool.StaticPool

    def create_connect_args(self, url: URL) -> Any:
        if url.host or url.username:
            raise exc.ArgumentError("a lake has no host: the URL is lakelite:///path, or lakelite:////path from the root of the file system")
        given = dict(url.query)
        switches = {name: util.asbool(given.pop(name)) for name in _SWITCHES if name in given}
        arguments = {name: given.pop(name) for name in _ARGUMENTS if name in given}
        return ([_path(url) or ":memory:"], {"isolation": "serializable", **arguments, **switches, "settings": given})

    def connect(self, *path: Any, settings: Mapping[str, str] | None = None, **arguments: Any) -> Any:
        connection = super().connect(*path, **arguments)
        try:
            for name, value in (settings or {}).items():
                connection.execute(f"SET {self.identifier_preparer.quote_identifier(name)} = ?", (value,))
            connection.commit()
        except BaseException:
            connection.close()
            raise
        return connection

    def do_ping(self, dbapi_connection: Any) -> bool:
        """A lake is in this process: only a connection that was closed is gone."""
        dbapi_connection.cursor().close()
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return isinstance(e, self.loaded_dbapi.InterfaceError) and e.args[0] == "the connection is closed"

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        return tuple(int(part) for part in self.loaded_dbapi.__version__.split(".")[:3] if part.isdecimal())

    def _get_default_schema_name(self, connection: Any) -> str:
        return DEFAULT_SCHEMA

    # Transactions.

    def get_isolation_level_values(self, dbapi_conn: Any) -> Any:
        return ("SERIALIZABLE", "WRITE SERIALIZABLE", "SNAPSHOT", AUTOCOMMIT)

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        return dbapi_conn.isolation.upper()

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        return AUTOCOMMIT if dbapi_connection.autocommit else dbapi_connection.isolation.upper()

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        dbapi_connection.autocommit = level == AUTOCOMMIT
        if level != AUTOCOMMIT:
            dbapi_connection.isolation = level.lower()

    def detect_autocommit_setting(self, dbapi_conn: Any) -> bool:
        return bool(dbapi_conn.autocommit)


def _path(url: URL) -> str | None:
    return None if url.database in (None, "", ":memory:") else url.database
