"""Statements that are refused by name, each with what to use instead. Data only: `parse` looks the first words up here."""

from __future__ import annotations

BY_FIRST_WORDS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    *((("ALTER", word), f"ALTER {word}", "ALTER TABLE is there") for word in "SCHEMA SEQUENCE DATABASE INDEX TYPE FUNCTION ROLE USER".split()),
    (("ATTACH",), "ATTACH", "a connection is to one lake; read other files with read_parquet, read_csv or COPY t FROM"),
    (("DETACH",), "DETACH", "a connection is to one lake; close it instead"),
    (("INSTALL",), "INSTALL", "install extensions with DuckDB itself"),
    (("LOAD",), "LOAD", "only the extensions that are built into DuckDB can be used"),
    (("PREPARE",), "PREPARE", "pass parameters to execute: ?, $1 or $name"),
    (("EXECUTE",), "EXECUTE", "pass parameters to execute: ?, $1 or $name"),
    (("DEALLOCATE",), "DEALLOCATE", "pass parameters to execute: ?, $1 or $name"),
    (("PRAGMA",), "PRAGMA", "use SET name = value, or SELECT from the table function of the same name"),
    (("CALL",), "CALL", "use SELECT * FROM the table function"),
    (("CHECKPOINT",), "CHECKPOINT", "COMMIT makes a transaction durable; nothing else is needed"),
    (("FORCE", "CHECKPOINT"), "FORCE CHECKPOINT", "COMMIT makes a transaction durable; nothing else is needed"),
    (("ANALYZE",), "ANALYZE", "statistics are written with each fragment; nothing else is needed"),
    (("REINDEX",), "REINDEX", "a lake has no indexes"),
    (("UNDROP",), "UNDROP", "SHOW CREATE TABLE t AT (VERSION => 3) defines it again, INSERT INTO t FROM t AT (VERSION => 3) takes its rows"),
    (("LOCK",), "LOCK", "transactions need no locks: begin one, and run it again if its COMMIT is a conflict"),
    (("GRANT",), "GRANT", "the permissions of the lake's directory decide who may read and write"),
    (("REVOKE",), "REVOKE", "the permissions of the lake's directory decide who may read and write"),
    (("REPLACE",), "REPLACE INTO", "use DELETE and INSERT in one transaction"),
    (("SHOW", "DATABASES"), "SHOW DATABASES", "a connection is to one lake; use SHOW SCHEMAS"),
    (("COPY", "FROM", "DATABASE"), "COPY FROM DATABASE", "use EXPORT DATABASE and IMPORT DATABASE"),
    (("SET", "VARIABLE"), "SET VARIABLE", "pass parameters to execute: ?, $1 or $name"),
    (("RESET", "VARIABLE"), "RESET VARIABLE", "pass parameters to execute: ?, $1 or $name"),
    (("RESET", "ALL"), "RESET ALL", "RESET one setting at a time"),
    (("SET", "TRANSACTION"), "SET TRANSACTION", "use BEGIN ISOLATION LEVEL …, or SET isolation_level = '…'"),
    (("COMMIT", "PREPARED"), "COMMIT PREPARED", "use COMMIT"),
    (("COMMIT", "AND"), "COMMIT AND CHAIN", "use COMMIT and BEGIN"),
    (("ROLLBACK", "AND"), "ROLLBACK AND CHAIN", "use ROLLBACK and BEGIN"),
)

CREATED: dict[str, str] = {
    "INDEX": "statistics of each fragment rule out what a query cannot need; a lake has no indexes",
    "UNIQUE INDEX": "ALTER TABLE t ADD UNIQUE (column, …) keeps values apart; a lake has no indexes",
    "TYPE": "write the type in the column: ENUM('a', 'b'), STRUCT(a INTEGER)",
    "MACRO": "put the expression into the query",
    "FUNCTION": "put the expression into the query",
    "SEQUENCE": "use row_number() OVER (), or uuid()",
    "SECRET": "give the credentials to DuckDB through the environment",
    "TRIGGER": "do both changes in one transaction",
    "DATABASE": "lakelite.connect('name.lake') creates a lake",
    "ROLE": "the permissions of the lake's directory decide who may read and write",
    "USER": "the permissions of the lake's directory decide who may read and write",
}
