"""Statements that are put together wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable

from lakelite.errors import ProgrammingError
from lakelite.mapping.grammar import TOO_EARLY
from lakelite.mapping.keywords import CLAUSES, is_known, misplaced
from lakelite.mapping.names import did_you_mean, listed, near
from lakelite.mapping.words import Rule, Said, Words, offered, rule, sql_types

_PAST = re.compile(r"\b(?:AT\s*\(\s*\w+|AT\s+(?:VERSION|TIMESTAMP)|AS\s+OF|FOR\s+(?:SYSTEM_\w+|VERSION|TIMESTAMP))\b", re.IGNORECASE)
_PAST_HINT = "a past version is t AT (VERSION => 3) or t FOR VERSION AS OF 3; for a time, the word TIMESTAMP and its text in quotes"


def _syntax(found: re.Match[str], said: Said) -> Words:
    """A slip of a keyword is often the word before the one that does not fit."""
    message = found[0].rstrip()
    if said.at is None:
        return Words(message, misplaced("?", found[1]), found[1])
    name = found[1] if found[1][0].isalnum() else None
    offset = said.offset or 0
    if any(past.start() <= offset <= past.end() + 2 for past in _PAST.finditer(said.text)):
        return Words(message, _PAST_HINT, name)
    before, here = re.search(r"([^\W\d]\w*)\W*\Z", said.text[:offset]), re.match(r"[^\W\d]\w*", said.text[offset:])
    if found[1] == "." and before:
        return Words(message, f"the name behind {before[1]}. is missing", name)
    for word in (before[1] if before else "", here[0] if here else ""):
        meant = near(word, CLAUSES) if len(word) > 2 and not is_known(word) else []
        if meant:
            return Words(message, f"did you mean {meant[0]} in place of {word}?", name)
    if before and before[1].upper() in ("GROUP", "ORDER", "PARTITION") and not (here and here[0].upper() == "BY"):
        return Words(message, f"write {before[1].upper()} BY", name)
    last = found[1] if not said.text[offset + len(found[1]) :].strip(" \t\r\n;") else ""
    goes_on = last and (is_known(last) or not (last[-1].isalnum() or last[-1] in "'\"_)"))
    return Words(message, "the statement ends here, but something is missing" if goes_on else misplaced(said.text[:offset], found[1]), name)


def _grouping(found: re.Match[str], said: Said) -> Words:
    hint = f"add it to GROUP BY, or use any_value({found[1]}) if any of its values will do"
    return Words(f'column "{found[1]}" must appear in the GROUP BY clause or be used in an aggregate function', hint, found[1])


def _window(found: re.Match[str], said: Said) -> Words:
    return Words("a window function is not allowed here", "it needs OVER (…); to filter by one, use QUALIFY in place of WHERE")


def _aggregate(found: re.Match[str], said: Said) -> Words:
    instead = "HAVING filters groups, after GROUP BY" if found[2] == "aggregates" else "QUALIFY filters by window functions"
    return Words(f"the {found[1]} clause cannot contain {found[2]}", instead if found[1] == "WHERE" else "compute it in a subquery")


def _no_slice(found: re.Match[str], said: Said) -> Words:
    return Words("a slice cannot have the step 0", "leave the step out, or give another number: l[1:9:2]")


def _no_comparison(found: re.Match[str], said: Said) -> Words:
    return Words(f"{sql_types(found[1])} and {sql_types(found[2])} cannot be compared", f"cast one of them, such as x::{sql_types(found[2])}")


def _copy_option(found: re.Match[str], said: Said) -> Words:
    return Words(
        f"the option {found[1]} of COPY takes a {sql_types(found[2])}",
        f"such as ({found[1].upper()} true)" if found[2] == "BOOLEAN" else None,
        found[1],
    )


def _no_size(found: re.Match[str], said: Said) -> Words:
    """DuckDB takes what stands in front of a text in single quotes for a type."""
    if re.search(r"\b(?:VARCHAR|CHAR|DECIMAL|NUMERIC|TEXT)\s*\(", said.text, re.IGNORECASE):
        return Words("the size of a type has to be a constant", "such as DECIMAL(10, 2)")
    return Words("a text cannot stand behind an expression", "an alias stands behind AS, in double quotes or none: count(*) AS n")


def _twice_in_with(found: re.Match[str], said: Said) -> Words:
    return Words(f'two queries of WITH are called "{found[1]}"', "give each a name of its own")


def _no_number(found: re.Match[str], said: Said) -> Words:
    there = (
        f"counts the columns of the FROM clause, which has {found[2]}"
        if found[2] != "0"
        else "counts the columns of the FROM clause, and there is none"
    )
    return Words(f"the column #{found[1]} does not exist", f"#{found[1]} {there}")


def _sample(found: re.Match[str], said: Said) -> Words:
    return Words(f"the size of a sample cannot be {float(found[1]):g} percent", "give 0 to 100 percent, or a number of ROWS")


def _with_hint(hint: str) -> Callable[[re.Match[str], Said], Words]:
    """DuckDB's own words, with what to do."""
    return lambda found, said: Words(found[0].splitlines()[0].rstrip("!."), hint)


