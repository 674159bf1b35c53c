"""The frames of EXPORT DATABASE, IMPORT DATABASE and BACKUP."""

from __future__ import annotations

from lakelite.language.changes import read_path
from lakelite.language.reader import Reader
from lakelite.language.statements import Backup, Export, Import
from lakelite.language.tokens import folded, unquote


def read_export(reader: Reader) -> Export:
    """Behind EXPORT: DATABASE [name TO] path [(FORMAT PARQUET)]."""
    reader.expect("DATABASE")
    if reader.sees_identifier() and reader.peek(1).word == "TO":
        raise reader.unsupported("EXPORT DATABASE of a name", "a connection is to one lake: EXPORT DATABASE 'directory'")
    path, parameter = read_path(reader, "a directory")
    if reader.accept("("):
        _format(reader)
    reader.finish()
    return Export(path, parameter)


def _format(reader: Reader) -> None:
    if not reader.accept("FORMAT"):
        raise reader.unsupported("an option of EXPORT DATABASE other than FORMAT", "write EXPORT DATABASE 'directory' (FORMAT parquet)")
    token = reader.peek()
    if folded(unquote(reader.source.shown(token))) != "parquet":
        raise reader.unsupported("EXPORT DATABASE in another format than Parquet", "use COPY t TO 'file.csv' for each table", reader.index)
    reader.index += 1
    reader.expect(")")


def read_import(reader: Reader) -> Import:
    """Behind IMPORT: DATABASE path."""
    reader.expect("DATABASE")
    path, parameter = read_path(reader, "a directory, or of a DuckDB or SQLite file")
    reader.finish()
    return Import(path, parameter)


def read_backup(reader: Reader) -> Backup:
    """Behind BACKUP: [LAKE] TO path."""
    reader.accept("LAKE")
    reader.expect("TO")
    path, parameter = read_path(reader, "a directory")
    reader.finish()
    return Backup(path, parameter)
