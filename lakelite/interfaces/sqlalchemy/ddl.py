"""How tables are made and changed from SQLAlchemy's metadata.

Owns what a lake has otherwise: a unique index is a UNIQUE constraint; other indexes and foreign keys, which a lake does not have, are
left out with a warning; generated columns are refused.
"""

from __future__ import annotations

import warnings
from typing import Any

from sqlalchemy import Column, ForeignKeyConstraint, exc, literal
from sqlalchemy.sql import compiler


class LeftOut(exc.SAWarning):
    """Something of the metadata is not in the lake: an index or a foreign key."""


_NOTHING = "SELECT NULL WHERE false"


def _warn(text: str) -> None:
    warnings.warn(text, LeftOut, stacklevel=3)


class LakeliteDDL(compiler.DDLCompiler):
    """DDL."""

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        """None: it is left out."""
        columns = ", ".join(constraint.column_keys)
        _warn(f"the foreign key ({columns}) of table {constraint.table.name} is left out: a lake enforces none")

    def visit_add_constraint(self, create: Any, **kw: Any) -> str:
        if isinstance(create.element, ForeignKeyConstraint):
            raise exc.CompileError("a lake enforces no foreign keys")
        return str(super().visit_add_constraint(create, **kw))

    def visit_create_index(self, create: Any, include_schema: bool = False, include_table_schema: bool = True, **kw: Any) -> str:
        index = create.element
        self._verify_index_table(index)
        if not index.unique:
            _warn(f"the index {index.name} is left out: a lake has none; statistics of each file rule out what a query cannot need")
            return _NOTHING
        if not all(isinstance(one, Column) for one in index.expressions):
            raise exc.CompileError(f"the unique index {index.name} is of expressions: a lake has UNIQUE of columns only")
        table = self.preparer.format_table(index.table, use_schema=include_table_schema)
        columns = [self.preparer.format_column(column) for column in index.expressions]
        return f"ALTER TABLE {table} ADD CONSTRAINT {self._prepared_index_name(index)} UNIQUE ({', '.join(columns)})"

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        """As who drops an index may not know that it is unique, one that is not there is passed over."""
        index = drop.element
        exists = "" if index.unique and not drop.if_exists else "IF EXISTS "
        return f"ALTER TABLE {self.preparer.format_table(index.table)} DROP CONSTRAINT {exists}{self._prepared_index_name(index)}"

    def visit_computed_column(self, generated: Any, **kw: Any) -> str:
        raise exc.CompileError("Computed: a lake has no generated columns; compute the value in the INSERT, or in the query")

    def post_create_table(self, table: Any) -> str:
        options = table.dialect_options["lakelite"]
        text = "" if not options["partitioned_by"] else f" PARTITIONED BY ({options['partitioned_by']})"
        if options["with"]:
            values = {name: self.sql_compiler.process(literal(value), literal_binds=True) for name, value in options["with"].items()}
            text += f" WITH ({', '.join(f'{name} = {value}' for name, value in values.items())})"
        return text
