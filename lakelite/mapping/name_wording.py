"""Names that do not exist or are not clear: what could have been meant."""

from __future__ import annotations

import re

from lakelite.cells import fitted
from lakelite.mapping.names import did_you_mean, listed
from lakelite.mapping.sources import visible
from lakelite.mapping.words import Rule, Said, Words, offered, rule

_CTE = re.compile(r"\b(\w+)\s+AS\s+(?:NOT\s+)?(?:MATERIALIZED\s+)?\(", re.IGNORECASE)
_STANDARD = {
    "information_schema": "duckdb_views() WHERE schema_name = 'information_schema'",
    "pg_catalog": "duckdb_views() WHERE schema_name = 'pg_catalog'",
}
_FILES = "a file is read by its ending, such as .parquet, .csv or .json, or by a function: read_csv('…')"
_FORMATS = ("csv", "json", "parquet")
_NO_ROWID = "rows of a lake have no such number: a key tells them apart, or row_number() OVER (…) in a query"
_LISTS = "SHOW ALL TABLES lists the tables of this lake"
_SYSTEM, _LISTS_SYSTEM = "lake.", "SHOW TABLES FROM lake lists its system views"


def _no_table(found: re.Match[str], said: Said) -> Words:
    name, schema = found[1], found[2]
    if schema is not None and schema.lower() not in [s.lower() for s in said.names.schemas]:
        known = sorted(said.names.schemas)
        return Words(f'schema "{schema}" does not exist', did_you_mean(schema, known, f"the schemas are: {listed(known)}"), schema)
    variable = said.names.variable(name) if schema is None else None
    written = _as_written(name, said)
    within = written.rpartition(".")[0].lower()
    if within in _STANDARD:
        there = [f"{within}.{one}" for one in offered(found[3]) if re.fullmatch(r"\w+", one)]
        return Words(f'table "{written}" does not exist', did_you_mean(name, there, f"SELECT view_name FROM {_STANDARD[within]} lists them"), name)
    lists = _LISTS_SYSTEM if written.lower().startswith(_SYSTEM) else _LISTS
    near = did_you_mean(name, [*said.names.tables, *_CTE.findall(said.text), *said.names.near_variables(name)])
    hint = "; ".join(filter(None, (near, variable))) or (_FILES if re.search(r"[/\\.]", name) else lists)
    return Words(f'table "{written}" does not exist', hint, name)


def _as_written(name: str, said: Said) -> str:
    """The name with the schema that stands in front of it."""
    here = said.at and re.match(rf"\w+\.{re.escape(name)}\b", said.at.source[said.at.column - 1 :], re.IGNORECASE)
    return here[0] if here else name


def _no_column(found: re.Match[str], said: Said) -> Words:
    """DuckDB offers names as far as they look alike; the columns of the tables in the text are those that there are."""
    name = found[1]
    if name.lower() == "rowid":
        return Words(f'column "{name}" does not exist', _NO_ROWID, name)
    hint = did_you_mean(name, [*offered(found[2]), *_columns(said)])
    if hint is None and said.is_quoted:
        hint = _in_single_quotes(name)
    there = offered(found[2])
    others = f"there are, among others: {listed(there)}" if there else None
    return Words(f'column "{name}" does not exist', hint or _what_there_is(said) or others, name)


def _not_in_list(found: re.Match[str], said: Said) -> Words:
    hint = did_you_mean(found[1], [*offered(found[3]), *_columns(said)], _what_there_is(said))
    return Words(f'column "{found[1]}" of the {found[2]} list does not exist', hint, thing=found[1])


def _not_in_join(found: re.Match[str], said: Said) -> Words:
    hint = did_you_mean(found[1], _columns(said), _what_there_is(said))
    return Words(f'column "{found[1]}" does not exist on the {found[2]} side of the join', hint, thing=found[1])


def _what_there_is(said: Said) -> str | None:
    tables = _mentioned(said)
    return "; ".join(f"the columns of {table} are: {listed(columns)}" for table, columns in tables[:2]) or None


