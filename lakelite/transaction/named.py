"""Which tables and views of the lake a text of SQL names.

DuckDB's own binder says so, asked where none of them is visible; where it cannot tell, all whose name occurs count. Looks into no view.
Past states are neither: they stay what they are, whatever files they lie in.
"""

from __future__ import annotations

import re

from lakelite.contents import Namespace
from lakelite.language.parse import mentions
from lakelite.language.tokens import lex, unquote
from lakelite.model import MAIN_SCHEMA, RESERVED_SCHEMA, Table, fold
from lakelite.records import dataclass
from lakelite.storage.engine import Engine
from lakelite.storage.past import PREFIX
from lakelite.storage.temporary import NOTHING, Temporaries, Temporary

_PART = re.compile(r'"((?:[^"]|"")*)"|([^\s".]+)')
_QUALIFIED = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_STRING = re.compile(r"'((?:[^']|'')*)'")
_FILE_NAME = re.compile(r"""['"][^'"]*[./][^'"]*['"]|\.\s*(?:parquet|[ct]sv|json|jsonl|ndjson|gz|zst)\b""", re.IGNORECASE)
_FILE_FUNCTION = re.compile(r"\b(read_\w+|\w*parquet_scan|glob|sniff_csv|parquet_\w+)\s*\(", re.IGNORECASE)
_UNSEEN = "past of the lake"
_PAST = re.compile(rf'"{re.escape(PREFIX)}([^"]*)"(?=\.)')
_UNKNOWN = rf'"{_UNSEEN} \1"'  # no database, so that DuckDB tells the name as it is, and no files that a view of that name reads


@dataclass(frozen=True, slots=True)
class Named:
    """`relations`: tables and views by id, the `certain` ones of which are read for sure. `others`: names of nothing in the lake.

    `external`: files are read. `temporary`: what the connection has for itself. `system`: views of schema `lake` are read.
    """

    relations: dict[int, Table]
    certain: frozenset[int]
    others: list[str]
    external: bool
    temporary: tuple[Temporary, ...] = ()
    system: bool = False


def named_in(
    engine: Engine, namespace: Namespace, text: str, schema: str = MAIN_SCHEMA, temporaries: Temporaries = NOTHING, *, of_lake: bool = False
) -> Named:
    """What `text` names. `schema`: where a name without one is looked for first, as DuckDB does for the query of a view in that schema.

    `of_lake`: it is the query of a view of the lake, for which what a temporary table hides has to be there as well.
    """
    names = engine.table_names(_without_parameters(_PAST.sub(_UNKNOWN, text)))
    if names is None:
        return _mentioned(namespace, _PAST.sub(_UNKNOWN, text), temporaries)
    found: dict[int, Table] = {}
    others: list[str] = []
    temporary = _temporary_by_string(temporaries, text)
    external = bool(_FILE_FUNCTION.search(text))
    system = False
    for name in names:
        parts = _split(name)
        system = system or (len(parts) > 1 and fold(parts[-2]) == RESERVED_SCHEMA)
        if parts[0].startswith(_UNSEEN):
            continue
        hiding = temporaries.find(parts[-2] if len(parts) > 1 else None, parts[-1])
        if hiding is not None:
            temporary.append(hiding)
            if not of_lake:
                continue
        relation = _find(namespace, parts, schema)
        if relation is not None:
            found[relation.table_id] = relation
        elif "." in parts[-1] or "/" in parts[-1]:
            external = True
        elif len(parts) == 1 and hiding is None:
            others.append(parts[0])
    return Named({**_by_string(namespace, text), **found}, frozenset(found), others, external, tuple(dict.fromkeys(temporary)), system)


def views_mentioned(namespace: Namespace, text: str) -> frozenset[str]:
    """The queries of all views whose name occurs in `text`, and in their queries. None is missed; what is no view there may be among them."""
    if not namespace.views:
        return frozenset()
    found: set[str] = set()
    texts = [text]
    while texts:
        words = mentions(texts.pop())
        new = {v.view.query for v in namespace.views if v.view is not None and fold(v.name) in words} - found
        found |= new
        texts += new
    return frozenset(found)


def _find(namespace: Namespace, parts: list[str], schema: str) -> Table | None:
    if len(parts) > 1:
        return namespace.find(parts[-2], parts[-1])
    return namespace.find(schema, parts[0]) or namespace.find(None, parts[0])


def _mentioned(namespace: Namespace, text: str, temporaries: Temporaries) -> Named:
    mentioned, by_string = mentions(text), _by_string(namespace, text)
    is_any = not mentioned.isdisjoint(("query", "query_table"))  # they read by a text that only the run makes
    words = {unquote(text[token.start : token.end]) for token in lex(text) if token.kind in ("word", "quoted")}
    others = sorted(word for word in words if namespace.find(None, word) is None)
    found = {t.table_id: t for t in namespace.tables.values() if is_any or fold(t.name) in mentioned or t.table_id in by_string}
    temporary = [one for name, one in temporaries.by_name.items() if is_any or name in mentioned]
    hidden = {one.name for one in temporary}
    others = [word for word in others if fold(word) not in map(fold, hidden)]
    external = is_any or bool(_FILE_FUNCTION.search(text)) or bool(_FILE_NAME.search(text))
    all_temporary = tuple(dict.fromkeys([*temporary, *_temporary_by_string(temporaries, text)]))
    return Named(found, frozenset(), others, external, all_temporary, RESERVED_SCHEMA in mentioned)


def _temporary_by_string(temporaries: Temporaries, text: str) -> list[Temporary]:
    if not temporaries.by_name or "'" not in text or "(" not in text:
        return []
    words = {fold(word.replace("''", "'")) for word in _STRING.findall(text)}
    return [one for name, one in temporaries.by_name.items() if name in words or not words.isdisjoint((f"main.{name}", f"temp.{name}"))]


def _without_parameters(text: str) -> str:
    """The text with NULL for each parameter: DuckDB tells the tables of no statement that has one."""
    if "$" not in text:
        return text
    found = [0, *(place for token in lex(text) if token.kind == "param" for place in (token.start, token.end)), len(text)]
    return "NULL".join(text[start:end] for start, end in zip(found[::2], found[1::2], strict=True))


def _by_string(namespace: Namespace, text: str) -> dict[int, Table]:
    """Tables whose name is a string in a text that calls something: a table function may read them by it (histogram, query_table)."""
    if "'" not in text or "(" not in text:
        return {}
    words = {fold(word.replace("''", "'")) for word in _STRING.findall(text)}
    return {t.table_id: t for t in namespace.tables.values() if fold(t.name) in words or fold(f"{t.schema_name}.{t.name}") in words}


def _split(name: str) -> list[str]:
    """The parts of a qualified name as DuckDB prints it, with an alias or a sample behind it: `a."b.c" AS d` → a, b.c."""
    found = _QUALIFIED.match(name)
    assert found is not None, name
    return [q.replace('""', '"') if q else bare for q, bare in _PART.findall(found[0])]
