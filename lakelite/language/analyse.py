"""What a text of SQL may look at: names, the clock, chance, and whether a change is row-local (resolver.md, section 1).

Promises: errs to the safe side: a name or the clock is found too often rather than missed, and row-local is said only of what is
known to be. Never raises for any text, and never input or output.
"""

from __future__ import annotations

import sys
import threading
from itertools import pairwise
from typing import TYPE_CHECKING

from lakelite.language.source import NESTING
from lakelite.language.tokens import Token, folded, lex, unquote

if TYPE_CHECKING:
    from sqlglot import exp

_CLOCK = frozenset(
    """now today current_timestamp current_date current_time localtime localtimestamp get_current_timestamp
    get_current_time get_current_date transaction_timestamp statement_timestamp clock_timestamp current_localtimestamp
    current_localtime current_localdate pg_postmaster_start_time pg_conf_load_time""".split()
)
_CLOCK_CALLS = frozenset(("age", "ago"))  # as plain names they are columns
_RANDOM = frozenset("random rand uuid gen_random_uuid uuidv4 uuidv7 clock_timestamp sleep_ms".split())
_STATEFUL = frozenset(
    """nextval currval setval setseed stats vector_type write_log current_query current_query_id current_connection_id
    current_transaction_id txid_current""".split()
)
_SESSION = frozenset(
    """getvariable getenv current_setting current_schema current_schemas current_database current_catalog current_user
    session_user user in_search_path format_type pg_get_viewdef pg_get_constraintdef pg_get_expr pg_my_temp_schema
    pg_is_other_temp_schema pg_typeof_table col_description obj_description shobj_description""".split()
)
_MANY_ROWS = frozenset("unnest unlist explode generate_subscripts".split())
_NO_ROW_LOCAL_CALL = _STATEFUL | _SESSION | _MANY_ROWS
SCALAR = frozenset(
    """abs ceil ceiling floor round trunc sign sqrt power pow exp ln log mod greatest least coalesce ifnull nullif if cast try_cast
    upper lower trim ltrim rtrim length len concat concat_ws replace substr substring left right lpad rpad starts_with ends_with
    contains prefix suffix strpos instr reverse repeat split_part regexp_matches regexp_replace regexp_extract md5 hash
    date_trunc date_part date_diff date_add datediff extract year month day hour minute second strftime strptime make_date
    to_timestamp epoch epoch_ms isnan isinf isfinite typeof now decimal numeric varchar
    list_contains list_has list_filter list_transform list_value list_extract struct_pack struct_extract""".split()
)
_ROW_PLACE = frozenset("rowid file_row_number filename file_index _row_id current_schema".split())
_QUERY_WORDS = frozenset(
    "SELECT FROM VALUES TABLE WITH PIVOT PIVOT_WIDER PIVOT_LONGER UNPIVOT SUMMARIZE DESCRIBE DESC SHOW OVER EXISTS COLUMNS FILTER".split()
)
_NO_CALL = frozenset("AND OR NOT IN BETWEEN LIKE ILIKE IS CASE WHEN THEN ELSE SET WHERE".split())
_BY_STRING = frozenset(("query", "query_table"))
_PREFIX = frozenset("NOT - + ~ @ ! CASE -> ** ^ INTERVAL [ :: .".split())
_DEEP = 20
_TOKENS = 3000  # sqlglot's trees lean to one side: beyond this they cost seconds and stack
_STACK_BYTES = 256 * 1024 * 1024
_stack_lock = threading.Lock()


def mentions(sql_text: str) -> frozenset[str]:
    """Every identifier-like token of the text, folded; those inside of strings too where `query(…)` or `query_table(…)` reads by string."""
    names: set[str] = set()
    strings: list[str] = []
    for token in lex(sql_text):
        shown = sql_text[token.start : token.end]
        if token.kind in ("word", "quoted"):
            names.add(folded(unquote(shown)))
        elif token.kind == "string":
            strings.append(shown)
    if names & _BY_STRING:
        for shown in strings:
            names |= {unquote(shown)} | mentions(unquote(shown.lstrip("eExXbBnN")))
    return frozenset(names)


def uses_clock(text: str) -> bool:
    """Whether any token is the name of a function or keyword that gives the present time, called or not."""
    tokens = lex(text)
    names = {folded(unquote(text[t.start : t.end])) for t in tokens if t.kind in ("word", "quoted")}
    return not names.isdisjoint(_CLOCK) or (not names.isdisjoint(_CLOCK_CALLS) and not called(text, tokens).isdisjoint(_CLOCK_CALLS))


def is_volatile(text: str) -> bool:
    """Whether the text calls a function that may answer differently each time, or takes a sample."""
    tokens = lex(text)
    sampled = any(t.word == "TABLESAMPLE" or (t.word == "SAMPLE" and i and tokens[i - 1].word == "USING") for i, t in enumerate(tokens))
    return sampled or not called(text, tokens).isdisjoint(_RANDOM | _STATEFUL)