def _mentioned(said: Said) -> list[tuple[str, list[str]]]:
    """The tables that can be named at the place of the error, with their columns."""
    found = dict.fromkeys(source.table for source in visible(said.text, said.offset, said.names.tables) if not source.is_target)
    return [(table, list(said.names.tables[table])) for table in found if table is not None]


def _columns(said: Said) -> list[str]:
    return [column for _, columns in _mentioned(said) for column in columns]


def _no_from(found: re.Match[str], said: Said) -> Words:
    name = found[1]
    plain = "add FROM and the name of a table, write a value, or put a text into single quotes"
    if re.search(r"\blambda\b", said.text, re.IGNORECASE):
        plain = "a lambda sees its own parameters and the columns of the FROM clause"
    hint = _in_single_quotes(name) if said.is_quoted else plain
    if re.match(r"\s*(?:ALTER|CREATE)\b", said.text, re.IGNORECASE) and re.search(r"\bDEFAULT\b", said.text, re.IGNORECASE):
        return Words(
            f'column "{name}" cannot stand in a DEFAULT', "a DEFAULT is a constant, or a call such as now(); a text stands in single quotes", name
        )
    if re.search(r"\bFROM\b", said.text, re.IGNORECASE):  # of the query it may be, but not of this part of it
        return Words(f'column "{name}" does not exist here', _in_single_quotes(name) if said.is_quoted else "write a value or a parameter here", name)
    return Words(f'column "{name}" does not exist: the query has no FROM', hint, name)


def _in_single_quotes(name: str) -> str:
    return f"a text stands in single quotes: '{fitted(name, 40)}'"


def _no_column_of(found: re.Match[str], said: Said) -> Words:
    table, name = found[1], found[2]
    there = offered(found[3])
    means = {source.table for source in visible(said.text, said.offset, said.names.tables) if source.called == table.lower()}
    (one,) = means if len(means) == 1 else (None,)
    known = [] if one is None else list(said.names.tables[one])
    others = f"there are, among others: {listed(there)}" if there else f"look at what {table} stands for, and which columns that has"
    hint = did_you_mean(name, known or there, f"its columns are: {listed(known)}" if known else others)
    return Words(f'table "{table}" has no column "{name}"', hint, None, name)


def _no_alias(found: re.Match[str], said: Said) -> Words:
    there = [_public(name) for name in offered(found[2])]
    hint = f"the FROM clause names: {listed(there)}" if there else "add it to the FROM clause"
    return Words(f'"{found[1]}" is no table of the FROM clause', did_you_mean(found[1], there, hint), found[1])


def _no_function(found: re.Match[str], said: Said) -> Words:
    kind, name = found[1].lower(), found[2].strip('"')
    if kind == "type":
        common = "there are INTEGER, DOUBLE, VARCHAR, DATE, TIMESTAMP and more"
        return Words(f'type "{name}" does not exist', did_you_mean(name, said.names.of("type"), common), name)
    if kind == "copy function":
        return Words(f'COPY does not know the format "{name}"', _format_hint(name), name)
    known = [*said.names.of("function"), *offered(found[3])]
    otherwise = "SELECT function_name FROM duckdb_functions() lists the functions"
    return Words(f'function "{name}" does not exist', did_you_mean(name, known, otherwise), name)


def _format_hint(name: str) -> str | None:
    if name == "xlsx":
        return "at the prompt, .once file.xlsx writes the next result as an Excel workbook"
    return did_you_mean(name, _FORMATS, f"the formats are: {listed(_FORMATS)}")


def _no_setting(found: re.Match[str], said: Said) -> Words:
    return Words(f'there is no setting "{found[1]}"', did_you_mean(found[1], offered(found[2]), "SHOW ALL lists the settings"), found[1])


def _no_option(found: re.Match[str], said: Said) -> Words:
    there = offered(found[3])
    hint = did_you_mean(found[1], there, f"it has: {listed(there)}" if there else _options_of(found[2]))
    return Words(f'{found[2]} has no option "{found[1]}"', hint, found[1])


def _options_of(function: str) -> str:
    return f"its options: SELECT parameters FROM duckdb_functions() WHERE function_name = '{function}'"


