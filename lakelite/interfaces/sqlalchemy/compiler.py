"""How SQLAlchemy's statements are written in DuckDB's dialect.

Owns what differs from SQLAlchemy's default: operators, JSON, empty sets, row limits, ON CONFLICT, time travel, numbered keys. What a
lake does not have is refused here by name.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc
from sqlalchemy.sql import coercions, compiler, elements, roles, sqltypes

from lakelite.interfaces.sqlalchemy.numbering import numbered
from lakelite.interfaces.sqlalchemy.statements import AtVersion
from lakelite.language.tokens import NOT_NAMES


class Preparer(compiler.IdentifierPreparer):
    """Quotes what DuckDB does not take as a name."""

    reserved_words = {word.lower() for word in NOT_NAMES}  # noqa: RUF012


class LakeliteCompiler(compiler.SQLCompiler):
    """Statements."""

    _one_by_one = False

    # Changes.

    def visit_insert(self, insert_stmt: Any, visited_bindparam: Any = None, visiting_cte: Any = None, **kw: Any) -> Any:
        statement, self._one_by_one = numbered(insert_stmt, self.column_keys, many=self.for_executemany)
        return super().visit_insert(statement, visited_bindparam=visited_bindparam, visiting_cte=visiting_cte, **kw)

    def _deliver_insertmanyvalues_batches(
        self, statement: Any, parameters: Any, compiled_parameters: Any, generic_setinputsizes: Any, batch_size: Any, *rest: Any, **kw: Any
    ) -> Any:
        size = 1 if self._one_by_one else batch_size
        return super()._deliver_insertmanyvalues_batches(statement, parameters, compiled_parameters, generic_setinputsizes, size, *rest, **kw)

    def update_from_clause(self, update_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any) -> str:
        return f"FROM {self._sources(extra_froms, from_hints, kw)}"

    def delete_extra_from_clause(self, delete_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any) -> str:
        return f"USING {self._sources(extra_froms, from_hints, kw)}"

    def _sources(self, froms: Any, hints: Any, kw: dict[str, Any]) -> str:
        return ", ".join(one._compiler_dispatch(self, asfrom=True, fromhints=hints, **kw) for one in froms)

    def visit_on_conflict_do_nothing(self, on_conflict: Any, **kw: Any) -> str:
        return f"ON CONFLICT {self._conflict_target(on_conflict, kw)}DO NOTHING"

    def visit_on_conflict_do_update(self, on_conflict: Any, **kw: Any) -> str:
        changed: Any = self.stack[-1]["selectable"]
        table = changed.table
        values = {getattr(key, "key", key): value for key, value in on_conflict.update_values_to_set.items()}
        unknown = [key for key in values if key not in table.c]
        if unknown:
            raise exc.CompileError(f"ON CONFLICT DO UPDATE sets {unknown[0]!r}, which is no column of table {table.name}")
        changes = [self._assigned(table.c[key], value, kw) for key, value in values.items()]
        where = on_conflict.update_whereclause
        condition = "" if where is None else f" WHERE {self.process(where, **{**kw, 'include_table': True, 'use_schema': False})}"
        return f"ON CONFLICT {self._conflict_target(on_conflict, kw)}DO UPDATE SET {', '.join(changes)}{condition}"

    def _assigned(self, column: Any, value: Any, kw: dict[str, Any]) -> str:
        value = coercions.expect(roles.ExpressionElementRole, value, type_=column.type)
        if isinstance(value, elements.BindParameter) and value.type._isnull:
            value = value._with_binary_element_type(column.type)
        text = self.process(value.self_group(), is_upsert_set=True, **{**kw, "use_schema": False})
        return f"{self.preparer.quote(column.name)} = {text}"

    def _conflict_target(self, clause: Any, kw: dict[str, Any]) -> str:
        if getattr(clause, "inferred_target_whereclause", None) is not None:
            raise exc.CompileError("ON CONFLICT takes no index_where: a lake has no partial indexes")
        if getattr(clause, "constraint_target", None) is not None:
            raise exc.CompileError("ON CONFLICT takes no constraint: give index_elements, the columns of the key")
        columns = clause.inferred_target_elements
        if columns is None:
            return ""
        names = [self.preparer.quote(c) if isinstance(c, str) else self.process(c, include_table=False, use_schema=False) for c in columns]
        return f"({', '.join(names)}) "

    # Queries.

    def visit_lakelite_at_version(self, past: AtVersion, asfrom: bool = False, ashint: bool = False, from_linter: Any = None, **kw: Any) -> str:
        name = self._truncated_identifier("alias", past.name) if isinstance(past.name, elements._truncated_label) else past.name
        shown: str = self.preparer.format_alias(past, name)
        if not asfrom:
            return shown
        if from_linter:
            from_linter.froms[past._de_clone()] = name
        table = self.process(past.element, asfrom=True, **{**kw, "fromhints": None})
        return f"{table} AT ({past.word} => {self.process(past.moment)}) AS {shown}"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        limit, offset = select._limit_clause, select._offset_clause
        text = "" if limit is None else f"\n LIMIT {self.process(limit, **kw)}"
        return text if offset is None else f"{text}\n OFFSET {self.process(offset, **kw)}"

    def fetch_clause(
        self, select: Any, fetch_clause: Any = None, require_offset: Any = False, use_literal_execute_for_simple_int: Any = False, **kw: Any
    ) -> str:
        options = select._fetch_clause_options
        if options["percent"] or options["with_ties"]:
            raise exc.CompileError("FETCH takes no percent and no WITH TIES")
        offset = "" if select._offset_clause is None else f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        return f"\n LIMIT {self.process(select._fetch_clause, **kw)}{offset}"

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        raise exc.CompileError("FOR UPDATE: a lake locks no rows; where others change what a transaction has read, its COMMIT is a conflict")

    def visit_empty_set_expr(self, element_types: Any, **kw: Any) -> str:
        kinds = element_types or [sqltypes.INTEGER()]
        nulls = ", ".join(f"CAST(NULL AS {self.dialect.type_compiler_instance.process(self._known(kind))})" for kind in kinds)
        return f"SELECT {nulls} WHERE 1 != 1"

    @staticmethod
    def _known(kind: Any) -> Any:
        return sqltypes.INTEGER() if kind._isnull else kind

    def visit_sequence(self, sequence: Any, **kw: Any) -> str:
        raise exc.CompileError("a lake has no sequences: an integer primary key is numbered without one, and a UUID needs no number")

    # Expressions.

    def visit_floordiv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Rounded down, as Python does: DuckDB's // cuts whole numbers towards zero."""
        return f"CAST(floor({self.process(binary.left, **kw)} / {self.process(binary.right, **kw)}) AS {self._type(binary)})"

    def visit_truediv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} / {self.process(binary.right, **kw)}"

    def _type(self, element: Any) -> str:
        kind: Any = element.type if isinstance(element.type, sqltypes.Integer) else sqltypes.DOUBLE()
        return self.dialect.type_compiler_instance.process(kind)

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"xor({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_ilike_case_insensitive_operand(self, element: Any, **kw: Any) -> str:
        return self.process(element.element, **kw)

    def visit_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like("ILIKE", binary, kw)

    def visit_not_ilike_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._like("NOT ILIKE", binary, kw)

    def _like(self, word: str, binary: Any, kw: dict[str, Any]) -> str:
        escape = binary.modifiers.get("escape")
        ending = "" if escape is None else f" ESCAPE {self.render_literal_value(escape, sqltypes.STRINGTYPE)}"
        return f"{self.process(binary.left, **kw)} {word} {self.process(binary.right, **kw)}{ending}"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        flags = binary.modifiers["flags"]
        options = "" if flags is None else f", {self.render_literal_value(flags, sqltypes.STRINGTYPE)}"
        return f"regexp_matches({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)}{options})"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        flags = binary.modifiers["flags"]
        options = "" if flags is None else f", {self.render_literal_value(flags, sqltypes.STRINGTYPE)}"
        return f"regexp_replace({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)}{options})"

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """As JSON, or as the value of a type: DuckDB makes a text of JSON without its quotes, which every type is cast from."""
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        if binary.type._type_affinity is sqltypes.JSON:
            return f"json_extract({left}, {right})"
        return f"CAST(json_extract_string({left}, {right}) AS {self.dialect.type_compiler_instance.process(binary.type)})"

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary

    def visit_getitem_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)}[{self.process(binary.right, **kw)}]"

    def visit_slice(self, element: Any, **kw: Any) -> str:
        return f"{self.process(element.start, **kw)}:{self.process(element.stop, **kw)}"

    def visit_char_length_func(self, fn: Any, **kw: Any) -> str:
        return f"length{self.function_argspec(fn, **kw)}"

    def visit_aggregate_strings_func(self, fn: Any, **kw: Any) -> str:
        return str(super().visit_aggregate_strings_func(fn, use_function_name="string_agg", **kw))