def _no_parameter(found: re.Match[str], said: Said) -> Words:
    return Words("a parameter cannot stand here: it stands for a value", "write it into the text", thing="?")


def _no_versions(found: re.Match[str], said: Said) -> Words:
    return Words("only a table of the lake has versions", "put the clause behind its name: t AT (VERSION => 3)")


def _deep(found: re.Match[str], said: Said) -> Words:
    return Words(f"an expression is nested more than {found[1]} levels deep", "compute parts of it in a subquery, or sum up a list: list_sum([…])")


def _said(message: str, hint: str) -> Callable[[re.Match[str], Said], Words]:
    return lambda found, said: Words(message, hint)


def _in_subquery(found: re.Match[str], said: Said) -> Words:
    return Words(found[0].split(" - ")[0].replace("SHOW_SPECIAL", "SHOW"), f"ask it of a subquery: SELECT * FROM ({found[1]} …)")


def _no_type(found: re.Match[str], said: Said) -> Words:
    name = found[1] or found[2]
    return Words(f"the column {name} has no type", "name the type behind it, such as n INTEGER", name)


def _no_call(found: re.Match[str], said: Said) -> Words:
    """DuckDB tries an arrow both as a lambda function and as an access to JSON."""
    reason = re.search(r"^ *or: ([^\n]*)", found[0], re.MULTILINE)
    message = reason[1].rstrip("!") if reason else "the arrow -> cannot stand here"
    return Words(message, "a lambda function is written lambda x: x + 1, as the argument of a function such as list_transform")


def _circular(found: re.Match[str], said: Said) -> Words:
    return Words(f'the query "{found[1]}" of WITH reads itself', "write WITH RECURSIVE for one that goes on from its own rows", found[1])


def _field_twice(found: re.Match[str], said: Said) -> Words:
    return Words(f"a struct has two fields called {found[1]}", "give each field a name of its own")


def _no_choice(found: re.Match[str], said: Said) -> Words:
    """A word of several that DuckDB calls an enum."""
    what = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", found[2]).lower()
    there = {"sample method": ["bernoulli", "reservoir", "system"]}.get(what) or [one.lower() for one in offered(found[3])]
    return Words(
        f'there is no {what} "{found[1]}"', did_you_mean(found[1], there, f"there are: {listed(there)}"), thing=found[1], kind=ProgrammingError
    )


def _no_value_of_option(found: re.Match[str], said: Said) -> Words:
    there = re.split(r", | or ", found[2])
    return Words(f"the option {found[1]} has no such value", f"it can be {listed(there)}", thing=found[1])