def is_ordered(text: str) -> bool:
    """Whether the query as a whole has an ORDER BY."""
    depth = 0
    for token, behind in pairwise(lex(text)):
        depth += (token.word in ("(", "[", "{")) - (token.word in (")", "]", "}"))
        if depth == 0 and token.word == "ORDER" and behind.word == "BY":
            return True
    return False


def keeps_any_rows(text: str) -> bool:
    """Whether it may keep these rows as well as those: a LIMIT without an ORDER BY of its own."""
    words = [token.word for token in lex(text)]
    return words.count("LIMIT") + words.count("FETCH") > words.count("ORDER")


def called(text: str, tokens: list[Token]) -> frozenset[str]:
    """The names, folded, that stand in front of an opening parenthesis."""
    return frozenset(folded(unquote(text[a.start : a.end])) for a, b in pairwise(tokens) if b.word == "(" and a.kind in ("word", "quoted"))


def is_row_local(text: str, values: list[Token], where: list[Token], table_names: frozenset[str], statement: str) -> bool:
    """Whether a DELETE or UPDATE without CTEs looks at nothing but columns of the row itself.

    `values`, `where`: the tokens of its SET and WHERE in `text`; `table_names`: the folded name and alias of its table, which would
    stand for the whole row; `statement`: all of it with parameters as DuckDB takes them, for sqlglot.
    """
    tokens = values + where
    if _looks_elsewhere(text, tokens, table_names) or not called(text, where).isdisjoint(_RANDOM):
        return False
    if _is_plain(text, tokens):
        return True
    depth = _depth(tokens)
    return len(tokens) <= _TOKENS and depth <= NESTING and _is_known_scalar(statement, depth)


def _looks_elsewhere(text: str, tokens: list[Token], table_names: frozenset[str]) -> bool:
    for index, token in enumerate(tokens):
        if token.word == "#":
            return True
        if token.kind not in ("word", "quoted"):
            continue
        name = folded(unquote(text[token.start : token.end]))
        after = tokens[index + 1].word if index + 1 < len(tokens) else ""
        alone = after not in (".", "(") and (index == 0 or tokens[index - 1].word != ".")
        if name in _ROW_PLACE or (alone and name in table_names) or (after == "(" and name in _NO_ROW_LOCAL_CALL):
            return True
    return False


def _is_plain(text: str, tokens: list[Token]) -> bool:
    """Only columns, constants, parameters, operators and well-known functions: nothing that could be a subquery or a star."""
    last = len(tokens) - 1
    for index, token in enumerate(tokens):
        if token.word in _QUERY_WORDS or token.word == "*":
            return False
        calls = token.kind in ("word", "quoted") and index < last and tokens[index + 1].word == "(" and token.word not in _NO_CALL
        if calls and folded(unquote(text[token.start : token.end])) not in SCALAR:
            return False
    return True


def _depth(tokens: list[Token]) -> int:
    """A bound on how deep sqlglot recurses: brackets and CASE, and the operators that nest without either."""
    depth = deepest = 0
    for token in tokens:
        if token.word in ("(", "{"):
            depth += 1
        elif token.word in (")", "}"):
            depth -= 1
        deepest = max(deepest, depth)
    return deepest + sum(token.word in _PREFIX for token in tokens)


def _is_known_scalar(statement: str, depth: int) -> bool:
    return _on_large_stack(statement) if depth > _DEEP else _has_only_scalars(statement)


def _on_large_stack(statement: str) -> bool:
    """`_has_only_scalars` on a thread of its own: sqlglot needs about 25 frames for one pair of parentheses."""
    answer: list[bool] = []
    with _stack_lock:
        size, limit = threading.stack_size(_STACK_BYTES), sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(max(limit, 200_000))
            thread = threading.Thread(target=lambda: answer.append(_has_only_scalars(statement)))
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)
    return answer[0]


def _has_only_scalars(statement: str) -> bool:
    import sqlglot
    from sqlglot import errors, exp

    try:
        tree = sqlglot.parse_one(statement, dialect="duckdb")
    except (errors.SqlglotError, RecursionError):
        return False  # DuckDB may know it all the same; nothing is known of it here
    if not isinstance(tree, (exp.Delete, exp.Update)) or not _has_known_clauses(tree):
        return False
    elsewhere = (exp.Query, exp.Subquery, exp.AggFunc, exp.Window, exp.Star, exp.Columns, exp.Exists, exp.Command, exp.UDTF)
    return tree.find(*elsewhere) is None


def _has_known_clauses(tree: exp.Delete | exp.Update) -> bool:
    return all(key in ("this", "expressions", "where") for key, value in tree.args.items() if value)