def _ambiguous(found: re.Match[str], said: Said) -> Words:
    choices = re.findall(r"'([^']+)'", found[2])
    hint = f"write {' or '.join(choices)}" if choices else "put the table in front: table.column"
    return Words(f'column "{found[1]}" is ambiguous', hint, found[1])


def _ambiguous_table(found: re.Match[str], said: Said) -> Words:
    name = _public(found[1])
    return Words(f'more than one table is called "{name}" here', "give each a name of its own: FROM t AS other", name)


def _public(name: str) -> str:
    """A name as the user knows it: without DuckDB's database, and without the schema main."""
    return re.sub(r"^memory\.(?:main\.)?", "", name)


def _named_twice(found: re.Match[str], said: Said) -> Words:
    return Words(f'column "{found[1]}" already exists', "names are compared without regard to upper and lower case")


def _no_field(found: re.Match[str], said: Said) -> Words:
    there = offered(found[2])
    return Words(f'the struct has no field "{found[1]}"', did_you_mean(found[1], there, f"there are, among others: {listed(there)}"), None, found[1])


def _too_few(found: re.Match[str], said: Said) -> Words:
    """Of a MERGE: an INSERT or UPDATE by position that gets another number of values than there are columns."""
    table, columns, values = found[1], found[2], found[3]
    supplied = f"{values} value{' was' if values == '1' else 's were'} supplied"
    if "mismatch" in found[0]:
        return Words(f"{columns} columns are listed, but {supplied}", "give a value for each column that you list")
    return Words(f"table {table} has {columns} columns, but {supplied}", "list the columns that you give, or use BY NAME")


def _not_as_many(found: re.Match[str], said: Said) -> Words:
    message = f"the table has {found[1]} columns, and the source of the MERGE {found[2]}"
    return Words(message, "use UPDATE BY NAME, or SET column = value for each column")


RULES: tuple[Rule, ...] = (
    rule(r"^Referenced update column (.+?) not found in table(.*)", _no_column),
    rule(r"^Data provided for UPDATE did not match column count in table - expected (\d+) columns? but got (\d+)", _not_as_many),
    rule(r"^table \"(.+?)\" has (\d+) columns? but (\d+) values? were supplied", _too_few),
    rule(r"^Column name/value mismatch for insert on \"(.+?)\": expected (\d+) columns? but (\d+) values? were supplied", _too_few),
    rule(r"^Table with name \"?(.+?)\"? does not exist(?:!| because schema \"(.+?)\" does not exist)(.*)", _no_table),
    rule(r"^Referenced column \"(.+?)\" not found in FROM clause(.*)", _no_column),
    rule(r"^Referenced column \"(.+?)\" was not found because the FROM clause is missing", _no_from),
    rule(r"^(?:Table|Values list) \"(.+?)\" does not have a column (?:named|with name) \"(.+?)\"(.*)", _no_column_of),
    rule(r"^Referenced table \"(.+?)\" not found(.*)", _no_alias),
    rule(r"^(Type|Macro|[A-Z][\w ]*Function|Function) with name (.+?) (?:does not exist|is not in the catalog)(.*)", _no_function),
    rule(r"^unrecognized configuration parameter \"(.+?)\"(.*)", _no_setting),
    rule(r"^Invalid named parameter \"(.+?)\" for function (\w+)(.*)", _no_option),
    rule(r"^Could not find key \"(.+?)\" in struct(.*)", _no_field),
    rule(r"^Column \"(.+?)\" (?:referenced )?in (\w+) (?:list not found|but no matching entry)(.*)", _not_in_list),
    rule(r"^Referenced column \"?(\w+?)\"? not found in FROM clause and can't find in alias map()", _no_column),
    rule(r"^Column \"(.+?)\" does not exist on (left|right) side of join(.*)", _not_in_join),
    rule(r"^Ambiguous reference to column name \"(.+?)\" \(use: (.*?)\)", _ambiguous),
    rule(r"^Ambiguous reference to table \"(.+?)\"", _ambiguous_table),
    rule(r"^Column with name \"(.+?)\" already exists", _named_twice),
)