def _no_partition(found: re.Match[str], said: Said) -> Words:
    return Words(f'column "{found[2]}" of {found[1]} does not exist', "name a column of what is copied", thing=found[2])


def _no_numpy(found: re.Match[str], said: Said) -> Words:
    return Words(f"pandas has no type for {sql_types(found[1])}", "use to_arrow(), or cast the column: x::VARCHAR")


def _set_sizes(found: re.Match[str], said: Said) -> Words:
    return Words("the queries of a set operation give different numbers of columns", "give both the same columns, or use UNION BY NAME")


RULES: tuple[Rule, ...] = (
    rule(rf"^{TOO_EARLY}", _with_hint("something is missing behind its last word, such as a value behind an operator")),
    rule(r"^syntax error at or near \"\$\"", _no_parameter),
    rule(
        r"^syntax error at or near \"\"?lake@",
        _said("a past version of a table cannot stand here", "it stands behind FROM and JOIN, where a table does"),
    ),
    rule(r"^syntax error at or near \"(.*)\"", _syntax),
    rule(r"^Catalog type does not support time travel", _no_versions),
    rule(r"^Max expression depth limit of (\d+)", _deep),
    rule(r"^column \"(.+?)\" must appear in the GROUP BY clause", _grouping),
    rule(r"^Window functions are not supported here|^window functions are not allowed", _window),
    rule(r"^Aggregate functions are not supported here", _said("an aggregate function is not allowed here", "compute it with a SELECT")),
    rule(
        r"^SUBQUERY is not supported in returning",
        _said("a subquery is not allowed in RETURNING", "return columns, and ask for the rest with a SELECT"),
    ),
    rule(r"^(\w+(?: \w+)?) clause cannot contain (aggregates|window functions)", _aggregate),
    rule(r"^aggregate function calls cannot be nested.*", _with_hint("compute the inner one in a subquery")),
    rule(r"^Cannot extract field .* because it is not a struct.*", _with_hint("check the column's type: a dot also takes a field of a struct")),
    rule(r"^GROUP BY term out of range.*", _with_hint("a number in GROUP BY counts the columns of the SELECT")),
    rule(r"^ORDER term out of range.*", _with_hint("a number in ORDER BY counts the columns of the SELECT")),
    rule(r"^UNNEST\(\) can only be applied to.*", _with_hint("give it a list or a struct")),
    rule(r"^Subquery returns \d+ columns.*", _with_hint("select one column, or compare with a row: (a, b) IN (SELECT …)")),
    rule(r"^SELECT clause without selection list.*", _with_hint("name columns, or write SELECT *")),
    rule(r"^DEFAULT value cannot contain.*", _with_hint("a DEFAULT is a constant, or a call such as now() or uuid()")),
    rule(r"^Map keys must be unique.*", _with_hint("give each key once")),
    rule(r"^Memory must have a number.*", _with_hint("such as SET memory_limit = '4GB'")),
    rule(r"^DISTINCT requires at least one argument.*", _with_hint("such as count(DISTINCT column)")),
    rule(r"^Slice step cannot be zero", _no_slice),
    rule(r"^Cannot compare values of type (.+?) and type (.+?)(?: - [^\n]*)?(?:\n|\Z)", _no_comparison),
    rule(
        r"^\* expression without FROM clause",
        _said("* stands for the columns of a FROM clause, and there is none", "add FROM and the name of a table"),
    ),
    rule(
        r"^Column \"(?:.+?)\" referenced that exists in the SELECT clause.*",
        _with_hint("it is an alias of this SELECT: use the name that the column has in its table"),
    ),
    rule(
        r"^at least one window function must appear.*", _with_hint("WHERE filters rows, HAVING filters groups; QUALIFY filters by a window function")
    ),
    rule(
        r"^There are no UNIQUE/PRIMARY KEY constraints that refer to this table.*",
        _said("ON CONFLICT, OR REPLACE and OR IGNORE need a key, and the table has none", "ALTER TABLE t ADD PRIMARY KEY (…) adds one"),
    ),
    rule(r"^The specified columns as conflict target are not referenced.*", _with_hint("name the columns of a PRIMARY KEY or UNIQUE of the table")),
    rule(r"^Star expression \"COLUMNS\(.*", _said("no column has such a name", "DESCRIBE t lists the columns of a table")),
    rule(
        r"^ORDER BY non-integer literal has no effect.*",
        _said("a constant in ORDER BY has no effect", "name a column, or the number of one; a name stands without single quotes"),
    ),
    rule(r"^Copy option \"(\w+)\" expected an argument of type (\w+).*", _copy_option),
    rule(r"^Window (?:ROWS|RANGE|GROUPS) (?:PRECEDING|FOLLOWING) expression cannot be NULL", _with_hint("give a number, or UNBOUNDED")),
    rule(r"^interval cannot be 0", _said("the step of a range cannot be 0", "give another number, such as range(1, 10, 2)")),
    rule(r"^Duplicate CTE name \"(.+?)\"", _twice_in_with),
    rule(r"^Positional reference (\d+) out of range \(total (\d+) columns?\)", _no_number),
    rule(r"^Sample sample_size (\S+) out of range, must be between 0 and 100", _sample),
    rule(r"^Table must have at least one column", _said("a table needs a column", "name one: CREATE TABLE t (a INTEGER)")),
    rule(
        r"^Hex string literal contains a non-hex.*", _said("a hexadecimal string has only 0-9 and a-f", "such as x'00ff'; a text has no x in front")
    ),
    rule(r"^Expected table name with SUMMARIZE", _said("SUMMARIZE needs a table or a query", "such as SUMMARIZE t, or SUMMARIZE SELECT … FROM t")),
    rule(r"^Sequence with name (\S+) does not exist", _said("sequences are not there in a lake", "use uuid(), or max(id) + 1 in the INSERT")),
    rule(r"^Expected a constant as type modifier", _no_size),
    rule(r"^invalid lambda expression", _said("a lambda function can only stand as an argument", "such as list_transform(l, lambda x: x + 1)")),
    rule(r"^VALUES lists must all be the same length.*", _with_hint("give each row as many values; NULL stands for none")),
    rule(r"^ENUM type requires at least one argument.*", _with_hint("list its values: ENUM ('low', 'high')")),
    rule(
        r"^DECIMAL type (?:width|scale) (?:must|cannot) be.*",
        _with_hint("such as DECIMAL(10, 2): ten digits, two of them behind the point; DOUBLE has no limit"),
    ),
    rule(r"^No columns found to join on in NATURAL JOIN.*", _with_hint("name the condition: JOIN … ON a = b")),
    rule(r"^LIMIT/OFFSET cannot be negative.*", _with_hint("give 0 or more; leave it out for all rows")),
    rule(r"^GROUPING statement cannot be used without groups.*", _with_hint("add GROUP BY, with ROLLUP, CUBE or GROUPING SETS")),
    rule(r"^Not enough capturing groups.*", _with_hint("put into round brackets of the pattern what each name stands for")),
    rule(r"^This lambda function only supports up to two.*", _with_hint("an element, and the number of its place: lambda x, i: …")),
    rule(r"^Invalid escape string.*", _with_hint("such as LIKE '10!%' ESCAPE '!'")),
    rule(
        r"^(?:subqueries|aggregate functions|window functions) (?:prohibited|are not allowed) in (?:CHECK|check).*",
        _with_hint("a CHECK looks at the columns of its own row"),
    ),
    rule(r"^SETSEED accepts.*", _with_hint("such as setseed(0.5)")),
    rule(r"^aggregate functions are not allowed in UPDATE.*", _with_hint("compute it in a subquery: SET b = (SELECT sum(…) FROM …)")),
    rule(r"^Missing ASOF JOIN inequality.*", _with_hint("compare the moments as well: … ASOF JOIN … ON a.k = b.k AND a.at >= b.at")),
    rule(r"^UNPIVOT name count mismatch.*", _with_hint("give as many names as columns: UNPIVOT t ON (a, b) INTO NAME n VALUE x, y")),
    rule(r"^More VIEW aliases than columns.*", _with_hint("name at most the columns that the query gives")),
    rule(r"^Must have at least 1 thread.*", _with_hint("such as SET threads = 2")),
    rule(r"^window \"(.+?)\" does not exist", _with_hint("define it behind the FROM clause: WINDOW w AS (PARTITION BY … ORDER BY …)")),
    rule(r"^table \"(?:.+?)\" has (\d+) columns? available but (\d+) columns? specified", _with_hint("give at most one name for each column")),
    rule(
        r"^Duplicate named argument \"(?:.+?)\" in function call to \"struct_pack\"",
        _said("a struct has two fields of one name", "give each field a name of its own"),
    ),
    rule(
        r"^table \"(?:.+?)\" has more than one primary key.*",
        _with_hint("PRIMARY KEY (a, b) is one key of two columns; UNIQUE may stand several times"),
    ),
    rule(
        r"^[Tt]able (?:\".+?\" )?does not (?:have a column named|contain column) \"(?:.+?)\"[^\n]*",
        _with_hint("the columns of the table itself may stand there"),
    ),
    rule(r"^Cannot concatenate types .*", _with_hint("cast one of them: x::VARCHAR")),
    rule(r"^Deprecated lambda arrow", _said("a lambda function is written with the word lambda", "such as list_filter(l, lambda x: x > 1)")),
    rule(
        r"^Enum value: unrecognized value \"(?:.+?)\" for enum \"OrderType\"",
        _said("the order of a sort is 'ASC' or 'DESC'", "such as list_sort(l, 'DESC')"),
    ),
    rule(r"^Chained comparisons are not supported", _said("comparisons cannot be chained", "combine them: a = b AND b = c, or BETWEEN")),
    rule(
        r"^STAR expression is (?:only allowed|not supported).*",
        _said("* cannot stand inside an expression", "name a column, or COLUMNS(*) to write the expression for each of them"),
    ),
    rule(r"^Function \"(.+?)\" cannot be applied to a star expression", _with_hint("name a column, or COLUMNS(*) to apply it to each of them")),
    rule(r"^Columns can only be referenced within the aggregate of a PIVOT.*", _with_hint("such as PIVOT t ON city USING sum(n)")),
    rule(r"^Pivot expression must contain exactly one aggregate.*", _with_hint("such as PIVOT t ON city USING sum(n)")),
    rule(r"^PIVOT expression cannot contain qualified columns.*", _with_hint("name the columns alone: PIVOT reads one table")),
    rule(r"^Alias with name \"(?:.+?)\" exists, but aliases cannot be used.*", _with_hint("write the expression that the alias stands for")),
    rule(r"^Duplicate type parameter (\S+) for type.*", _field_twice),
    rule(r"^PIVOT requires an ON, USING or GROUP BY clause", _with_hint("such as PIVOT t ON city USING sum(n)")),
    rule(r"^Cannot pivot on constant value.*", _with_hint("name the column whose values become columns: PIVOT t ON city USING sum(n)")),
    rule(r"^(DESCRIBE|SHOW|SUMMARIZE)\w* with .* not allowed.*", _in_subquery),
    rule(r"^Empty subscript.*", _with_hint("give the number of an element, such as l[1], or a range, such as l[1:3]")),
    rule(r"^Column (?:\"(.+?)\"|(\S+)) must have a type or be defined as a GENERATED column", _no_type),
    rule(r"^Column definition requires a type.*", _said("the column has no type", "name it behind the name of the column: c INTEGER DEFAULT 5")),
    rule(r"^Cannot define a default value twice", _with_hint("give one DEFAULT")),
    rule(r"^Expected a constant number as array size.*", _with_hint("such as INTEGER[3]; INTEGER[] is a list of any length")),
    rule(r"^zero-length delimited identifier.*", _with_hint("a name cannot be empty; double quotes enclose one, single quotes a text")),
    rule(r"^Invalid lambda parameters.*", _said("the parameters of a lambda function are plain names", "such as lambda x, i: x + i")),
    rule(r"^failed to bind function, either.*", _no_call),
    rule(r"^Circular reference to CTE \"(.+?)\".*", _circular),
    rule(r"^(\w+) is not an aggregate function", _with_hint("only an aggregate or a window function takes OVER, FILTER, DISTINCT or ORDER BY")),
    rule(r"^Unsupported parameter type for FORMAT.*", _said("the option FORMAT of COPY takes the name of one", "such as (FORMAT csv)")),
    rule(r"^Unimplemented expression class in \w+::\w+: DEFAULT", _said("DEFAULT cannot stand here", "it stands for a whole value of INSERT or SET")),
    rule(r"^Cannot compare values of type (.+) and (.+) in IN/ANY/ALL clause.*", _no_comparison),
    rule(r"^Cannot mix values of type .*", _with_hint("cast one of them: x::VARCHAR")),
    rule(r"^Could not ORDER BY column \"(?:.+?)\": add.*", _with_hint("order by a column of the result, by its name or number")),
    rule(r"^Invalid window name \"(?:.+?)\"", _with_hint("it is a word of the language, and perhaps one too many: OVER (PARTITION BY … ORDER BY …)")),
    rule(
        r"^Changing the type of a nested field is not yet supported.*",
        _said("the type of a nested field cannot be changed", "ADD COLUMN s.new TYPE, fill it with an UPDATE, and DROP COLUMN s.old"),
    ),
    rule(r"^SELECT clause cannot contain DEFAULT clause", _said("DEFAULT cannot stand here", "it stands for a whole value of INSERT or SET")),
    rule(r"^Cannot ORDER BY ALL in a window expression", _with_hint("name the columns to order by")),
    rule(
        r"^Referenced column (\S+) not found in FROM clause.*",
        _said("a column of that name is in no table of the query", "look at the names in FROM"),
    ),
    rule(
        r"^Wrong number of arguments provided to (\w+) function",
        _with_hint("look at how many it takes: SELECT parameters FROM duckdb_functions() WHERE function_name = …"),
    ),
    rule(r"^Creating a table without physical .*", _said("a table needs a column that is not GENERATED", "add one: CREATE TABLE t (a INTEGER, …)")),
    rule(r"^Expected \"(\w+)\" argument to be any of \[(.*?)\]", _no_value_of_option),
    rule(r"^\"(\w+)\" expected to find (.+?), but it was not found in the table", _no_partition),
    rule(r"^Enum value: unrecognized value \"(.*?)\" for enum \"(\w+)\"(.*)", _no_choice),
    rule(r"^Attempting to open a compressed file, but the compression type is not supported.*", _with_hint("there are: gzip, zstd and none")),
    rule(r"^QUANTILE can only take parameters.*", _with_hint("such as quantile(x, 0.5): the second argument is a share")),
    rule(
        r"^Failed to bind \"(?:.+?)\" - COLUMNS expression.*",
        _with_hint("only the name of each column is known there: COLUMNS(lambda c: c LIKE 'a%')"),
    ),
    rule(r"^STRUCT to STRUCT cast must have at least one.*", _with_hint("give the type the names of the fields: {'a': 1}::STRUCT(a INTEGER)")),
    rule(r"^Unsupported type \"(\w+)\" for DuckDB -> NumPy conversion", _no_numpy),
    rule(r"^Set operations can only apply to expressions with the same number of result columns", _set_sizes),
)
